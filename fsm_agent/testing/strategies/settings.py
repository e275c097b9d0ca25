"""Limits and histories: what a run begins with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from fsm_agent.machine import AGENT_LOOP, Definition
from fsm_agent.testing.shapes import JsonObject
from fsm_agent.testing.strategies.answers import drawn_from, valid_calls
from fsm_agent.testing.strategies.behaviour import IMAGE
from fsm_agent.tools.toolbox import Toolbox

__all__ = ["IMAGE_HISTORY", "LONG", "LONG_HISTORY", "TALK", "histories", "loop_limits"]

LONG = "word " * 2_000
_OTHERS: dict[str, tuple[Any, ...]] = {
    "max_concurrent_tools": (1, 2),
    "context_window": (70_000, 20_000, 1_000),
    "token_budget": (600, 1_200),
    "max_total_tokens": (50, 1_000, 20_000),
    "escalated_max_output_tokens": (8_192,),
    "tool_result_max_chars": (200,),
    "message_results_max_chars": (400,),
    "tool_timeout": (0.5, 5.0),
    "hook_timeout": (1.0,),
    "stream_idle_timeout": (10.0,),
}


def loop_limits(definition: Definition = AGENT_LOOP) -> st.SearchStrategy[dict[str, Any]]:
    """A few limits of a machine made small, so that what lies behind them is reached: names and values.

    >>> from hypothesis import find
    >>> set(find(loop_limits(), bool)) <= set(AGENT_LOOP.limits.model_fields)
    True
    """
    fields = definition.limits.model_fields
    small = [
        (counter.limit, counter.initial + more)
        for more in range(3)
        for counter in definition.counters
        if isinstance(counter.limit, str) and counter.limit in fields
    ]
    others: list[tuple[str, Any]] = [
        (name, value) for name, values in _OTHERS.items() if name in fields for value in values
    ]
    settings: list[tuple[str, Any]] = sorted({*small, *others})
    return st.lists(st.sampled_from(settings), max_size=3).map(dict) if settings else st.just({})


def _text(role: str, text: str) -> JsonObject:
    return {"role": role, "content": [{"type": "text", "text": text}]}


def _exchange(number: int, name: str, given: JsonObject, result: Any) -> list[JsonObject]:
    call = {"type": "tool_use", "id": f"old{number}", "name": name, "input": given}
    answer = {"type": "tool_result", "tool_use_id": f"old{number}", "content": result}
    return [
        _text("user", f"Question {number}."),
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [answer]},
        _text("assistant", f"Answer {number}."),
    ]


LONG_HISTORY: tuple[JsonObject, ...] = tuple(
    message
    for number in range(8)
    for message in (*_exchange(number, "look", {}, LONG)[:3], _text("assistant", f"Answer {number}. {LONG}"))
)
"""An older conversation with much in it: something to drain, to fold, to summarise."""
TALK: tuple[JsonObject, ...] = tuple(
    message
    for number in range(16)
    for message in (_text("user", f"Question {number}."), _text("assistant", f"Answer {number}. {LONG}"))
)
"""An older conversation in words alone: nothing in it can be made smaller but by a summary."""
IMAGE_HISTORY: tuple[JsonObject, ...] = tuple(_exchange(0, "look", {}, [IMAGE]))
"""A conversation with an image in a tool result."""


def histories(tools: Sequence[Any] | Toolbox = ()) -> st.SearchStrategy[tuple[JsonObject, ...]]:
    """Earlier conversations: short ones with calls of these tools, long ones, one with an image, a broken one."""
    return _histories(valid_calls(tools))


def _histories(calls: st.SearchStrategy[JsonObject]) -> st.SearchStrategy[tuple[JsonObject, ...]]:
    results = st.sampled_from(("ok", "", [{"type": "text", "text": "one"}]))
    one = st.tuples(calls, results)

    def told(several: list[tuple[JsonObject, Any]]) -> tuple[JsonObject, ...]:
        numbered = enumerate(several)
        return tuple(m for n, (call, result) in numbered for m in _exchange(n, call["name"], call["input"], result))

    short = st.lists(one, min_size=1, max_size=3).map(told)
    broken = st.tuples(short, st.integers(1, 3)).map(lambda both: both[0][: -both[1]])
    return drawn_from([short, broken, IMAGE_HISTORY, LONG_HISTORY, TALK])
