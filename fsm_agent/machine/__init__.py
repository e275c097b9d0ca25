"""The declared machine: its vocabulary, guards, the agent loop's table, the pure decision and the compilation.

This package knows nothing of the rest of the library.
"""

from fsm_agent.machine.agent_loop import AGENT_LOOP
from fsm_agent.machine.automaton import Ask, Automaton, Decision, Fire, HoleError
from fsm_agent.machine.compile import CompiledMachine, Cursor, MoveError, compiled
from fsm_agent.machine.control import Control
from fsm_agent.machine.definition import (
    Counter,
    Definition,
    DefinitionError,
    EffectSpec,
    FlagSpec,
    Row,
    StateSpec,
)
from fsm_agent.machine.guards import AnyOf, Below, Flag, Guard, Increment, Limits, Not, Predicate, Reset, Set, Update
from fsm_agent.machine.limits import LoopLimits
from fsm_agent.machine.vocabulary import (
    Action,
    ContextOutcome,
    Effect,
    ResponseOutcome,
    State,
    TerminalReason,
    ToolsOutcome,
    Trigger,
)

__all__ = [
    "AGENT_LOOP",
    "Action",
    "AnyOf",
    "Ask",
    "Automaton",
    "Below",
    "CompiledMachine",
    "ContextOutcome",
    "Control",
    "Counter",
    "Cursor",
    "Decision",
    "Definition",
    "DefinitionError",
    "Effect",
    "EffectSpec",
    "Fire",
    "Flag",
    "FlagSpec",
    "Guard",
    "HoleError",
    "Increment",
    "Limits",
    "LoopLimits",
    "MoveError",
    "Not",
    "Predicate",
    "Reset",
    "ResponseOutcome",
    "Row",
    "Set",
    "State",
    "StateSpec",
    "TerminalReason",
    "ToolsOutcome",
    "Trigger",
    "Update",
    "compiled",
]
