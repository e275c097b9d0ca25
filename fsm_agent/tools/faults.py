"""What can go wrong with a tool, and how the model is told of it: in bounded, whole sentences without a traceback."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, Final, TypeAlias, cast

from pydantic import ValidationError

Content: TypeAlias = str | list[dict[str, Any]]
"""What a `tool_result` of the Messages API may hold: a text, or a list of content blocks."""

FAULT_TEXT_MAX: Final = 2_000
"""Characters of an exception's text that the model is shown."""
_FAULTS_SHOWN: Final = 10


class ToolConfigError(ValueError):
    """A tool is declared in a way that cannot work. Raised before any request is made."""


class ToolError(Exception):
    """Raise it in a tool to give the model an error in your own words, or blocks.

    >>> raise ToolError("There is no order 17. `list_orders` shows those that exist.")
    Traceback (most recent call last):
    fsm_agent.tools.faults.ToolError: There is no order 17. `list_orders` shows those that exist.
    """

    def __init__(self, content: Content) -> None:
        super().__init__(content if isinstance(content, str) else "the error is told in content blocks")
        self.content: Content = content


class InvalidInputError(Exception):
    """The input of a call does not fit the tool. Its text is for the model."""


def shortened(text: str, limit: int = FAULT_TEXT_MAX) -> str:
    """The text, or its beginning and end with a note of what was left out between them.

    >>> shortened("a" * 50 + "b" * 50, limit=20)
    'aaaaaaaaaa [80 characters left out] bbbbbbbbbb'
    """
    if len(text) <= limit:
        return text
    head, tail = limit - limit // 2, limit // 2
    return f"{text[:head]} [{len(text) - limit} characters left out] {text[-tail:]}"


def text_of_fault(fault: BaseException) -> str:
    """An exception in words, never longer than some 2,000 characters, also if its own `str()` raises.

    >>> text_of_fault(KeyError("town"))
    "KeyError: 'town'"
    >>> text_of_fault(ExceptionGroup("two things", [ValueError("one"), OSError("two")]))
    'ExceptionGroup: two things (2 sub-exceptions); ValueError: one; OSError: two'
    """
    faults = list(_with_members(fault))
    told = "; ".join(_one_fault(each) for each in faults[:_FAULTS_SHOWN])
    if len(faults) > _FAULTS_SHOWN:
        told += f"; and {len(faults) - _FAULTS_SHOWN} more"
    return shortened(told)


def _with_members(fault: BaseException) -> Iterator[BaseException]:
    yield fault
    if isinstance(fault, BaseExceptionGroup):
        for member in cast("BaseExceptionGroup[BaseException]", fault).exceptions:
            yield from _with_members(member)


def _one_fault(fault: BaseException) -> str:
    name = type(fault).__name__
    try:
        text = str(fault).strip()
    except BaseException as second:  # the tool's own class may raise anything here
        return f"{name} (its text cannot be shown: str() raised {type(second).__name__})"
    return f"{name}: {shortened(text)}" if text else name


def content_of_tool_error(fault: BaseException) -> Content | None:
    """The content of a `ToolError`, ours or the SDK's; None for any other exception."""
    if isinstance(fault, ToolError):
        return fault.content
    # Whoever raises the SDK's ToolError has imported it; we do not import the SDK for the question.
    sdk_tools = sys.modules.get("anthropic.lib.tools")
    sdk_error: type[BaseException] | None = getattr(sdk_tools, "ToolError", None)
    if sdk_error is not None and isinstance(fault, sdk_error):
        content: Any = getattr(fault, "content", "")
        return content if isinstance(content, str) else list(content)
    return None


_PLAINER: Final = {
    "missing_keyword_only_argument": "this field is required, and it is missing",
    "missing_argument": "this field is required, and it is missing",
    "missing": "this field is required, and it is missing",
    "unexpected_keyword_argument": "the tool has no such field",
    "extra_forbidden": "there is no such field",
}


def text_of_validation(error: ValidationError) -> str:
    """One line for each field that does not fit."""
    found = error.errors(include_url=False, include_context=False)
    lines = [_one_field(each["loc"], each["type"], each["msg"], each["input"]) for each in found[:_FAULTS_SHOWN]]
    if len(found) > _FAULTS_SHOWN:
        lines.append(f"- and {len(found) - _FAULTS_SHOWN} more")
    return "\n".join(lines)


def _one_field(location: tuple[int | str, ...], kind: str, message: str, given: object) -> str:
    where = ".".join(str(part) for part in location) or "the input"
    if kind in _PLAINER:
        return f"- {where}: {_PLAINER[kind]}"
    return f"- {where}: {shortened(message, 300)} (given: {shortened(_shown(given), 100)})"


def _shown(value: object) -> str:
    try:
        return repr(value)
    except Exception:  # a value of the user's own class
        return f"a {type(value).__name__}"
