"""Hypothesis strategies for everything that may happen to an agent.

`scenarios(machine)` puts them together; the parts can be used alone.
"""

from fsm_agent.testing.strategies.answers import (
    Inputs,
    answers,
    api_errors,
    chunkings,
    faults,
    replies,
    streams,
    tool_calls,
    valid_calls,
    weighted,
)
from fsm_agent.testing.strategies.behaviour import (
    after_tool_acts,
    before_tool_acts,
    permission_acts,
    stop_hook_acts,
    system_acts,
    tool_acts,
    user_acts,
)
from fsm_agent.testing.strategies.json_schemas import json_values, misfits, values_of
from fsm_agent.testing.strategies.printing import print_items_as_code
from fsm_agent.testing.strategies.scenarios import scenarios
from fsm_agent.testing.strategies.seeds import seeds
from fsm_agent.testing.strategies.settings import histories, loop_limits

print_items_as_code()

__all__ = [
    "Inputs",
    "after_tool_acts",
    "answers",
    "api_errors",
    "before_tool_acts",
    "chunkings",
    "faults",
    "histories",
    "json_values",
    "loop_limits",
    "misfits",
    "permission_acts",
    "replies",
    "scenarios",
    "seeds",
    "stop_hook_acts",
    "streams",
    "system_acts",
    "tool_acts",
    "tool_calls",
    "user_acts",
    "valid_calls",
    "values_of",
    "weighted",
]
