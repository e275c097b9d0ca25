"""Stage 3: old tool results are replaced by a note.

Changing an old message costs the prompt cache from there on. So this happens only under pressure, only if it frees a
good part of the window at once, and never to the newest results.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fsm_agent.context.tool_result_budget import CUT_MARK
from fsm_agent.context.view import Draft, pressure_threshold
from fsm_agent.session.history import History
from fsm_agent.session.message import (
    BYTES_PER_TOKEN,
    JsonObject,
    blocks_of,
    encoded,
    inner_blocks,
    media_of,
    with_content,
)

STAGE: Final = "microcompact"
KEEP_RESULTS: Final = 5
"""The newest results that stay, whatever their size."""
MIN_CHARS: Final = 400
"""A shorter result is not worth a note."""
MIN_FREED: Final = 0.1
"""Share of the window that must be freed."""
NOTE: Final = "[The result of this old call was removed to save room.]"


def apply(draft: Draft) -> None:
    """The stage: acts under pressure, and only if it frees enough."""
    limits = draft.view.limits
    before = draft.tokens
    if before < pressure_threshold(limits):
        return
    changed = cleared(draft.history)
    freed = sum(
        draft.history[index].tokens - len(encoded(message)) // BYTES_PER_TOKEN for index, message in changed.items()
    )
    share = freed / max(1, draft.view.fixed_tokens + draft.history.tokens)
    if share * before < MIN_FREED * limits.context_window:
        return
    count = sum(_differences(draft.history, index, message) for index, message in changed.items())
    draft.replace_messages(STAGE, changed, f"{count} old tool results were replaced by a note.")


def cleared(history: History, keep: int = KEEP_RESULTS) -> dict[int, Mapping[str, Any]]:
    """The messages of old results as they are to be, by index: all but the newest `keep` results have a note."""
    changed: dict[int, Mapping[str, Any]] = {}
    seen = 0
    for index in range(len(history) - 1, -1, -1):
        entry = history[index]
        if not entry.results:
            continue
        if seen >= keep and entry.tokens * BYTES_PER_TOKEN > MIN_CHARS:
            blocks = [_cleared(block) for block in blocks_of(entry.message)]
            if any(new is not old for new, old in zip(blocks, blocks_of(entry.message), strict=True)):
                changed[index] = with_content(entry.message, blocks)
        seen += len(entry.results)
    return changed


def _cleared(block: JsonObject) -> JsonObject:
    if block.get("type") != "tool_result":
        return block
    content = block.get("content")
    texts = [content] if isinstance(content, str) else [str(part.get("text", "")) for part in inner_blocks(block)]
    has_media = any(True for _ in media_of({"content": [block]}))
    if not has_media and sum(map(len, texts)) <= MIN_CHARS:
        return block
    return {**block, "content": "\n".join([NOTE, *_notices(texts)])}


def _notices(texts: list[str]) -> list[str]:
    """The notice of a cut stays: it names the file that has the whole result."""
    lines = (text[text.rindex(CUT_MARK) :] for text in texts if CUT_MARK in text)
    return [line for line in lines if len(line) <= MIN_CHARS // 2]


def _differences(history: History, index: int, message: Mapping[str, Any]) -> int:
    pairs = zip(blocks_of(message), blocks_of(history[index].message), strict=True)
    return sum(new is not old for new, old in pairs)
