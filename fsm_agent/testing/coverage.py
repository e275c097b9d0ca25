"""What a test session has seen of a declared machine: rows, states' transitions, pairs of rows, terminal reasons.

>>> from fsm_agent.machine import AGENT_LOOP
>>> coverage = Coverage()
>>> coverage.add_trace(AGENT_LOOP, ["context_ready", "abort"])
>>> report = coverage.reports()[0]
>>> report.rows.seen, report.reasons.seen, report.pairs.seen
(2, 1, 1)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from fsm_agent.machine import AGENT_LOOP, Definition
from fsm_agent.testing.shapes import JsonObject

if TYPE_CHECKING:
    from fsm_agent.loop.result import RunResult

__all__ = ["COVERAGE", "Coverage", "CoverageReport", "Share", "possible_pairs", "roughly_possible_pairs"]

Key: TypeAlias = tuple[str, str]
"""Source and trigger: they name a row."""
Pair: TypeAlias = tuple[Key, Key]


@dataclass(frozen=True, slots=True)
class Share:
    """How much of something was seen, and what was not."""

    kind: str
    seen: int
    missing: tuple[str, ...]

    @property
    def all(self) -> int:
        """How much there is."""
        return self.seen + len(self.missing)

    def __str__(self) -> str:
        return f"{self.kind} {self.seen}/{self.all}"


@dataclass(frozen=True, slots=True)
class CoverageReport:
    """What was seen of one machine."""

    machine: str
    runs: int
    rows: Share
    transitions: Share
    """From which state to which, whatever the trigger."""
    pairs: Share
    """One row right after another."""
    reasons: Share
    exact: bool
    """Whether each pair is one that some run fires under the default limits; if not, the pairs that only the counters
    rule out are in there too."""

    @property
    def shares(self) -> tuple[Share, ...]:
        """All four."""
        return self.rows, self.transitions, self.pairs, self.reasons

    def __str__(self) -> str:
        runs = f"{self.runs} run{'' if self.runs == 1 else 's'}"
        return f"{self.machine}: {', '.join(map(str, self.shares))} ({runs})"

    def lines(self, *, most: int | None = None) -> list[str]:
        """The report in full: what is missing too, at most `most` of each kind."""
        told = [str(self)]
        for share in self.shares:
            if share.missing:
                shown = share.missing[:most]
                more = len(share.missing) - len(shown)
                told.append(f"  {share.kind} missing: {', '.join(shown)}{f', and {more} more' if more else ''}")
        return told


class _Seen:
    """What was seen of one machine."""

    def __init__(self) -> None:
        self.definition: Definition | None = None
        self.rows_there: tuple[tuple[str, str, str, str | None], ...] = ()
        """All rows: source, trigger, dest and reason."""
        self.roughly: tuple[Pair, ...] | None = None
        """What `roughly_possible_pairs` says, as another process told it."""
        self.runs = 0
        self.rows: Counter[Key] = Counter()
        self.pairs: Counter[Pair] = Counter()

    def of(self, definition: Definition) -> None:
        if self.definition is None:
            self.definition = definition
            self.rows_there = _rows_of(definition)

    def roughly_possible(self) -> tuple[Pair, ...]:
        if self.roughly is None:
            assert self.definition is not None
            self.roughly = roughly_possible_pairs(self.definition)
        return self.roughly


def _rows_of(definition: Definition) -> tuple[tuple[str, str, str, str | None], ...]:
    return tuple((row.source, row.trigger, row.dest, row.reason) for row in definition.rows)


class Coverage:
    """Gathers traces, of any number of machines. Machines are told apart by their name."""

    def __init__(self) -> None:
        self._seen: dict[str, _Seen] = {}

    def add(self, definition: Definition, events: Iterable[Any]) -> None:
        """Count a run by its events (none of them while `count_all_runs` counts it anyway)."""
        if _COUNTED:
            return
        keys = [(str(event.source), str(event.trigger)) for event in events if event.type == "transition"]
        self._add(definition, keys)

    def add_trace(self, definition: Definition, trace: Iterable[str]) -> None:
        """Count a run by its triggers. Raises `KeyError` for a trace that the machine does not have."""
        state, keys = definition.initial, list[Key]()
        for trigger in trace:
            keys.append((state, str(trigger)))
            state = definition.row(state, trigger).dest
        self._add(definition, keys)

    def _add(self, definition: Definition, keys: Sequence[Key]) -> None:
        seen = self._seen.setdefault(definition.name, _Seen())
        seen.of(definition)
        seen.runs += 1
        seen.rows.update(keys)
        seen.pairs.update(pairwise(keys))

    def as_json(self) -> JsonObject:
        """For another process (a worker of pytest-xdist)."""
        return {
            name: {
                "declared": [list(row) for row in seen.rows_there],
                "possible": [[*first, *second] for first, second in seen.roughly_possible()],
                "runs": seen.runs,
                "rows": [[*key, count] for key, count in seen.rows.items()],
                "pairs": [[*first, *second, count] for (first, second), count in seen.pairs.items()],
            }
            for name, seen in self._seen.items()
        }

    def merge(self, data: Mapping[str, Any]) -> None:
        """Add what another process has seen."""
        for name, words in data.items():
            seen = self._seen.setdefault(name, _Seen())
            if not seen.rows_there:
                rows = tuple((source, trigger, dest, reason) for source, trigger, dest, reason in words["declared"])
                seen.rows_there = rows
                seen.roughly = tuple(((one, two), (three, four)) for one, two, three, four in words["possible"])
                seen.definition = _shipped(name, rows)
            seen.runs += int(words["runs"])
            for source, trigger, count in words["rows"]:
                seen.rows[source, trigger] += count
            for one, two, three, four, count in words["pairs"]:
                seen.pairs[(one, two), (three, four)] += count

    def counts(self, machine: str) -> dict[Key, int]:
        """How often each row of a machine was taken, for `fsm_agent.diagram.Overlay.of_coverage`."""
        return dict(self._seen[machine].rows) if machine in self._seen else {}

    def reports(self) -> list[CoverageReport]:
        """A report for each machine that was seen.

        Which pairs are possible is found out for the machines with the most runs, as far as that takes less than a
        second; see `CoverageReport.exact`.
        """
        left, exact = MOST_PAIRS, dict[str, tuple[Pair, ...]]()
        for name, seen in sorted(self._seen.items(), key=lambda each: (-each[1].runs, each[0])):
            left -= len(seen.roughly_possible())
            if left >= 0 and seen.definition is not None and (pairs := possible_pairs(seen.definition)) is not None:
                exact[name] = pairs
        return [_report(name, seen, exact.get(name)) for name, seen in self._seen.items()]


MOST_PAIRS: Final = 250
"""Pairs that are looked at in one go. The checker decides some 300 in a second."""

COVERAGE = Coverage()
"""What this process has seen: `check_scenario`, `AgentStateMachine` and the fixture `agent_run` add to it."""


def _shipped(name: str, rows: tuple[tuple[str, str, str, str | None], ...]) -> Definition | None:
    """The shipped machine, if these are its name and rows."""
    return AGENT_LOOP if name == AGENT_LOOP.name and rows == _rows_of(AGENT_LOOP) else None


def _report(name: str, seen: _Seen, exact: tuple[Pair, ...] | None) -> CoverageReport:
    rows = seen.rows_there
    taken = [row for row in rows if (row[0], row[1]) in seen.rows]
    moves, reasons = {(row[0], row[2]) for row in taken}, {row[3] for row in taken}
    # Other limits than the defaults may make more possible.
    pairs = dict.fromkeys((*(seen.roughly_possible() if exact is None else exact), *seen.pairs))
    return CoverageReport(
        name,
        seen.runs,
        _share("rows", {(row[0], row[1]): row in taken for row in rows}, _row_name),
        _share("transitions", {(row[0], row[2]): (row[0], row[2]) in moves for row in rows}, _move_name),
        _share("pairs", {pair: pair in seen.pairs for pair in pairs}, _pair_name),
        _share("reasons", {row[3]: row[3] in reasons for row in rows if row[3] is not None}, str),
        exact is not None,
    )


def _share(kind: str, seen: Mapping[Any, bool], name: Any) -> Share:
    return Share(kind, sum(seen.values()), tuple(name(what) for what, known in seen.items() if not known))


def _row_name(key: Key) -> str:
    return f"{key[0]}.{key[1]}"


def _move_name(move: Key) -> str:
    return f"{move[0]} -> {move[1]}"


def _pair_name(pair: Pair) -> str:
    return f"{_row_name(pair[0])} then {pair[1][1]}"


def possible_pairs(definition: Definition) -> tuple[Pair, ...] | None:
    """Which row may fire right after which under the default limits, as the checker proves it; once per definition.

    None where that cannot be said: for limits without defaults, and where the checker does not decide a pair.

    >>> (("calling_model", "tools_requested"), ("executing_tools", "next_turn")) in possible_pairs(AGENT_LOOP)
    True
    """
    from fsm_agent.verify import UndecidedPairError, transition_pairs
    from fsm_agent.verify.bounds_given import LimitsError

    known = _EXACT.get(id(definition))
    if known is None or known[0] is not definition:
        try:
            known = definition, _in_order(definition, transition_pairs(definition))
        except (UndecidedPairError, LimitsError):
            known = definition, None
        _EXACT[id(definition)] = known
    return known[1]


_EXACT: dict[int, tuple[Definition, tuple[Pair, ...] | None]] = {}


def _in_order(definition: Definition, pairs: Iterable[Pair]) -> tuple[Pair, ...]:
    order = {(str(row.source), str(row.trigger)): number for number, row in enumerate(definition.rows)}
    return tuple(sorted(pairs, key=lambda pair: (order[pair[0]], order[pair[1]])))


def roughly_possible_pairs(definition: Definition) -> tuple[Pair, ...]:
    """The same by the outcomes that a row inherits alone, which costs little: what the counters rule out is in there.

    >>> (("calling_model", "response_ended"), ("executing_tools", "next_turn")) in roughly_possible_pairs(AGENT_LOOP)
    False
    """
    from fsm_agent.verify.decisions import Decisions
    from fsm_agent.verify.system import Ask, Move, System

    system = System(Decisions(definition, None))
    asked: dict[int, set[int]] = {}
    moves: dict[int, list[Move]] = {}
    for number, happening, dest in system.edges():
        if isinstance(happening, Ask):
            asked.setdefault(number, set()).add(dest)
        elif isinstance(happening, Move):
            moves.setdefault(number, []).append(happening)
    found: dict[Pair, None] = {}
    for move in (move for several in moves.values() for move in several):
        for number in _visit(move.dest, asked):
            found.update({(move.row.key, after.row.key): None for after in moves.get(number, ())})
    return _in_order(definition, found)


def _visit(start: int, asked: Mapping[int, set[int]]) -> set[int]:
    """The situations of the visit that begins here."""
    seen, waiting = {start}, [start]
    while waiting:
        for dest in asked.get(waiting.pop(), ()):
            if dest not in seen:
                seen.add(dest)
                waiting.append(dest)
    return seen


def count_all_runs() -> Callable[[], None]:
    """From now on count every run of a machine in this process. What it returns ends that.

    It stands in the way of each row that fires, so it is for test sessions only.
    """
    from unittest.mock import patch

    from fsm_agent.loop.driver import Driver

    drive = Driver.drive

    async def counted(driver: Driver) -> RunResult:
        result = await drive(driver)
        COVERAGE.add_trace(driver.machine.definition, result.trace)
        return result

    patched = patch.object(Driver, "drive", counted)
    patched.start()
    _COUNTED.append(True)

    def stop() -> None:
        patched.stop()
        _COUNTED.pop()

    return stop


_COUNTED: list[bool] = []
"""Not empty while `count_all_runs` counts: then what the kit plays is counted there, and not twice."""
