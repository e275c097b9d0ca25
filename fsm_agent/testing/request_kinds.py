"""What a request asks for: a turn of the conversation, or a summary of it."""

import re
from typing import Literal, TypeAlias

from fsm_agent.testing.shapes import JsonObject, as_list, as_object

__all__ = ["RequestKind", "request_kind"]

RequestKind: TypeAlias = Literal["turn", "summary"]
"""A turn of the conversation, or a summary of it (a compaction)."""


def request_kind(body: JsonObject) -> RequestKind:
    """Whether a request asks for a summary. The wire has no field for it, so its last words decide.

    A summary is asked for by an empty `<summary></summary>` (or `<summary>...</summary>`) in the text that the request
    ends with, as the instructions of this library and of the SDK's compaction do; or, in a request that offers no tools
    or forbids them, by the word "summary", "summarise" or "summarize" there or in the system prompt.

    >>> request_kind({"messages": [{"role": "user", "content": "Write a summary of the conversation."}]})
    'summary'
    >>> request_kind({"messages": [{"role": "user", "content": "hello"}]})
    'turn'
    """
    asked = _last_message_text(body)
    if _EMPTY_SUMMARY.search(asked):
        return "summary"
    choice = as_object(body.get("tool_choice")) or {}
    if body.get("tools") and choice.get("type") != "none":
        return "turn"
    words = f"{_last_text(body.get('system'))}\n{asked}".lower()
    return "summary" if any(word in words for word in _SUMMARY_WORDS) else "turn"


_EMPTY_SUMMARY = re.compile(r"<summary>[\s.…]*</summary>")
_SUMMARY_WORDS = ("summary", "summarise", "summarize")


def _last_text(content: object) -> str:
    if isinstance(content, str):
        return content
    for item in reversed(as_list(content) or []):
        block = as_object(item)
        if block is not None and isinstance(block.get("text"), str):
            return str(block["text"])
    return ""


def _last_message_text(body: JsonObject) -> str:
    messages = as_list(body.get("messages"))
    last = as_object(messages[-1]) if messages else None
    return _last_text(last.get("content")) if last is not None else ""
