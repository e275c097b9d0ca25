"""From a script item to what goes over the wire: pure functions, no clock, no socket.

An answer becomes a sequence of *actions*: wire events (dicts with the API's own shapes), raw bytes, pauses, and
endings. The in-process model yields and raises them; the server encodes and sends them.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from json import JSONDecodeError, loads
from typing import Any, Literal, TypeAlias

from fsm_agent.testing.script import Reply
from fsm_agent.testing.shapes import JsonObject, as_list
from fsm_agent.testing.sse import compact_json
from fsm_agent.testing.tokens import estimate_tokens

__all__ = [
    "GARBAGE",
    "PING",
    "Action",
    "Answer",
    "Chunking",
    "Ending",
    "Partial",
    "Pause",
    "block_delta",
    "block_events",
    "block_start",
    "block_stop",
    "error_event",
    "fold_message",
    "message_delta",
    "message_start",
    "pieces",
    "reply_actions",
]

PING: JsonObject = {"type": "ping"}

GARBAGE = b'event: content_block_delta\ndata: {"type": "content_block_delta", "index": 0, \n\n'
"""An event whose data line is broken JSON."""


class Ending(StrEnum):
    """How a body ends, other than by being complete."""

    EOF = "eof"
    """The body ends properly, but too early."""
    CUT = "cut"
    """The connection closes without the end of the body."""
    RESET = "reset"
    """A TCP reset."""
    SILENCE = "silence"
    """Nothing more is sent until the client gives up."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait before the next action, in seconds of the event loop's clock."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Partial:
    """The first bytes of an event that is then cut (over HTTP; in process nothing of it arrives)."""

    event: JsonObject | bytes
    length: int


Action: TypeAlias = JsonObject | bytes | Pause | Partial | Ending


@dataclass(frozen=True, slots=True)
class Chunking:
    """How an answer is cut up. All sizes are upper bounds; `None` means not cut.

    >>> list(pieces("abcde", Chunking(text=2).text))
    ['ab', 'cd', 'e']
    """

    text: int | None = 48
    """Characters of text or thinking in one delta."""
    json: int | None = 48
    """Characters of tool input JSON in one delta."""
    wire: int | None = None
    """Bytes in one HTTP chunk, anywhere in the stream, also inside a character. `None`: one event a chunk."""
    newline: Literal["\n", "\r\n"] = "\n"
    pings: bool = True
    """Send a ping after the first block has started, as the API does."""
    delay: float = 0.0
    """Seconds before each event."""

    def __post_init__(self) -> None:
        for name in ("text", "json", "wire"):
            size = getattr(self, name)
            if size is not None and size < 1:
                raise ValueError(f"Chunking({name}={size}): give a size from 1, or None for no cutting.")


@dataclass(slots=True)
class Answer:
    """What one answer needs to know beside its script item."""

    message_id: str
    request_id: str
    model: str
    usage: JsonObject = field(default_factory=lambda: {"input_tokens": 1})
    """The input side of the usage, as counted by the server."""
    more: JsonObject = field(default_factory=dict[str, Any])
    """Further keys of the message, such as `diagnostics`."""
    new_tool_id: Callable[[], str] = lambda: "toolu_1"
    sign: Callable[[str], str] = lambda _thinking: "signature"
    """Signs a thinking text for `model`."""


def pieces(value: str, size: int | None) -> Iterator[str]:
    """A string in pieces of at most `size` characters; nothing for an empty string."""
    if size is None or len(value) <= size:
        if value:
            yield value
        return
    for start in range(0, len(value), size):
        yield value[start : start + size]


# ---- events, one maker for each


def message_start(answer: Answer, usage: JsonObject, more: JsonObject | None = None) -> JsonObject:
    """The first event of a stream; `usage` and `more` (keys of the message) win over what is counted."""
    message: JsonObject = {
        "model": answer.model,
        "id": answer.message_id,
        "type": "message",
        "role": "assistant",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "stop_details": None,
        "usage": {**_INPUT_USAGE, **answer.usage, "output_tokens": 1, "service_tier": "standard", **usage},
        **answer.more,
        **(more or {}),
    }
    return {"type": "message_start", "message": message}


_INPUT_USAGE: JsonObject = {
    "input_tokens": 1,
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": 0,
    "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
}
_DELTA_USAGE = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


def message_delta(answer: Answer, stop: str | None, usage: JsonObject, **more: Any) -> JsonObject:
    """The event with the stop reason and the final usage."""
    counted = {key: answer.usage.get(key, _INPUT_USAGE[key]) for key in _DELTA_USAGE}
    delta: JsonObject = {"stop_reason": stop, "stop_sequence": None, "stop_details": None} | more
    return {"type": "message_delta", "delta": delta, "usage": {**counted, "output_tokens": 1, **usage}}


def block_start(index: int, block: JsonObject) -> JsonObject:
    """A content block begins."""
    return {"type": "content_block_start", "index": index, "content_block": block}


def block_delta(index: int, kind: str, key: str, value: Any) -> JsonObject:
    """A piece of a content block."""
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, key: value}}


def block_stop(index: int) -> JsonObject:
    """A content block is complete."""
    return {"type": "content_block_stop", "index": index}


def error_event(error_type: str, message: str, request_id: str | None = None) -> JsonObject:
    """An error inside a 200 stream, as recorded: `details` is null."""
    error: JsonObject = {"details": None, "type": error_type, "message": message}
    return {"type": "error", "error": error, "request_id": request_id}


# ---- whole blocks


def block_events(index: int, block: JsonObject, answer: Answer, chunking: Chunking) -> Iterator[JsonObject]:
    """Start, deltas and stop of one block. A block type that is not streamed in pieces comes whole in its start."""
    kind = block["type"]
    if kind == "text":
        yield from _text_events(index, block, chunking)
    elif kind == "thinking":
        yield from _thinking_events(index, block, answer, chunking)
    elif kind in ("tool_use", "server_tool_use", "mcp_tool_use"):
        yield from _tool_events(index, block, answer, chunking)
    elif kind == "compaction":
        yield block_start(index, {"type": "compaction", "content": None})
        yield block_delta(index, "compaction_delta", "content", block.get("content"))
    else:
        yield block_start(index, block)
    yield block_stop(index)


def _text_events(index: int, block: JsonObject, chunking: Chunking) -> Iterator[JsonObject]:
    citations = as_list(block.get("citations"))
    start = {**block, "text": ""}
    yield block_start(index, start if citations is None else {**start, "citations": []})
    for citation in citations or []:
        yield block_delta(index, "citations_delta", "citation", citation)
    for piece in pieces(str(block.get("text", "")), chunking.text):
        yield block_delta(index, "text_delta", "text", piece)


def _thinking_events(index: int, block: JsonObject, answer: Answer, chunking: Chunking) -> Iterator[JsonObject]:
    thought = str(block.get("thinking", ""))
    signature = block.get("signature")
    yield block_start(index, {**block, "thinking": "", "signature": ""})
    for piece in pieces(thought, chunking.text):
        yield block_delta(index, "thinking_delta", "thinking", piece)
    yield block_delta(index, "signature_delta", "signature", answer.sign(thought) if signature is None else signature)


def _tool_events(index: int, block: JsonObject, answer: Answer, chunking: Chunking) -> Iterator[JsonObject]:
    given = block.get("input")
    identifier = answer.new_tool_id() if block.get("id") is None else block["id"]
    yield block_start(index, {**block, "id": identifier, "input": {}})
    yield block_delta(index, "input_json_delta", "partial_json", "")
    written = given if isinstance(given, str) else compact_json({} if given is None else given)
    for piece in pieces("" if written == "{}" else written, chunking.json):
        yield block_delta(index, "input_json_delta", "partial_json", piece)


# ---- whole answers


def reply_actions(reply: Reply, answer: Answer, chunking: Chunking) -> Iterator[Action]:
    """The wire events of a whole answer.

    >>> answer = Answer("msg_1", "req_1", "claude-sonnet-5-5")
    >>> [event["type"] for event in reply_actions(Reply("hi"), answer, Chunking(pings=False))]
    ['message_start', 'content_block_start', 'content_block_delta', 'content_block_stop', 'message_delta', \
'message_stop']
    """
    given = reply.usage.given()
    final = {"output_tokens": sum(map(estimate_tokens, reply.blocks))} | given
    yield message_start(answer, {key: value for key, value in given.items() if key != "output_tokens"}, reply.extra)
    for index, block in enumerate(reply.blocks):
        events = block_events(index, block, answer, chunking)
        yield next(events)
        if index == 0 and chunking.pings:
            yield PING
        yield from events
    stop = {"stop_sequence": reply.stop_sequence, "stop_details": reply.stop_details}
    yield message_delta(answer, reply.stop_reason, final, **stop)
    yield {"type": "message_stop"}


# ---- the other direction


def fold_message(events: Iterable[JsonObject]) -> JsonObject:
    """The message that a stream of events adds up to, as a request without `stream` would get it.

    A tool input that is no JSON becomes an empty object.

    >>> answer = Answer("msg_1", "req_1", "claude-sonnet-5-5")
    >>> message = fold_message(reply_actions(Reply("hi"), answer, Chunking()))
    >>> message["content"], message["stop_reason"]
    ([{'type': 'text', 'text': 'hi'}], 'end_turn')
    """
    message: JsonObject = {}
    inputs: dict[int, str] = {}
    for event in events:
        kind = event.get("type")
        if kind == "message_start":
            message = {**event["message"], "content": []}
        elif kind == "content_block_start":
            message["content"].append(dict(event["content_block"]))
        elif kind == "content_block_delta":
            _fold_delta(message["content"][event["index"]], event["delta"], event["index"], inputs)
        elif kind == "message_delta":
            message.update(event["delta"])
            message["usage"] = {**message["usage"], **event["usage"]}
    for index, written in inputs.items():
        message["content"][index]["input"] = _parsed_input(written)
    return message


def _fold_delta(block: JsonObject, delta: JsonObject, index: int, inputs: dict[int, str]) -> None:
    kind = delta["type"]
    if kind == "input_json_delta":
        inputs[index] = inputs.get(index, "") + delta["partial_json"]
    elif kind == "citations_delta":
        block["citations"] = [*(block.get("citations") or []), delta["citation"]]
    else:
        key = next((name for name in delta if name != "type"), None)
        if key is not None:
            held = block.get(key)
            block[key] = held + delta[key] if isinstance(held, str) and isinstance(delta[key], str) else delta[key]


def _parsed_input(written: str) -> Any:
    try:
        return loads(written) if written else {}
    except JSONDecodeError:
        return {}
