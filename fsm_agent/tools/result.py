"""The answer to one call: always one, whatever happened, and honest about what is not known."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from fsm_agent.tools.content import clean_blocks, clean_text, content_of, texts_only, with_note
from fsm_agent.tools.faults import (
    Content,
    InvalidInputError,
    ToolError,
    content_of_tool_error,
    shortened,
    text_of_fault,
)

Status: TypeAlias = Literal[
    "ok",
    "error",
    "timeout",
    "unknown_tool",
    "invalid_input",
    "interrupted",
    "not_run",
    "denied",
    "deferred",
    "hook_stopped",
]
PARTIAL_MAX = 20_000
"""Characters of what an interrupted call had so far, as the model is shown it."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a call is answered with.

    >>> ToolResult("toolu_1", "21 C").block()
    {'type': 'tool_result', 'tool_use_id': 'toolu_1', 'content': '21 C'}
    """

    tool_use_id: str
    content: Content
    is_error: bool = False
    status: Status = "ok"
    max_chars: int | None = None
    """The tool's own bound of a result in the history (`max_result_chars`); None: the machine's."""

    def block(self) -> dict[str, Any]:
        """The `tool_result` block of the Messages API."""
        block: dict[str, Any] = {"type": "tool_result", "tool_use_id": self.tool_use_id, "content": self.content}
        if self.is_error:
            block["is_error"] = True
        return block

    def noted(self, note: str) -> ToolResult:
        """The result with a note (of a hook) after its content."""
        return replace(self, content=with_note(self.content, note))


@dataclass(frozen=True, slots=True)
class Answers:
    """Makes the result of one call, in the words that the model reads."""

    tool_use_id: str
    read_only: bool = False
    max_chars: int | None = None

    def returned(self, value: object) -> ToolResult:
        """The tool returned."""
        try:
            content = content_of(value)
        except ToolError as error:
            return self._error("error", error.content)
        except BaseException as fault:  # the value's own code runs when it is made JSON
            return self._error("error", f"What the tool returned cannot be read: {text_of_fault(fault)}.")
        return ToolResult(self.tool_use_id, content, max_chars=self.max_chars)

    def raised(self, fault: BaseException) -> ToolResult:
        """The tool raised."""
        if isinstance(fault, InvalidInputError):
            return self.invalid(str(fault))
        try:
            content = content_of_tool_error(fault)
        except Exception:  # content that cannot be read is no content
            content = None
        if content is None:
            return self._error("error", f"The tool failed: {text_of_fault(fault)}")
        told = self.returned(content)
        return self._error("error", told.content)

    def invalid(self, why: str) -> ToolResult:
        """The input does not fit; the tool did not run."""
        return self._error("invalid_input", f"The tool did not run: its input does not fit.\n{why}")

    def unknown(self, why: str) -> ToolResult:
        """There is no such tool."""
        return self._error("unknown_tool", why)

    def denied(self, reason: str, *, stop: bool) -> ToolResult:
        """A permission or a hook said no; the tool did not run."""
        return self._error("hook_stopped" if stop else "denied", f"The tool did not run, by decision: {reason}")

    def deferred(self, reason: str) -> ToolResult:
        """The decision was put off; the tool did not run."""
        told = f" ({reason})" if reason else ""
        return self._error("deferred", f"The tool did not run: the decision on this call was put off{told}.")

    def not_run(self, why: str) -> ToolResult:
        """The call's turn never came."""
        return self._error("not_run", f"The tool did not run: {why}.")

    def out_of_time(self, seconds: float, partial: str) -> ToolResult:
        """The tool took longer than it may."""
        return self._cut_short("timeout", f"Stopped: it took longer than {seconds:g} seconds.", partial)

    def interrupted(self, partial: str) -> ToolResult:
        """The run was aborted while the tool ran."""
        return self._cut_short("interrupted", "Interrupted before it finished: the run was aborted.", partial)

    def _cut_short(self, status: Status, what: str, partial: str) -> ToolResult:
        effect = (
            "It only reads, so nothing was changed."
            if self.read_only
            else "What it had done by then is not known; check before you do it again."
        )
        sofar = f"\nSo far:\n{shortened(partial, PARTIAL_MAX)}" if partial.strip() else ""
        return self._error(status, f"{what} {effect}{sofar}")

    def _error(self, status: Status, content: Content) -> ToolResult:
        clean = clean_text(content) if isinstance(content, str) else clean_blocks(content)
        return ToolResult(self.tool_use_id, texts_only(clean), is_error=True, status=status, max_chars=self.max_chars)


def refused(tool_use_ids: Iterable[str], why: str) -> list[ToolResult]:
    """Results for calls that are not run at all, in order.

    >>> refused(["toolu_1"], "the budget is spent")[0].content
    'The tool did not run: the budget is spent.'
    """
    return [Answers(each).not_run(why) for each in tool_use_ids]
