"""An estimate of tokens, good enough to fill a context window with.

There is no official local tokenizer for Claude models. The estimate is the length of the compact JSON divided by
`characters_per_token` (default 4.0, a customary rule of thumb for English); an image or a document counts a flat
number, whatever the length of its base64 text. Two equal requests always have equal estimates, and the estimate of a
request is the sum of the estimates of its parts, so that cache accounting adds up exactly.
"""

from collections.abc import Iterator
from math import ceil
from typing import Any

from fsm_agent.testing.shapes import JsonObject, is_list, is_object
from fsm_agent.testing.sse import compact_json

__all__ = ["CHARACTERS_PER_TOKEN", "MEDIA_TOKENS", "estimate_tokens", "tokens_of_json"]

CHARACTERS_PER_TOKEN = 4.0
MEDIA_TOKENS = 1600
"""Tokens of one image, about what 1568 by 1568 pixels cost by the formula of the vision guide (w * h / 750, capped)."""


def estimate_tokens(value: object, characters_per_token: float = CHARACTERS_PER_TOKEN) -> int:
    """Tokens of any JSON value, at least 1.

    >>> estimate_tokens({"type": "text", "text": "hello"})
    8
    """
    return tokens_of_json(compact_json(value), value, characters_per_token)


def tokens_of_json(written: str, value: object, characters_per_token: float = CHARACTERS_PER_TOKEN) -> int:
    """The same, when the value is written already."""
    media = 0
    if '"base64"' in written:
        media = sum(1 for _ in _media_sources(value))
        written = compact_json(_without_media(value))
    return max(1, ceil(len(written) / characters_per_token)) + media * MEDIA_TOKENS


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
