"""Raw events as the SDK's own types, for code that is written against them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

__all__ = ["typed_event"]


@cache
def _types() -> Mapping[str, Any]:
    from anthropic import types

    return {
        "message_start": types.RawMessageStartEvent,
        "message_delta": types.RawMessageDeltaEvent,
        "message_stop": types.RawMessageStopEvent,
        "content_block_start": types.RawContentBlockStartEvent,
        "content_block_delta": types.RawContentBlockDeltaEvent,
        "content_block_stop": types.RawContentBlockStopEvent,
    }


def typed_event(event: Mapping[str, Any]) -> Any:
    """The event as an `anthropic.types.RawMessageStreamEvent`; a plain `anthropic.BaseModel` if its type is unknown.

    As in the SDK, nothing is validated, and what a type does not know stays on it as it came.

    >>> typed_event({"type": "content_block_stop", "index": 0})
    RawContentBlockStopEvent(index=0, type='content_block_stop')
    """
    known = _types().get(str(event.get("type")))
    if known is None:
        from anthropic import BaseModel

        return BaseModel.construct(**event)
    return known.construct(**event)
