"""The steps of a `Stream`: an answer told event by event, also a wrong one."""

from collections.abc import Iterator
from enum import StrEnum

from fsm_agent.testing.events import (
    GARBAGE,
    PING,
    Action,
    Answer,
    Chunking,
    Ending,
    Pause,
    block_delta,
    block_events,
    block_start,
    block_stop,
    error_event,
    message_delta,
    message_start,
)
from fsm_agent.testing.script import Step, Stream
from fsm_agent.testing.shapes import JsonObject, as_object

__all__ = ["stream_actions"]


class _Open(StrEnum):
    NOTHING = "nothing"
    TEXT = "text"
    THINKING = "thinking"
    TOOL = "tool_use"


class _StreamTeller:
    """Turns the steps of a `Stream` into actions; remembers which block is open, so that steps stay short."""

    def __init__(self, stream: Stream, answer: Answer, chunking: Chunking) -> None:
        self.usage = stream.usage.given()
        self.answer = answer
        self.chunking = chunking
        self.index = 0
        self.open = _Open.NOTHING
        self.thought = ""

    def close(self) -> Iterator[Action]:
        if self.open is not _Open.NOTHING:
            self.open = _Open.NOTHING
            self.index += 1
            yield block_stop(self.index - 1)

    def begin(self, what: _Open, block: JsonObject) -> Iterator[Action]:
        yield from self.close()
        self.open = what
        yield block_start(self.index, block)

    def word(self, step: str) -> Iterator[Action]:
        """A step that is a bare word."""
        if step == "message_start":
            yield message_start(self.answer, {key: v for key, v in self.usage.items() if key != "output_tokens"})
        elif step == "content_block_stop":
            yield block_stop(self.index)
            self.index += 1
            self.open = _Open.NOTHING
        elif step == "message_stop":
            yield from self.close()
            yield {"type": "message_stop"}
        elif step == "ping":
            yield PING
        elif step == "garbage":
            yield GARBAGE
        elif step in _ENDINGS:
            yield Ending(step)
        else:
            raise ValueError(f"{step!r} is no step of a Stream; the words are {', '.join(_WORDS)}.")

    def pieces(self, key: str, step: JsonObject) -> Iterator[Action]:
        """A step that adds to the open block, opening one if need be."""
        what, kind, field_name, start = _PIECES[key]
        if self.open is not what:
            if start is None:
                raise ValueError(f"The step {step!r} needs an open tool_use; put a tool_use_open step before it.")
            yield from self.begin(what, dict(start))
        if key == "thinking_delta":
            self.thought += str(step[key])
        for _ in range(int(step.get("repeat", 1))):
            yield block_delta(self.index, kind, field_name, step[key])

    def named(self, step: JsonObject) -> Iterator[Action]:
        """A step that is an object with one telling key."""
        key = next((name for name in step if name in _PIECES or name in _OBJECTS), None)
        if key is None:
            known = ", ".join([*_PIECES, *_OBJECTS, "type"])
            raise ValueError(f"{step!r} is no step of a Stream; an object has one of the keys {known}.")
        if key in _PIECES:
            yield from self.pieces(key, step)
        elif key == "event":
            yield dict(step["event"])
        elif key == "sleep":
            yield Pause(float(step["sleep"]))
        elif key == "wait":
            yield Ending.SILENCE
        elif key == "ping":
            yield PING
        elif key == "error":
            message = step.get("message") or _ERROR_WORDS.get(str(step["error"]), str(step["error"]))
            yield error_event(str(step["error"]), str(message), self.answer.request_id)
        elif key == "message_delta":
            yield from self.close()
            yield self.delta(step)
        else:
            yield from self.opening(key, step)

    def opening(self, key: str, step: JsonObject) -> Iterator[Action]:
        if key == "thinking_open":
            self.thought = ""
            yield from self.begin(_Open.THINKING, {"type": "thinking", "thinking": "", "signature": ""})
        elif key == "signature_delta":
            given = step["signature_delta"]
            signature = self.answer.sign(self.thought) if given is None else given
            yield block_delta(self.index, "signature_delta", "signature", signature)
        else:
            identifier, name = step["tool_use_open"]
            identifier = self.answer.new_tool_id() if identifier is None else identifier
            start: JsonObject = {"type": "tool_use", "id": identifier, "name": name, "input": {}}
            yield from self.begin(_Open.TOOL, start)

    def delta(self, step: JsonObject) -> JsonObject:
        usage = self.usage | (as_object(step.get("usage")) or {})
        more = {key: step[key] for key in ("stop_sequence", "stop_details") if key in step}
        return message_delta(self.answer, step["message_delta"], usage, **more)

    def tell(self, step: Step) -> Iterator[Action]:
        """The actions of one step."""
        if isinstance(step, bytes):
            yield step
        elif isinstance(step, str):
            yield from self.word(step)
        elif step.get("type") in _WIRE_EVENTS:
            yield step
        elif "type" in step:
            yield from self.close()
            yield from block_events(self.index, step, self.answer, self.chunking)
            self.index += 1
        else:
            yield from self.named(step)


_ERROR_WORDS = {"overloaded_error": "Overloaded", "api_error": "Internal server error"}
_WORDS = ("message_start", "content_block_stop", "message_stop", "ping", "garbage", *Ending)
_ENDINGS = frozenset(str(ending) for ending in Ending)
_OBJECTS = (
    "event",
    "sleep",
    "wait",
    "ping",
    "error",
    "message_delta",
    "thinking_open",
    "signature_delta",
    "tool_use_open",
)
_PIECES: dict[str, tuple[_Open, str, str, JsonObject | None]] = {
    "text": (_Open.TEXT, "text_delta", "text", {"type": "text", "text": ""}),
    "thinking_delta": (
        _Open.THINKING,
        "thinking_delta",
        "thinking",
        {"type": "thinking", "thinking": "", "signature": ""},
    ),
    "partial_json": (_Open.TOOL, "input_json_delta", "partial_json", None),
}
_WIRE_EVENTS = (
    *("message_start", "content_block_start", "content_block_delta", "content_block_stop"),
    *("message_delta", "message_stop", "ping", "error"),
)


def stream_actions(stream: Stream, answer: Answer, chunking: Chunking) -> Iterator[Action]:
    """The actions of an answer told step by step. The steps:

    - words: `message_start`, `content_block_stop`, `message_stop`, `ping`; `eof` (early but proper end), `cut`
      (connection closed), `reset` (TCP reset), `silence`, `garbage` (a data line that is no JSON);
    - `{"text": ...}`, `{"thinking_delta": ...}`, `{"partial_json": ...}`: a delta, with `repeat` many. Text and
      thinking open their block if it is not open; another open block is stopped first;
    - `{"tool_use_open": [id, name]}`, `{"thinking_open": 1}`, `{"signature_delta": signature or None}`;
    - `{"message_delta": stop_reason, "usage": {...}}` (stops an open block first, as the API does when it truncates);
    - `{"sleep": seconds}`, `{"wait": "abort"}` (silence until the client goes), `{"error": type, "message": ...}`;
    - a content block (`{"type": "tool_use", ...}`) stands for its start, deltas and stop;
    - `{"event": {...}}`, a wire event as it is, also an unknown one; `bytes`, as they are.
    """
    teller = _StreamTeller(stream, answer, chunking)
    for step in stream.steps:
        yield from teller.tell(step)
