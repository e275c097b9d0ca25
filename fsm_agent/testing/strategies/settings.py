"""Limits and histories: what a run begins with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from fsm_agent.machine import AGENT_LOOP, Definition
from fsm_agent.testing.shapes import JsonObject
from fsm_agent.testing.strategies.answers import valid_calls
from fsm_agent.testing.strategies.behaviour import IMAGE
from fsm_agent.tools.toolbox import Toolbox

__all__ = ["IMAGE_HISTORY", "LONG_HISTORY", "histories", "loop_limits"]

_LONG = "word " * 2_000
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
    small = {
        counter.limit: st.integers(counter.initial, counter.initial + 2)
        for counter in definition.counters
        if isinstance(counter.limit, str) and counter.limit in fields
    }
    others = {name: st.sampled_from(values) for name, values in _OTHERS.items() if name in fields}
    settings = {**small, **others}
    return st.lists(st.sampled_from(sorted(settings)), max_size=3, unique=True).flatmap(
        lambda names: st.fixed_dictionaries({name: settings[name] for name in names})
    )


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
    for message in (*_exchange(number, "look", {}, _LONG)[:3], _text("assistant", f"Answer {number}. {_LONG}"))
)
"""An older conversation with much in it: something to drain, to fold, to summarise."""
IMAGE_HISTORY: tuple[JsonObject, ...] = tuple(_exchange(0, "look", {}, [IMAGE]))
"""A conversation with an image in a tool result."""


def histories(tools: Sequence[Any] | Toolbox = ()) -> st.SearchStrategy[tuple[JsonObject, ...]]:
    """Earlier conversations: short ones with calls of these tools, a long one, one with an image, a broken one."""
    calls = valid_calls(tools)
    results = st.sampled_from(("ok", "", [{"type": "text", "text": "one"}]))
    one = st.tuples(calls, results)

    def told(several: list[tuple[JsonObject, Any]]) -> tuple[JsonObject, ...]:
        numbered = enumerate(several)
        return tuple(m for n, (call, result) in numbered for m in _exchange(n, call["name"], call["input"], result))

    short = st.lists(one, min_size=1, max_size=3).map(told)
    broken = st.tuples(short, st.integers(1, 3)).map(lambda both: both[0][: -both[1]])
    return st.one_of(short, broken, st.just(IMAGE_HISTORY), st.just(LONG_HISTORY))
