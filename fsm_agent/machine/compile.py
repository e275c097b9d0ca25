"""The declaration as one synchronous `transitions.Machine`, which moves a run.

The machine is made once per definition and has no model of its own. A run is a light cursor that is never registered:
a move is `machine.events[trigger].trigger(cursor)`. There is no `AsyncMachine` (0.9.3 swallows cancellation and runs
guards concurrently), no `on_exception`, no queue, no automatic transition.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, cast

from transitions import EventData, Machine
from transitions import State as MachineState

from fsm_agent.machine.automaton import Automaton
from fsm_agent.machine.control import Control
from fsm_agent.machine.definition import Definition, Row
from fsm_agent.machine.guards import Guard


class MoveError(RuntimeError):
    """The compiled machine refused a row that was decided: the two forms of the declaration differ."""


class Cursor:
    """One run's place in the machine: what `transitions` calls a model. Two runs share nothing."""

    __slots__ = ("automaton", "control", "facts", "state")

    def __init__(self, automaton: Automaton) -> None:
        self.automaton = automaton
        self.control: Control = automaton.initial
        self.state: str = automaton.initial.state
        self.facts: Mapping[str, str] = {}


class CompiledMachine:
    """A definition compiled for `transitions`."""

    __slots__ = ("_events", "_rows", "definition", "machine")

    def __init__(self, definition: Definition) -> None:
        self.definition = definition
        self._rows = {row.key: row for row in definition.rows}
        self.machine = Machine(
            model=None,
            states=[MachineState(spec.name, final=spec.final) for spec in definition.states],
            initial=definition.initial,
            auto_transitions=False,
            send_event=True,
            before_state_change=self._update,
        )
        for row in definition.rows:
            conditions: list[Any] = [self._facts_fit, *(_condition(guard) for guard in row.when)]
            self.machine.add_transition(row.trigger, row.source, row.dest, conditions=conditions)
        self._events = self.machine.events

    def _row_of(self, event: EventData) -> Row:
        assert event.transition is not None
        assert event.event is not None
        return self._rows[event.transition.source, event.event.name]

    def _facts_fit(self, event: EventData) -> bool:
        cursor = cast(Cursor, event.model)
        return cursor.automaton.fits(self._row_of(event), cursor.facts)

    def _update(self, event: EventData) -> None:
        cursor = cast(Cursor, event.model)
        row = self._row_of(event)
        cursor.control = self.definition.updated(cursor.control, row)
        cursor.facts = self.definition.inherited(row.dest, cursor.facts)

    def move(self, cursor: Cursor, trigger: str) -> None:
        """Fire a trigger: the guards are asked again, the update applied, the state changed.

        Raises `MoveError` if the machine refuses, and `transitions.MachineError` for a trigger that the state does not
        have. Neither can happen after `decide`.
        """
        if not self._events[trigger].trigger(cursor):
            raise MoveError(f"The compiled machine refused the trigger {trigger!r} in {cursor.control}.")


def _condition(guard: Guard) -> Callable[[EventData], bool]:
    def condition(event: EventData) -> bool:
        cursor = cast(Cursor, event.model)
        return guard(cursor.control, cursor.automaton.limits)

    return condition


@lru_cache(maxsize=64)
def compiled(definition: Definition) -> CompiledMachine:
    """The compiled machine of a definition, made when first asked for."""
    return CompiledMachine(definition)
