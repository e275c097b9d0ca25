"""Stage 5: the system prompt. It is assembled once for a run and never again, since every request begins with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

from fsm_agent.session.message import JsonObject, strict_json

MAX_CACHE_MARKS: Final = 4
"""Cache marks that the API takes in a request."""


def assembled(*parts: str | Mapping[str, Any] | Iterable[object] | None) -> list[JsonObject]:
    """The system prompt as text blocks, in the order given: strings, blocks, or lists of these. Blanks are left out.

    Put what never changes first, and what differs between runs (the directory, the date) last. Raises ValueError for
    what the API refuses: a block that is no text, more than four cache marks.

    >>> assembled("You are terse.", None, [{"type": "text", "text": "Directory: src"}, " "])
    [{'type': 'text', 'text': 'You are terse.'}, {'type': 'text', 'text': 'Directory: src'}]
    """
    blocks = [block for part in parts for block in _blocks(part)]
    marks = sum("cache_control" in block for block in blocks)
    if marks > MAX_CACHE_MARKS:
        raise ValueError(f"The system prompt has {marks} cache marks; the API takes {MAX_CACHE_MARKS}. Leave some out.")
    return blocks


def _blocks(part: object) -> Iterable[JsonObject]:
    if part is None:
        return []
    if isinstance(part, str):
        return [{"type": "text", "text": strict_json(part)}] if part.strip() else []
    if isinstance(part, Mapping):
        block: JsonObject = strict_json(cast("object", part))
        if block.get("type") != "text" or not isinstance(block.get("text"), str):
            raise ValueError(f"A block of the system prompt is {block!r}; it must be a text block.")
        return [block] if block["text"].strip() else []
    if isinstance(part, Iterable):
        return [block for inner in cast("Iterable[object]", part) for block in _blocks(inner)]
    raise ValueError(f"A part of the system prompt is a {type(part).__name__}; give a string or text blocks.")
