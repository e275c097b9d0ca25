"""Stage 1: no tool result, and no message of results, is longer than its budget. The whole text goes to a file.

Results are cut when they enter the history (`bounded_blocks`), so they were never sent in any other form and the cut is
the same for ever. As a stage it does the same to what came from outside: an earlier run, another program.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from fsm_agent.context.view import Draft, Store, mark_seen, new_entries
from fsm_agent.machine import LoopLimits
from fsm_agent.session.message import JsonObject, blocks_of, inner_blocks, payload_size, with_content

STAGE: Final = "tool_result_budget"
PREVIEW_CHARS: Final = 2_000
"""Characters that stay of a result whose whole text is in a file (observed in the reference loop: 2 kB)."""
CUT_MARK: Final = "[Cut: "
"""How every notice of a cut begins."""


def bounded_result(text: str, limit: int, store: Store | None = None, call_id: str = "result") -> str:
    """The text if it has at most `limit` characters, else its beginning and a notice; never more than `limit`.

    With a store the whole text is saved and the notice names the file. The cut never splits a character.

    >>> bounded_result("x" * 1_000, 200)[-94:]
    'xxxxxxxxxx\\n[Cut: this is the beginning of a result of 1000 characters. The rest was not kept.]'
    """
    if len(text) <= limit:
        return text
    path = None if store is None else store.save(call_id, text)
    if path is None:
        notice = f"{CUT_MARK}this is the beginning of a result of {len(text)} characters. The rest was not kept.]"
    else:
        notice = f"{CUT_MARK}this is the beginning of a result of {len(text)} characters. All of it is in {path}]"
    room = limit - len(notice) - 1
    if room < 0:
        return text[:limit]
    kept = room if path is None else min(room, PREVIEW_CHARS)
    return f"{text[:kept]}\n{notice}"


def bounded_blocks(
    blocks: Sequence[JsonObject],
    limits: LoopLimits,
    store: Store | None = None,
    caps: Sequence[int | None] | None = None,
) -> list[JsonObject]:
    """The tool results of one message, each within `limits.tool_result_max_chars` (and its own cap, if it has a smaller
    one) and all together within `limits.message_results_max_chars`. Blocks that need no cut are the same objects.

    Where the sum is too large, the longest results are cut, all to one length, as long as it needs to be.
    """
    most = limits.tool_result_max_chars
    own = [most if cap is None else min(cap, most) for cap in caps or [None] * len(blocks)]
    sizes = [_size(block) for block in blocks]
    common = _common_limit(
        [min(size, cap) for size, cap in zip(sizes, own, strict=True)], limits.message_results_max_chars
    )
    return [
        _bounded(block, min(common, cap), store) if size > min(common, cap) else block
        for block, size, cap in zip(blocks, sizes, own, strict=True)
    ]


def apply(draft: Draft) -> None:
    """The stage: results that are new to this history and over budget."""
    history, limits = draft.view.history, draft.view.limits
    least = min(limits.tool_result_max_chars, limits.message_results_max_chars)
    changed: dict[int, Mapping[str, Any]] = {}
    cut = 0
    for index, entry in new_entries(history, STAGE):
        if not entry.results or len(entry.data) <= least:
            continue
        given = [block for block in blocks_of(entry.message) if block.get("type") == "tool_result"]
        bounded = bounded_blocks(given, limits, draft.view.store)
        replaced = {id(old): new for old, new in zip(given, bounded, strict=True) if new is not old}
        if replaced:
            cut += len(replaced)
            blocks = [replaced.get(id(block), block) for block in blocks_of(entry.message)]
            changed[index] = with_content(entry.message, blocks)
    mark_seen(history, STAGE)
    draft.replace_messages(STAGE, changed, f"{cut} tool results were cut to their budget.")


def _size(block: Mapping[str, Any]) -> int:
    """Characters that a result adds to a request; the base64 text of media is not counted."""
    content = block.get("content")
    if isinstance(content, str):
        return len(content)
    return sum(map(_part_size, inner_blocks(block)))


def _part_size(part: JsonObject) -> int:
    if part.get("type") == "text":
        return len(str(part.get("text", "")))
    if payload_size(part):
        return 0
    return len(json.dumps(part, ensure_ascii=False))


def _common_limit(sizes: list[int], total: int) -> int:
    """The largest length to which every size must be cut for their sum to be at most `total`.

    >>> _common_limit([10, 100, 100], 110), _common_limit([10, 20], 110)
    (50, 110)
    """
    if sum(sizes) <= total:
        return total
    left = total
    for position, size in enumerate(sorted(sizes)):
        share = left // (len(sizes) - position)
        if size > share:
            return share
        left -= size
    return total


def _bounded(block: JsonObject, limit: int, store: Store | None) -> JsonObject:
    call_id = str(block.get("tool_use_id"))
    content = block.get("content")
    if isinstance(content, str):
        return {**block, "content": bounded_result(content, limit, store, call_id)}
    parts = inner_blocks(block)
    media = [part for part in parts if _part_size(part) == 0 and part.get("type") != "text"]
    texts = [part for part in parts if not any(part is one for one in media)]
    whole = "\n".join(
        str(part.get("text", "")) if part.get("type") == "text" else json.dumps(part, ensure_ascii=False)
        for part in texts
    )
    text = bounded_result(whole, limit, store, call_id)
    return {**block, "content": [*([{"type": "text", "text": text}] if text.strip() else []), *media]}
