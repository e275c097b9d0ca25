"""An estimate of tokens, good enough to fill a context window with.

There is no official local tokenizer for Claude models. The estimate is the length of the compact JSON divided by
`characters_per_token` (default 4.0, a customary rule of thumb for English); an image or a document counts a flat
number, whatever the length of its base64 text. Two equal requests always have equal estimates, and the estimate of a
request is the sum of the estimates of its parts, so that cache accounting adds up exactly.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from typing import Any

from fsm_agent.testing.shapes import JsonObject, as_object, is_list, is_object, objects
from fsm_agent.testing.sse import compact_json

__all__ = ["CHARACTERS_PER_TOKEN", "MEDIA_TOKENS", "Segment", "estimate_tokens", "prompt_segments", "prompt_tokens"]

CHARACTERS_PER_TOKEN = 4.0
MEDIA_TOKENS = 1600
"""Tokens of one image, about what 1568 by 1568 pixels cost by the formula of the vision guide (w * h / 750, capped)."""


def estimate_tokens(value: object, characters_per_token: float = CHARACTERS_PER_TOKEN) -> int:
    """Tokens of any JSON value, at least 1.

    >>> estimate_tokens({"type": "text", "text": "hello"})
    8
    """
    media = sum(1 for _ in _media_sources(value))
    characters = len(compact_json(_without_media(value) if media else value))
    return max(1, ceil(characters / characters_per_token)) + media * MEDIA_TOKENS


def _is_media(block: JsonObject) -> bool:
    return block.get("type") == "base64" and isinstance(block.get("data"), str)


def _media_sources(value: object) -> Iterator[JsonObject]:
    if is_object(value):
        if _is_media(value):
            yield value
        else:
            yield from _media_sources(list(value.values()))
    elif is_list(value):
        for inner in value:
            yield from _media_sources(inner)


def _without_media(value: object) -> Any:
    if is_object(value):
        media = _is_media(value)
        return {key: _without_media(inner) for key, inner in value.items() if not (media and key == "data")}
    return [_without_media(inner) for inner in value] if is_list(value) else value


@dataclass(frozen=True, slots=True)
class Segment:
    """One cacheable part of a prompt: a tool, a system block or a content block, in the order the API reads them."""

    part: str
    """`tools`, `system` or the role of the message."""
    content: str
    """The part as canonical JSON, without its cache mark."""
    tokens: int
    mark: JsonObject | None
    """The `cache_control` object that it carries."""
    cacheable: bool
    """Whether a top-level `cache_control` may settle on it (not on thinking, not on an empty text)."""


def prompt_segments(body: JsonObject, characters_per_token: float = CHARACTERS_PER_TOKEN) -> list[Segment]:
    """The parts of a request in cache order: tools, system, messages.

    A string and a list with one text block are the same prompt, so they make the same segment.

    >>> [segment.part for segment in prompt_segments({"system": "s", "messages": [{"role": "user", "content": "q"}]})]
    ['system', 'user']
    """
    segments = [_segment("tools", tool, characters_per_token) for tool in objects(body.get("tools"))]
    segments += [_segment("system", block, characters_per_token) for block in _blocks(body.get("system"))]
    for message in objects(body.get("messages")):
        role = str(message.get("role"))
        segments += [_segment(role, block, characters_per_token) for block in _blocks(message.get("content"))]
    return segments


def prompt_tokens(body: JsonObject, characters_per_token: float = CHARACTERS_PER_TOKEN) -> int:
    """Input tokens of a request: the sum over its segments, at least 1."""
    return max(1, sum(segment.tokens for segment in prompt_segments(body, characters_per_token)))


def _blocks(content: object) -> list[JsonObject]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return objects(content)


def _segment(part: str, block: JsonObject, characters_per_token: float) -> Segment:
    mark = _mark(block)
    bare = block if mark is None else _without_marks(block)
    return Segment(
        part=part,
        content=compact_json(bare),
        tokens=estimate_tokens(bare, characters_per_token),
        mark=mark,
        cacheable=block.get("type") not in ("thinking", "redacted_thinking") and block.get("text") != "",
    )


def _mark(block: JsonObject) -> JsonObject | None:
    """The block's own mark, or that of a block inside a tool result, which the API counts too."""
    own = as_object(block.get("cache_control"))
    if own is not None:
        return own
    inner = [as_object(part.get("cache_control")) for part in objects(block.get("content"))]
    return next((mark for mark in reversed(inner) if mark is not None), None)


def _without_marks(block: JsonObject) -> JsonObject:
    bare = {key: value for key, value in block.items() if key != "cache_control"}
    content = bare.get("content")
    if is_list(content):
        bare["content"] = [_without_marks(part) if is_object(part) else part for part in content]
    return bare
