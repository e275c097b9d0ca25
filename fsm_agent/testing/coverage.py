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
from typing import TYPE_CHECKING, Any, TypeAlias

from fsm_agent.machine import Definition
from fsm_agent.testing.shapes import JsonObject

if TYPE_CHECKING:
    from fsm_agent.loop.result import RunResult

__all__ = ["COVERAGE", "Coverage", "CoverageReport", "Share", "possible_pairs"]

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
    """One row right after another. Pairs that only the counters rule out are in here too."""
    reasons: Share

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


@dataclass(frozen=True, slots=True)
class _Universe:
    """What there is to see of a machine."""

    rows: tuple[tuple[str, str, str, str | None], ...]
    """Source, trigger, dest and reason."""
    pairs: tuple[Pair, ...]

    @classmethod
    def of(cls, definition: Definition) -> _Universe:
        rows = tuple((row.source, row.trigger, row.dest, row.reason) for row in definition.rows)
        return cls(rows, possible_pairs(definition))


class _Seen:
    """What was seen of one machine."""

    def __init__(self) -> None:
        self.universe: _Universe | None = None
        self.runs = 0
        self.rows: Counter[Key] = Counter()
        self.pairs: Counter[Pair] = Counter()


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
        if seen.universe is None:
            seen.universe = _Universe.of(definition)
        seen.runs += 1
        seen.rows.update(keys)
        seen.pairs.update(pairwise(keys))

    def as_json(self) -> JsonObject:
        """For another process (a worker of pytest-xdist)."""
        return {
            name: {
                "declared": [list(row) for row in seen.universe.rows],
                "possible": [[*first, *second] for first, second in seen.universe.pairs],
                "runs": seen.runs,
                "rows": [[*key, count] for key, count in seen.rows.items()],
                "pairs": [[*first, *second, count] for (first, second), count in seen.pairs.items()],
            }
            for name, seen in self._seen.items()
            if seen.universe is not None
        }

    def merge(self, data: Mapping[str, Any]) -> None:
        """Add what another process has seen."""
        for name, words in data.items():
            seen = self._seen.setdefault(name, _Seen())
            seen.universe = seen.universe or _Universe(
                tuple((source, trigger, dest, reason) for source, trigger, dest, reason in words["declared"]),
                tuple(((one, two), (three, four)) for one, two, three, four in words["possible"]),
            )
            seen.runs += int(words["runs"])
            for source, trigger, count in words["rows"]:
                seen.rows[source, trigger] += count
            for one, two, three, four, count in words["pairs"]:
                seen.pairs[(one, two), (three, four)] += count

    def counts(self, machine: str) -> dict[Key, int]:
        """How often each row of a machine was taken, for `fsm_agent.diagram.Overlay.of_coverage`."""
        return dict(self._seen[machine].rows) if machine in self._seen else {}

    def reports(self) -> list[CoverageReport]:
        """A report for each machine that was seen."""
        return [_report(name, seen, seen.universe) for name, seen in self._seen.items() if seen.universe]


COVERAGE = Coverage()
"""What this process has seen: `check_scenario`, `AgentStateMachine` and the fixture `agent_run` add to it."""


def _report(name: str, seen: _Seen, universe: _Universe) -> CoverageReport:
    taken = [row for row in universe.rows if (row[0], row[1]) in seen.rows]
    moves, reasons = {(row[0], row[2]) for row in taken}, {row[3] for row in taken}
    return CoverageReport(
        name,
        seen.runs,
        _share("rows", {(row[0], row[1]): row in taken for row in universe.rows}, _row_name),
        _share("transitions", {(row[0], row[2]): (row[0], row[2]) in moves for row in universe.rows}, _move_name),
        _share("pairs", {pair: pair in seen.pairs for pair in universe.pairs}, _pair_name),
        _share("reasons", {row[3]: row[3] in reasons for row in universe.rows if row[3] is not None}, str),
    )


def _share(kind: str, seen: Mapping[Any, bool], name: Any) -> Share:
    return Share(kind, sum(seen.values()), tuple(name(what) for what, known in seen.items() if not known))


def _row_name(key: Key) -> str:
    return f"{key[0]}.{key[1]}"


def _move_name(move: Key) -> str:
    return f"{move[0]} -> {move[1]}"


def _pair_name(pair: Pair) -> str:
    return f"{_row_name(pair[0])} then {pair[1][1]}"


def possible_pairs(definition: Definition) -> tuple[Pair, ...]:
    """Which row may follow which, by the outcomes that it inherits; what the counters rule out is not looked at.

    >>> from fsm_agent.machine import AGENT_LOOP
    >>> (("calling_model", "tools_requested"), ("executing_tools", "next_turn")) in possible_pairs(AGENT_LOOP)
    True
    >>> (("calling_model", "response_ended"), ("executing_tools", "next_turn")) in possible_pairs(AGENT_LOOP)
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
    order = {row.key: number for number, row in enumerate(definition.rows)}
    return tuple(sorted(found, key=lambda pair: (order[pair[0]], order[pair[1]])))


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
