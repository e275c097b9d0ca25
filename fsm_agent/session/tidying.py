"""What of a message can be sent: the API refuses blank texts, unsigned thinking and a thought at the very end."""

from collections.abc import Mapping
from typing import Any

from fsm_agent.session.message import (
    THINKING,
    JsonObject,
    Message,
    blocks_of,
    inner_blocks,
    is_blank_text,
    is_signed,
    with_content,
)


def tidied(message: Mapping[str, Any]) -> Message | None:
    """The message as it may be sent, or None if nothing is left of it. What needs no edit keeps its very blocks.

    - A blank text block is left out, also inside a tool result (refused as "text content blocks must be non-empty").
    - Thinking without a signature is left out: no later request with it would be accepted.
    - Thinking that nothing follows is left out ("the final block in an assistant message cannot be `thinking`").

    >>> tidied({"role": "assistant", "content": [{"type": "text", "text": " "}]}) is None
    True
    """
    content = message.get("content")
    if isinstance(content, str):
        return _as_message(message) if content.strip() else None
    blocks = blocks_of(message)
    kept = [block for block in map(_tidied_block, blocks) if block is not None]
    while kept and kept[-1].get("type") in THINKING:
        kept.pop()
    if not kept:
        return None
    if len(kept) == len(blocks) and all(new is old for new, old in zip(kept, blocks, strict=True)):
        return _as_message(message)
    return with_content(message, kept)


def _as_message(message: Mapping[str, Any]) -> Message:
    return message if isinstance(message, Message) else Message(message)


def _tidied_block(block: JsonObject) -> JsonObject | None:
    kind = block.get("type")
    if kind == "text":
        return None if is_blank_text(block) else block
    if kind in THINKING:
        return block if is_signed(block) else None
    if kind == "tool_result" and any(is_blank_text(part) for part in inner_blocks(block)):
        return {**block, "content": [part for part in inner_blocks(block) if not is_blank_text(part)]}
    return block


def without_cache_marks(message: Message, most: int) -> tuple[Message, int]:
    """The message without its first `most` cache marks, and how many it lost.

    >>> from fsm_agent.session.message import Message
    >>> block = {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}
    >>> without_cache_marks(Message({"role": "user", "content": [block, block]}), 1)[0]["content"][0]
    {'type': 'text', 'text': 'a'}
    """
    lost = 0

    def bare(block: JsonObject) -> JsonObject:
        nonlocal lost
        inner = inner_blocks(block)
        if any("cache_control" in part for part in inner):
            block = {**block, "content": [bare(part) for part in inner]}
        if "cache_control" not in block or lost == most:
            return block
        lost += 1
        return {key: value for key, value in block.items() if key != "cache_control"}

    return with_content(message, [bare(block) for block in blocks_of(message)]), lost


def without_thinking(message: Message) -> Message | None:
    """The message for a model that did not make it, or None if that leaves nothing."""
    kept = [block for block in blocks_of(message) if block.get("type") not in THINKING]
    return with_content(message, kept) if kept else None
