"""A call as the model asked for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"


class Call(Protocol):
    """What is read of a tool call in the model's message (`fsm_agent.model.reply.ToolCall` is one)."""

    @property
    def id(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def input(self) -> dict[str, Any]: ...
    @property
    def input_error(self) -> str | None:
        """Why the input is no JSON object, if it is none."""
        ...


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call on its way: what permissions and hooks judge. Its input is a copy that nobody else holds."""

    id: str
    name: str
    input: dict[str, Any]
    input_error: str | None = None


def own_copy(call: Call) -> ToolCall:
    """A copy that a tool, a hook or a predicate may change without changing the model's message."""
    return ToolCall(call.id, call.name, copied_input(call.input), call.input_error)


def copied_input(given: dict[str, Any]) -> dict[str, Any]:
    """A deep copy of an input."""
    return {key: copied_json(each) for key, each in given.items()}


def copied_json(value: Json) -> Json:
    """A deep copy of JSON data; texts are shared, for they cannot change."""
    if isinstance(value, dict):
        return {key: copied_json(each) for key, each in value.items()}
    if isinstance(value, list):
        return [copied_json(each) for each in value]
    return value
