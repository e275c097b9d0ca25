"""Histories that fault scenarios begin with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

LONG = "word " * 600


def tool_turns(count: int, *, long: str = LONG) -> list[dict[str, Any]]:
    """A conversation of many turns, each with a call and its result."""
    messages: list[dict[str, Any]] = []
    for number in range(count):
        messages += [
            {"role": "user", "content": f"old task {number}"},
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": f"old{number}", "name": "echo", "input": {"n": number}}],
            },
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"old{number}", "content": long}]},
            {"role": "assistant", "content": [{"type": "text", "text": f"answer {number}"}]},
        ]
    return messages


def unsigned_thinking() -> list[dict[str, Any]]:
    """What a program saved that lost the signatures of its thinking."""
    thoughts = [
        {"type": "thinking", "thinking": "what I thought", "signature": ""},
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "text", "text": "what I said"},
    ]
    return [{"role": "user", "content": "think"}, {"role": "assistant", "content": thoughts}]


def unanswered() -> list[dict[str, Any]]:
    """A conversation that a crash ended before the results of its calls were saved."""
    calls = [{"type": "tool_use", "id": f"c{number}", "name": "echo", "input": {}} for number in range(2)]
    return [{"role": "user", "content": "do it"}, {"role": "assistant", "content": calls}]


HISTORIES: Mapping[str, Callable[[], list[dict[str, Any]]]] = {
    "200 turns": lambda: tool_turns(200, long="word " * 40),
    "long": lambda: tool_turns(40),
    "unanswered": unanswered,
    "unsigned thinking": unsigned_thinking,
    "short": lambda: tool_turns(2, long="a result"),
}
