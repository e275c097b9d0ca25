"""The model's reply, put together from the raw events of its stream.

What is streamed may be cut anywhere, so nothing is taken for whole that did not say so: a block is complete after its
`content_block_stop`, a reply is finished when it has told its stop reason.
"""

from __future__ import annotations

import re
from collections.abc import Container
from typing import Any, Final, NoReturn, cast

from fsm_agent.model.blocks import Block, ToolCall, parsed_input
from fsm_agent.model.faults import PROTOCOL, StreamFault
from fsm_agent.model.json_types import as_object, as_text
from fsm_agent.model.usage import Usage

__all__ = ["ReplyAssembler", "ToolCall"]

# What the API takes back, by its own error texts (`tool_use.id: String should match pattern ...`).
_TOOL_USE_ID: Final = re.compile(r"[a-zA-Z0-9_-]+")
_LONGEST_NAME: Final = 200
_THINKING: Final = frozenset({"thinking", "redacted_thinking"})
_UNSEEN: Final = _THINKING | {
    *("compaction", "fallback", "mcp_tool_listing", "mcp_tool_use", "server_tool_use", "text", "tool_use")
}
# With these a tool use that was never closed is the end of a whole message only by mistake.
_WHOLE_STOPS: Final = frozenset({"tool_use", "end_turn", "stop_sequence"})
_RESUMED_STOPS: Final = frozenset({"pause_turn", "compaction", "tool_use"})
# Characters of server tool results for one token. Measured on recordings of search and fetch loops: 2.9 to 3.5.
_CHARS_PER_TOKEN: Final = 3


_LATE_COUNTS: Final = frozenset({"output_tokens", "server_tool_use"})
"""What only the end of a reply can know; all else it may tell again."""


class ReplyAssembler:
    """One reply, fed with the events of its stream in order.

    >>> reply = ReplyAssembler()
    >>> for event in [
    ...     {"type": "message_start", "message": {"id": "msg_1", "model": "m", "usage": {"input_tokens": 3}}},
    ...     {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    ...     {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi."}},
    ...     {"type": "content_block_stop", "index": 0},
    ...     {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
    ... ]:
    ...     _ = reply.feed(event)
    >>> reply.message(), reply.finished, reply.usage.total
    ({'role': 'assistant', 'content': [{'type': 'text', 'text': 'Hi.'}]}, True, 5)

    `known_ids` are the tool use ids of the conversation so far: one that comes again gets a fresh id, before anything
    runs. So does one that the API would not take back. `waiting_ids` are the server tool uses of earlier messages that
    a result may still come for; None takes every result on trust.
    """

    def __init__(self, known_ids: Container[str] = (), waiting_ids: Container[str] | None = None) -> None:
        self.message_id = ""
        self.model = ""
        self.stop_reason: str | None = None
        self.stop_sequence: str | None = None
        self.stop_details: dict[str, Any] | None = None
        self.container: dict[str, Any] | None = None
        """The code execution container that the reply used, if any."""
        self.tool_calls: list[ToolCall] = []
        """The complete calls of client tools, in their order."""
        self.started = False
        self.renamed: dict[int, str] = {}
        """Fresh tool use ids by the index of their block."""
        self._known_ids = known_ids
        self._waiting_ids = waiting_ids
        self._own_ids: set[str] = set()
        self._blocks: dict[int, Block] = {}
        self._open: dict[int, Block] = {}
        self._stopped = False
        self._first_usage: dict[str, Any] = {}
        self._last_usage: dict[str, Any] = {}
        self._final_usage: Usage | None = None

    # ---- in

    def feed(self, event: dict[str, Any]) -> ToolCall | None:
        """Take the next event; returns the client tool call that it completes, if it does.

        Pings and events of an unknown type pass; so does whatever follows `message_stop`. Raises `StreamFault` for an
        event that cannot stand where it stands; what was received before it remains.
        """
        kind = event.get("type")
        if kind == "content_block_delta":
            index, delta = event.get("index"), event.get("delta")
            block = self._open.get(index) if type(index) is int else None
            if block is not None and type(delta) is dict:
                block.extend(cast("dict[str, Any]", delta))
            elif not self._stopped:
                self._misplaced(event)
            return None
        if self._stopped:
            return None
        if kind == "message_start":
            self._start(event)
        elif kind == "content_block_start":
            self._begin_block(event)
        elif kind == "content_block_stop":
            return self._end_block(event)
        elif kind == "message_delta":
            self._end_message(event)
        elif kind == "message_stop":
            self._stop(event)
        return None

    def _start(self, event: dict[str, Any]) -> None:
        message = as_object(event.get("message"))
        if self.started or message is None:
            self._misplaced(event)
        self.started = True
        self.message_id = as_text(message.get("id"))
        self.model = as_text(message.get("model"))
        self._first_usage = as_object(message.get("usage")) or {}
        self.container = as_object(message.get("container"))

    def _begin_block(self, event: dict[str, Any]) -> None:
        index, content_block = event.get("index"), as_object(event.get("content_block"))
        fits = self.started and self.stop_reason is None and content_block is not None
        if not fits or type(index) is not int or index in self._blocks:
            self._misplaced(event)
        block = Block.begin(content_block or {})
        if block.is_client_call:
            self._name(block, index)
        self._blocks[index] = self._open[index] = block

    def _name(self, block: Block, index: int) -> None:
        """Give the call an id and a name that can be sent back."""
        given = as_text(block.start.get("id"))
        wanted = given if _TOOL_USE_ID.fullmatch(given) else re.sub(r"[^a-zA-Z0-9_-]", "_", given) or "toolu"
        fresh, count = wanted, 1
        while fresh in self._own_ids or fresh in self._known_ids:
            count += 1
            fresh = f"{wanted}_{count}"
        self._own_ids.add(fresh)
        if fresh != given:
            self.renamed[index] = fresh
        name = as_text(block.start.get("name"))
        block.start |= {"id": fresh, "name": name[:_LONGEST_NAME] if name.strip() else "unnamed"}

    def _end_block(self, event: dict[str, Any]) -> ToolCall | None:
        index = event.get("index")
        block = self._open.pop(index, None) if type(index) is int else None
        if block is None:
            self._misplaced(event)
        if block.is_client_call:
            raw = block.raw_json
            value, error = parsed_input(raw)
            start = block.start
            block.call = ToolCall(start["id"], start["name"], value, error, raw, len(self.tool_calls))
            self.tool_calls.append(block.call)
        block.finish()
        return block.call

    def _end_message(self, event: dict[str, Any]) -> None:
        delta = as_object(event.get("delta"))
        if not self.started or delta is None:
            self._misplaced(event)
        self._final_usage = None
        self._last_usage |= {k: v for k, v in (as_object(event.get("usage")) or {}).items() if v is not None}
        told = delta.get("stop_reason")
        if told is None:
            return
        reason = told if isinstance(told, str) else repr(told)
        if reason in _WHOLE_STOPS and any(block.is_client_call for block in self._open.values()):
            raise StreamFault(PROTOCOL, f"The message ended with {reason!r} inside a tool use.")
        self.stop_reason = reason
        self.stop_sequence = as_text(delta.get("stop_sequence")) or None
        self.stop_details = as_object(delta.get("stop_details"))
        self.container = as_object(delta.get("container")) or self.container
        self._close_texts()

    def _close_texts(self) -> None:
        """A text is whole when its message is, though the end of its block was left out."""
        for index, block in list(self._open.items()):
            if block.kind == "text":
                del self._open[index]
                block.finish()

    def _stop(self, event: dict[str, Any]) -> None:
        if not self.started or self.stop_reason is None:
            self._misplaced(event)
        self._stopped = True

    def _misplaced(self, event: dict[str, Any]) -> NoReturn:
        kind, index = event.get("type"), event.get("index")
        where = "" if index is None else f" of block {index!r}"
        after = "before `message_start`" if not self.started else f"after {len(self._blocks)} blocks"
        if self.stop_reason is not None:
            after = f"after the stop reason {self.stop_reason!r}"
        raise StreamFault(PROTOCOL, f"The event {kind!r}{where} cannot stand where it does, {after}.")

    # ---- out

    @property
    def finished(self) -> bool:
        """The reply has told its stop reason: it is logically whole, with or without a `message_stop`."""
        return self.stop_reason is not None

    @property
    def usage(self) -> Usage:
        """What is known of the tokens used so far. Counts of `message_delta` are cumulative and take the place of the
        first ones."""
        if not self.started:
            return Usage()
        if self._final_usage is None:
            usage = self._counted()
            if not self.finished:
                return usage
            self._final_usage = usage
        return self._final_usage

    def _counted(self) -> Usage:
        final = {key: value for key, value in self._last_usage.items() if value or key == "iterations"}
        usage = Usage.from_wire({**self._first_usage, **final})
        if final.keys() <= _LATE_COUNTS:
            return usage
        before = Usage.from_wire(self._first_usage)
        grown = usage.total - usage.output_tokens > before.total - before.output_tokens
        if usage.context is None and grown:
            # A loop of server tools: each iteration has counted its input again. The context is what the reply began
            # with and what it added.
            added = before.total - before.output_tokens + self._chars() // _CHARS_PER_TOKEN
            return usage.model_copy(update={"context": min(usage.total, added + usage.output_tokens)})
        return usage

    def _chars(self) -> int:
        return sum(len(str(block.wire)) for block in self._blocks.values())

    @property
    def blocks(self) -> list[dict[str, Any]]:
        """The complete blocks, in the order in which they began."""
        return [block.wire for block in self._blocks.values() if block.complete]

    @property
    def text(self) -> str:
        """All text received so far, blocks joined without anything between them."""
        return "".join(block.text for block in self._blocks.values())

    @property
    def has_complete_text(self) -> bool:
        """There is a complete text block that is not blank."""
        return any(block.complete and block.text.strip() for block in self._blocks.values())

    @property
    def has_visible_output(self) -> bool:
        """A reader of the reply would see something: text, or a block that is neither thinking nor a tool's."""
        return any(
            block.text.strip() or not (block.kind in _UNSEEN or block.answers is not None)
            for block in self._blocks.values()
            if block.complete
        )

    def message(self) -> dict[str, Any]:
        """The whole message as it is to be sent back; its content may be empty.

        All complete blocks in their order, thinking byte for byte. Left out is what the API would refuse: blank
        texts, thinking without a signature or at the end, and server tool uses that no result will follow.
        """
        resumed = self.stop_reason in _RESUMED_STOPS or bool(self.tool_calls)
        kept = [block for block in self._blocks.values() if block.complete and _fit(block)]
        return _message(self._paired(kept, resumed=resumed))

    def text_message(self) -> dict[str, Any] | None:
        """The visible part of a reply that is not kept whole, or None if nothing of it is visible.

        All text received, also of a block that was cut; signed thinking before it; server tools with their results.
        Never a client tool use.
        """
        kept = [
            block
            for block in self._blocks.values()
            if (block.complete or block.kind == "text") and not block.is_client_call and _fit(block)
        ]
        kept = self._paired(kept, resumed=False)
        uses = {block.id for block in kept if block.is_server_call}
        resumes = any(block.answers is not None and block.answers not in uses for block in kept)
        if not resumes and not any(block.text for block in kept):
            return None
        message = _message(kept)
        return message if message["content"] else None

    def _paired(self, blocks: list[Block], *, resumed: bool) -> list[Block]:
        """Without server tool results that answer nothing and, unless the reply is `resumed`, without the uses that
        have no result."""
        kept: list[Block] = []
        waiting: set[str | None] = set()
        seen: set[str | None] = set()
        for block in blocks:
            if block.is_server_call:
                if block.id in seen:
                    continue
                waiting.add(block.id)
                seen.add(block.id)
            elif block.answers is not None:
                if block.answers not in waiting and (block.answers in seen or not self._awaited(block.answers)):
                    continue
                waiting.discard(block.answers)
                seen.add(block.answers)
            kept.append(block)
        return [block for block in kept if resumed or not (block.is_server_call and block.id in waiting)]

    def _awaited(self, name: str) -> bool:
        return self._waiting_ids is None or name in self._waiting_ids


def _fit(block: Block) -> bool:
    """Whether the API would take the block back."""
    if block.kind == "text":
        return bool(block.text.strip())
    if block.kind == "thinking":
        return bool(block.wire["signature"])
    return bool(block.kind != "redacted_thinking" or block.wire.get("data"))


def _message(blocks: list[Block]) -> dict[str, Any]:
    """The final block of a message cannot be thinking."""
    end = len(blocks)
    while end and blocks[end - 1].kind in _THINKING:
        end -= 1
    return {"role": "assistant", "content": [block.wire for block in blocks[:end]]}
