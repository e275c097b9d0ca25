"""The pure heart: what a machine does next, as a function of the control record and the facts of the visit.

No clock, no random number, no I/O, no await. All awaiting happens in the driver, between two decisions. That is what
makes the same rows checkable, replayable, exportable and safe to cancel.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from fsm_agent.machine.control import Control
from fsm_agent.machine.definition import Definition, Row
from fsm_agent.machine.guards import Limits


class HoleError(RuntimeError):
    """No row of the state takes what happened. The checker proves that the shipped machine has no such hole."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Perform this effect, add its outcome to the facts, and decide again."""

    effect: str


@dataclass(frozen=True, slots=True)
class Fire:
    """This row fires."""

    row: Row


Decision: TypeAlias = Ask | Fire


class Automaton:
    """A definition under given limits.

    >>> from fsm_agent.machine import AGENT_LOOP, LoopLimits
    >>> automaton = Automaton(AGENT_LOOP, LoopLimits(max_turns=1).resolved())
    >>> automaton.decide(automaton.initial, {})
    Ask(effect='context')
    >>> automaton.decide(automaton.initial, {"context": "ready"}).row.trigger
    'context_ready'
    """

    __slots__ = ("definition", "initial", "limits")

    def __init__(self, definition: Definition, limits: Limits) -> None:
        self.definition = definition
        self.limits = limits
        self.initial = definition.initial_control()

    def decide(self, control: Control, facts: Mapping[str, str]) -> Decision:
        """Offer the rows of the state in document order.

        A row declines if a guard does not hold, or if none of the outcomes in `upon` is known. Its `given` is gone
        through in order: an outcome that is another than the wanted one makes it decline, the first one that is not
        known is asked for. Pure.

        Raises `HoleError` if every row declines.
        """
        for row in self.definition.rows_from(control.state):
            missing: str | None = None
            for effect, outcomes in row.given.items():
                fact = facts.get(effect)
                if fact is None:
                    missing = effect
                    break
                if fact not in outcomes:
                    break
            else:
                if self._takes(row, control, facts):
                    return Fire(row)
            # Most rows decline for what is known already, so the guards are asked last.
            if missing is not None and self._takes(row, control, facts):
                return Ask(missing)
        known = ", ".join(f"{effect}: {outcome}" for effect, outcome in facts.items()) or "nothing"
        raise HoleError(
            f"The machine {self.definition.name!r} has no row in the state {control.state!r} for {known} "
            f"with {control}; add a row that takes it."
        )

    def _takes(self, row: Row, control: Control, facts: Mapping[str, str]) -> bool:
        if row.upon and not any(facts.get(effect) in outcomes for effect, outcomes in row.upon.items()):
            return False
        return self.holds(row, control)

    def holds(self, row: Row, control: Control) -> bool:
        """Whether every guard of the row holds."""
        for guard in row.when:  # noqa: SIM110 - a loop is asked in each move, and `all` would make a generator for it
            if not guard(control, self.limits):
                return False
        return True

    def fits(self, row: Row, facts: Mapping[str, str]) -> bool:
        """Whether the facts are those that the row needs."""
        return all(facts.get(effect) in outcomes for effect, outcomes in row.given.items()) and (
            not row.upon or any(facts.get(effect) in outcomes for effect, outcomes in row.upon.items())
        )
