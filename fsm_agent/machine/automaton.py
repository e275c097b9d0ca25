"""The pure heart: what a machine does next, as a function of the control record and the facts of the visit.

No clock, no random number, no I/O, no await. All awaiting happens in the driver, between two decisions. That is what
makes the same rows checkable, replayable, exportable and safe to cancel.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
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


def _offered(row: Row, facts: Mapping[str, str]) -> Decision | None:
    """What a row makes of the facts, should its guards hold; None: it declines."""
    if row.upon and not any(facts.get(effect) in outcomes for effect, outcomes in row.upon.items()):
        return None
    for effect, outcomes in row.given.items():
        fact = facts.get(effect)
        if fact is None:
            return Ask(effect)
        if fact not in outcomes:
            return None
    return Fire(row)


class _Offers:
    """The rows of a definition that do not decline for the facts alone, in document order: looked for once.

    There are as many entries as ways to know something in a state, a few hundred for the shipped machine.
    """

    __slots__ = ("_definition", "_known")

    def __init__(self, definition: Definition) -> None:
        self._definition = definition
        self._known: dict[tuple[object, ...], tuple[tuple[Row, Decision], ...]] = {}

    def of(self, state: str, facts: Mapping[str, str]) -> tuple[tuple[Row, Decision], ...]:
        key = (state, *facts.items())
        offers = self._known.get(key)
        if offers is None:
            if len(self._known) >= _MOST_OFFERS:
                self._known.clear()
            offers = self._known[key] = tuple(
                (row, decision)
                for row in self._definition.rows_from(state)
                if (decision := _offered(row, facts)) is not None
            )
        return offers


_MOST_OFFERS = 10_000


@lru_cache(maxsize=64)
def _offers(definition: Definition) -> _Offers:
    return _Offers(definition)


class Automaton:
    """A definition under given limits.

    >>> from fsm_agent.machine import AGENT_LOOP, LoopLimits
    >>> automaton = Automaton(AGENT_LOOP, LoopLimits(max_turns=1).resolved())
    >>> automaton.decide(automaton.initial, {})
    Ask(effect='context')
    >>> automaton.decide(automaton.initial, {"context": "ready"}).row.trigger
    'context_ready'
    """

    __slots__ = ("_offers", "definition", "initial", "limits")

    def __init__(self, definition: Definition, limits: Limits) -> None:
        self.definition = definition
        self.limits = limits
        self._offers = _offers(definition)
        self.initial = definition.initial_control()

    def decide(self, control: Control, facts: Mapping[str, str]) -> Decision:
        """Offer the rows of the state in document order.

        A row declines if a guard does not hold, or if none of the outcomes in `upon` is known. Its `given` is gone
        through in order: an outcome that is another than the wanted one makes it decline, the first one that is not
        known is asked for. Pure.

        Raises `HoleError` if every row declines.
        """
        for row, decision in self._offers.of(control.state, facts):
            if self.holds(row, control):
                return decision
        known = ", ".join(f"{effect}: {outcome}" for effect, outcome in facts.items()) or "nothing"
        raise HoleError(
            f"The machine {self.definition.name!r} has no row in the state {control.state!r} for {known} "
            f"with {control}; add a row that takes it."
        )

    def holds(self, row: Row, control: Control) -> bool:
        """Whether every guard of the row holds."""
        for guard in row.when:  # noqa: SIM110 - a loop is asked in each move, and `all` would make a generator for it
            if not guard(control, self.limits):
                return False
        return True

    def fits(self, row: Row, facts: Mapping[str, str]) -> bool:
        """Whether the facts are those that the row needs."""
        return isinstance(_offered(row, facts), Fire)
