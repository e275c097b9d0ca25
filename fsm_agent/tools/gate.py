"""The seams around a tool: permissions, and hooks. Whatever goes wrong in one before the tool counts as a no."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from fsm_agent.tools.calls import ToolCall
from fsm_agent.tools.context import ToolContext
from fsm_agent.tools.declare import Tool
from fsm_agent.tools.result import ToolResult


def checked_text(value: object, where: str) -> None:
    """Raise `TypeError` where a hook is at fault, not later where the loop reads what it answered.

    >>> Deny(None)
    Traceback (most recent call last):
    TypeError: Deny(reason=...) was given NoneType; give text.
    """
    if not isinstance(value, str):
        raise TypeError(f"{where} was given {type(value).__name__}; give text.")


@dataclass(frozen=True, slots=True)
class Allow:
    """The call may run."""


@dataclass(frozen=True, slots=True)
class Deny:
    """The call does not run; the model is told the reason. With `stop` the run ends too (`hook_stopped`)."""

    reason: str
    stop: bool = False

    def __post_init__(self) -> None:
        checked_text(self.reason, "Deny(reason=...)")


@dataclass(frozen=True, slots=True)
class Defer:
    """Not decided yet: the call does not run, and the run ends with `tool_deferred`."""

    reason: str = ""

    def __post_init__(self) -> None:
        checked_text(self.reason, "Defer(reason=...)")


@dataclass(frozen=True, slots=True)
class Change:
    """The call runs with this input instead; the model's message stays as it is, and `note` tells it, if given.

    Whether the call may run beside others was decided on the model's input.
    """

    input: dict[str, Any]
    note: str = ""

    def __post_init__(self) -> None:
        checked_text(self.note, "Change(note=...)")


@dataclass(frozen=True, slots=True)
class Note:
    """A text for the model, after the tool's result."""

    text: str

    def __post_init__(self) -> None:
        checked_text(self.text, "Note(text=...)")


@dataclass(frozen=True, slots=True)
class Stop:
    """The result stands, calls that have not started do not run, and the run ends with `hook_stopped`."""

    reason: str

    def __post_init__(self) -> None:
        checked_text(self.reason, "Stop(reason=...)")


Permission: TypeAlias = Allow | Deny | Defer
AskPermission: TypeAlias = Callable[[ToolCall, Tool[..., Any], ToolContext[Any]], Awaitable[Permission]]
"""Asked once for each call of a tool that exists with an input that fits, after the hooks, just before it runs. An
exception, another answer, or none within `LoopLimits.hook_timeout` seconds is a no."""

BeforeTool: TypeAlias = Callable[[ToolCall, Tool[..., Any], ToolContext[Any]], Awaitable[Deny | Change | Note | None]]
"""Runs before the tool. An exception, another answer, or none within `LoopLimits.hook_timeout` seconds is a no."""

AfterTool: TypeAlias = Callable[[ToolCall, Tool[..., Any], ToolResult, ToolContext[Any]], Awaitable[Note | Stop | None]]
"""Runs after the tool, also after one that failed. If it raises or is out of time, the result stands without it."""


@dataclass(frozen=True, slots=True)
class ToolHooks:
    """Hooks around each tool, in the order in which they run."""

    before_tool: Sequence[BeforeTool] = ()
    after_tool: Sequence[AfterTool] = ()


class HooksAroundTools(Protocol):
    """What a batch reads of the hooks of a machine; `ToolHooks` is one."""

    @property
    def before_tool(self) -> Sequence[BeforeTool]: ...
    @property
    def after_tool(self) -> Sequence[AfterTool]: ...
