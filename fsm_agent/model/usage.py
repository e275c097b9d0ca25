"""Tokens: what a response of the API used, and sums of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from fsm_agent.model.json_types import is_array, is_object
from fsm_agent.model.unchecked import unchecked

__all__ = ["Usage"]

Tokens = Annotated[int, Field(ge=0)]

_COUNTS = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
# Entries of `usage.iterations` whose tokens the top-level counts leave out: the SDK's BetaUsage says so of compactions,
# the recordings show it of advisors.
_BESIDE_TOP_LEVEL = frozenset({"compaction", "advisor_message"})


class Usage(BaseModel):
    """Tokens used by one response, or by several added up. Each response is counted once.

    >>> both = Usage(input_tokens=10, output_tokens=2, requests=1) + Usage(input_tokens=14, output_tokens=1, requests=1)
    >>> both.total, both.requests, both.context_tokens
    (27, 2, 15)
    """

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    input_tokens: Tokens = 0
    """Input tokens that were neither read from the prompt cache nor written to it."""
    output_tokens: Tokens = 0
    cache_creation_input_tokens: Tokens = 0
    cache_read_input_tokens: Tokens = 0
    server_tool_use: dict[str, int] = Field(default_factory=dict)
    """Requests of server tools by their name, such as `web_search_requests`."""
    requests: Tokens = 0
    """Responses that were added up."""
    context: Tokens | None = None
    """Tokens of the context after the last response, where they are not the sum of its counts (server-side tool loops
    count their input again in each iteration)."""

    @property
    def total(self) -> int:
        """All tokens, input and output, cached ones included."""
        return self.input_tokens + self.output_tokens + self.cache_creation_input_tokens + self.cache_read_input_tokens

    @property
    def context_tokens(self) -> int:
        """Size of the context after the (last) response, its output included."""
        return self.total if self.context is None else self.context

    def __add__(self, other: Usage) -> Usage:
        tools = dict(self.server_tool_use)
        for name, count in other.server_tool_use.items():
            tools[name] = tools.get(name, 0) + count
        return unchecked(
            Usage,
            {
                "input_tokens": self.input_tokens + other.input_tokens,
                "output_tokens": self.output_tokens + other.output_tokens,
                "cache_creation_input_tokens": self.cache_creation_input_tokens + other.cache_creation_input_tokens,
                "cache_read_input_tokens": self.cache_read_input_tokens + other.cache_read_input_tokens,
                "server_tool_use": tools,
                "requests": self.requests + other.requests,
                "context": other.context_tokens or self.context_tokens,
            },
        )

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any] | None, *, requests: int = 1) -> Usage:
        """The usage object of one response. What is missing, null or unknown counts as nothing.

        Tokens that the top-level counts leave out (of a server-side compaction) are added from `iterations`.

        >>> Usage.from_wire({"input_tokens": 3, "output_tokens": None, "service_tier": "standard"}).total
        3
        >>> Usage.from_wire(None).total
        0
        """
        wire = wire or {}
        counts = {name: _count(wire.get(name)) for name in _COUNTS}
        context: int | None = None
        for entry in _entries(wire.get("iterations")):
            if entry.get("type") in _BESIDE_TOP_LEVEL:
                for name in _COUNTS:
                    counts[name] += _count(entry.get(name))
            else:
                context = sum(_count(entry.get(name)) for name in _COUNTS)
        more = {"server_tool_use": _tools(wire.get("server_tool_use")), "requests": requests, "context": context}
        return unchecked(cls, {**counts, **more})


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _entries(value: object) -> list[dict[str, Any]]:
    return [entry for entry in value if is_object(entry)] if is_array(value) else []


def _tools(value: object) -> dict[str, int]:
    if not is_object(value):
        return {}
    return {name: _count(count) for name, count in value.items() if _count(count)}
