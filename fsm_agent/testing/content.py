"""Content blocks of a reply, by their names on the wire."""

from collections.abc import Mapping
from typing import Any

from fsm_agent.testing.shapes import JsonObject

__all__ = ["redacted_thinking", "text", "thinking", "tool_use"]


def text(value: str, **more: Any) -> JsonObject:
    """A text block.

    >>> text("hi")
    {'type': 'text', 'text': 'hi'}
    """
    return {"type": "text", "text": value, **more}


def tool_use(
    name: str,
    input: Mapping[str, Any] | None = None,  # noqa: A002  the wire's own names
    *,
    id: str | None = None,  # noqa: A002
    **more: Any,
) -> JsonObject:
    """A call of a client tool. Without `id` each serving of the block gets a fresh one.

    >>> tool_use("read", {"path": "a"}, id="t1")
    {'type': 'tool_use', 'id': 't1', 'name': 'read', 'input': {'path': 'a'}}
    """
    return {"type": "tool_use", "id": id, "name": name, "input": dict(input or {}), **more}


def thinking(value: str, *, signature: str | None = None) -> JsonObject:
    """A thinking block. Without `signature` the server signs it for the model that serves it.

    >>> thinking("hm", signature="SIG")
    {'type': 'thinking', 'thinking': 'hm', 'signature': 'SIG'}
    """
    return {"type": "thinking", "thinking": value, "signature": signature}


def redacted_thinking(data: str) -> JsonObject:
    """A thinking block whose text is hidden.

    >>> redacted_thinking("EmwK")
    {'type': 'redacted_thinking', 'data': 'EmwK'}
    """
    return {"type": "redacted_thinking", "data": data}
