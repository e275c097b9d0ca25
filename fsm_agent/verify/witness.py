"""Runs as data: what happened in each visit of a state, and which row fired then."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from fsm_agent.machine import Ask, Automaton, Control, Definition, Limits, Row

Outcome: TypeAlias = tuple[str, str]
"""An effect and how it ended."""
Event: TypeAlias = Outcome | Row
"""One step of a run: an outcome of an effect, or a row that fires."""


class WitnessError(AssertionError):
    """A witness that the machine does not follow: the checker is wrong, and says so rather than mislead."""


@dataclass(frozen=True, slots=True)
class Step:
    """One visit of a state: the effects performed in it, in order, with their outcomes, and the row that fired.

    `trigger` is None if the visit is not left (the run falls through a hole there).
    """

    state: str
    outcomes: tuple[Outcome, ...]
    trigger: str | None
    dest: str | None
    reason: str | None = None

    def __str__(self) -> str:
        asked = ", ".join(f"{effect}: {outcome}" for effect, outcome in self.outcomes)
        left = self.trigger or "nothing fires"
        return f"{asked} → {left}" if asked else left


@dataclass(frozen=True, slots=True)
class Witness:
    """A run from the initial state, as the shortest evidence for something.

    A driver can follow it: in each step it gives the effects these outcomes and sees this trigger fire.
    """

    steps: tuple[Step, ...]

    @property
    def word(self) -> tuple[str, ...]:
        """The triggers, in order."""
        return tuple(step.trigger for step in self.steps if step.trigger is not None)

    @property
    def reason(self) -> str | None:
        """The terminal reason, if the run ends."""
        return self.steps[-1].reason if self.steps else None

    @property
    def size(self) -> int:
        """Outcomes and moves together: the length that the search makes as small as it can."""
        return sum(len(step.outcomes) + (step.trigger is not None) for step in self.steps)

    def outcomes_of(self, effect: str) -> tuple[str, ...]:
        """The outcomes of one effect over the whole run, in order: the script for whoever plays its part."""
        return tuple(outcome for step in self.steps for name, outcome in step.outcomes if name == effect)

    def as_json(self) -> list[dict[str, object]]:
        return [
            {"state": step.state, "outcomes": [list(outcome) for outcome in step.outcomes], "trigger": step.trigger}
            for step in self.steps
        ]

    def __str__(self) -> str:
        return "; ".join(folded([str(step) for step in self.steps]))


@dataclass(frozen=True, slots=True)
class Lasso:
    """A run that need not end: the stem leads to the loop, and the loop can be repeated for ever."""

    stem: tuple[Step, ...]
    loop: tuple[Step, ...]

    def __str__(self) -> str:
        stem = "; ".join(folded([str(step) for step in self.stem])) or "at once"
        return f"{stem}; then for ever: ({'; '.join(str(step) for step in self.loop)})"

    def as_json(self) -> dict[str, object]:
        return {"stem": Witness(self.stem).as_json(), "loop": Witness(self.loop).as_json()}


def witness(initial: str, events: Iterable[Event]) -> Witness:
    """The events of a run, gathered into visits."""
    return Witness(tuple(_visits(initial, events)))


def _visits(state: str, events: Iterable[Event]) -> Iterator[Step]:
    outcomes: list[Outcome] = []
    for event in events:
        if isinstance(event, Row):
            yield Step(state, tuple(outcomes), event.trigger, event.dest, event.reason)
            state, outcomes = event.dest, []
        else:
            outcomes.append(event)
    if outcomes:
        yield Step(state, tuple(outcomes), None, None)


def replay(definition: Definition, limits: Limits, steps: Iterable[Step]) -> list[Control]:
    """Follow a run with the real `decide`; the control record before the first step and after each.

    Raises `WitnessError` where the machine does something else.
    """
    automaton = Automaton(definition, limits)
    controls, facts = [automaton.initial], dict[str, str]()
    for step in steps:
        control = controls[-1]
        for effect, outcome in step.outcomes:
            decision = automaton.decide(control, facts)
            if decision != Ask(effect):
                raise WitnessError(f"In {control} the effect {effect!r} was to be asked for, but it is {decision}.")
            facts[effect] = outcome
        if step.trigger is None:
            break
        decision = automaton.decide(control, facts)
        row = definition.row(step.state, step.trigger)
        if isinstance(decision, Ask) or decision.row != row:
            raise WitnessError(f"In {control} the row «{row}» was to fire, but it is {decision}.")
        controls.append(definition.updated(control, row))
        facts = definition.inherited(row.dest, facts)
    return controls


def folded(items: Sequence[str], longest: int = 12) -> list[str]:
    """Repetitions written once, with their number: a, b, a, b, a, b, c -> (a; b) x3, c."""
    result: list[str] = []
    at = 0
    while at < len(items):
        period, times = _repetition(items, at, longest)
        if times > 1:
            result.append(f"({'; '.join(items[at : at + period])}) x{times}")
            at += period * times
        else:
            result.append(items[at])
            at += 1
    return result


def _repetition(items: Sequence[str], at: int, longest: int) -> tuple[int, int]:
    for period in range(1, min(longest, (len(items) - at) // 2) + 1):
        unit, times = items[at : at + period], 1
        while items[at + period * times : at + period * (times + 1)] == unit:
            times += 1
        if times > 1:
            return period, times
    return 1, 1
