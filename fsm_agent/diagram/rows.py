"""What a row says, as the diagrams say it: its kind, and the short texts of its facts, guards and updates."""

from __future__ import annotations

from collections import Counter as Multiset
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from fsm_agent.machine import AnyOf, Below, Definition, Flag, Guard, Increment, Not, Reset, Row, TerminalReason

LINE = "\n"


class Kind(StrEnum):
    """What sort of move a row is. Each has its colour."""

    STEP = "step"
    """A change of phase: nothing is counted."""
    TURN = "turn"
    """The loop goes on: `turn` is raised."""
    REPAIR = "repair"
    """A recovery: bounded by a guard, a counter or a flag of its own."""
    SUCCESS = "success"
    """The end, `completed`."""
    FAILURE = "failure"
    """The end, for any other reason."""
    ABORT = "abort"
    """The end, because somebody said so."""


def kind_of(definition: Definition, row: Row) -> Kind:
    """The kind of a row, read from what it declares.

    >>> from fsm_agent.machine import AGENT_LOOP
    >>> kind_of(AGENT_LOOP, AGENT_LOOP.row("recovering", "transport_retry")).value
    'repair'
    """
    facts = [*row.given.values(), *row.upon.values()]
    if definition.state(row.dest).final:
        if facts and all(outcomes == ("aborted",) for outcomes in facts):
            return Kind.ABORT
        return Kind.SUCCESS if row.reason == TerminalReason.COMPLETED else Kind.FAILURE
    if any(isinstance(update, Increment) and update.counter == "turn" for update in row.update):
        return Kind.TURN
    if row.when or any(not isinstance(update, Reset) for update in row.update):
        return Kind.REPAIR
    return Kind.STEP


def facts_text(definition: Definition, row: Row) -> list[str]:
    """One line per effect that the row looks at: `response: cut`. Of long lists the shorter half is told."""
    upon = [_outcomes_text(definition, effect, outcomes) for effect, outcomes in row.upon.items()]
    # Where several are named, one is enough: say so.
    either = [("" if i == 0 else "or ") + line for i, line in enumerate(upon)]
    return [*either, *(_outcomes_text(definition, effect, outcomes) for effect, outcomes in row.given.items())]


def _outcomes_text(definition: Definition, effect: str, outcomes: tuple[str, ...]) -> str:
    others = [outcome for outcome in definition.effect(effect).outcomes if outcome not in outcomes]
    if not others:
        return f"{effect}: any"
    if len(others) < len(outcomes) and len(outcomes) > 3:
        return f"{effect}: any but {', '.join(others)}"
    return f"{effect}: {', '.join(outcomes)}"


def guard_text(definition: Definition, guard: Guard, *, inner: bool = False) -> str:
    """A guard in few words. `max` is the counter's own limit, which the diagrams list beside the counters.

    `inner` puts a choice into parentheses, for where it stands among others.

    >>> from fsm_agent.machine import AGENT_LOOP
    >>> guard_text(AGENT_LOOP, Not(Below("turn", "max_turns")))
    'turn at max'
    """
    match guard:
        case Below(counter, limit):
            return f"{counter} < {_bound_text(definition, counter, limit)}"
        case Not(Below(counter, limit)):
            own = _bound_text(definition, counter, limit)
            return f"{counter} at {own}"
        case Not(Flag(name)):
            return f"not {name}"
        case Not(other):
            return f"not ({guard_text(definition, other)})"
        case AnyOf():
            text = " or ".join(guard_text(definition, other, inner=True) for other in guard.guards)
            return f"({text})" if inner else text
        case _:
            return str(guard)


def guard_lines(definition: Definition, guard: Guard) -> list[str]:
    """A guard in brackets, each alternative on a line of its own."""
    choices = guard.guards if isinstance(guard, AnyOf) else (guard,)
    lines = [("or " if i else "") + guard_text(definition, choice, inner=True) for i, choice in enumerate(choices)]
    return f"[{LINE.join(lines)}]".split(LINE)


def _bound_text(definition: Definition, counter: str, limit: str | int | None) -> str:
    own = next((spec.limit for spec in definition.counters if spec.name == counter), None)
    return "max" if limit == own else str(limit)


@dataclass(frozen=True, slots=True)
class ResetGroups:
    """Sets of counters and flags that rows reset together, by the letter that stands for each in a diagram."""

    letters: Mapping[frozenset[str], str]
    order: Mapping[str, int]

    @classmethod
    def of(cls, definition: Definition) -> ResetGroups:
        """The sets of three or more names that some row resets, smallest first."""
        seen = Multiset(resets for row in definition.rows if len(resets := _resets(row)) >= 3)
        order = {name: i for i, name in enumerate(definition.initial_control())}
        groups = sorted(seen, key=lambda names: (len(names), sorted(order[name] for name in names)))
        return cls({names: chr(ord("A") + i) for i, names in enumerate(groups)}, order)

    def text(self, names: frozenset[str]) -> str:
        """`A` for a set that has a letter; else its names."""
        return self.letters.get(names) or ", ".join(self._sorted(names))

    def legend(self) -> list[tuple[str, str]]:
        """Each letter with its names; a set that holds an earlier one is told by it."""
        lines: list[tuple[str, str]] = []
        for names, letter in self.letters.items():
            inner = [(other, mark) for other, mark in self.letters.items() if other < names]
            known, mark = max(inner, key=lambda pair: len(pair[0]), default=(frozenset[str](), ""))
            lines.append((letter, ", ".join([*([mark] if mark else []), *self._sorted(names - known)])))
        return lines

    def _sorted(self, names: Iterable[str]) -> list[str]:
        return sorted(names, key=lambda name: self.order[name])


def _resets(row: Row) -> frozenset[str]:
    return frozenset(update.name for update in row.update if isinstance(update, Reset))


def updates_text(row: Row, groups: ResetGroups) -> list[str]:
    """What the row does to the counters and flags, one line per sort: `turn + 1`, `reset A`."""
    changes = [str(update) for update in row.update if not isinstance(update, Reset)]
    resets = _resets(row)
    return [*changes, *([f"reset {groups.text(resets)}"] if resets else [])]
