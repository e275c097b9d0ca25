"""A Messages API that answers with bytes that were made before: it must never be what limits a client.

It runs in a process of its own. What it answers is said by the path:

- `/turns/N`: N tool turns, then a text, then again from the start; counted for each connection. 13 events a turn.
- `/deltas/N`: one text of N deltas.
- `/silent/0`: the beginning of a text, and then nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
from collections.abc import Generator
from typing import Any

__all__ = ["canned_server", "text_events", "tool_events", "wire"]

MODEL = "claude-sonnet-5-5"
RESULT_CHARS = 1_000
"""Characters of a tool result."""
_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\nrequest-id: req_1\r\n"
    b"transfer-encoding: chunked\r\n\r\n"
)
_DELTAS_AT_ONCE = 1_000


def _start(number: int) -> dict[str, Any]:
    usage = {"input_tokens": 1_000, "output_tokens": 1, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    message: dict[str, Any] = {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": MODEL,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }
    return {"type": "message_start", "message": message}


def _end(reason: str) -> list[dict[str, Any]]:
    delta = {"stop_reason": reason, "stop_sequence": None}
    return [
        {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 60}},
        {"type": "message_stop"},
    ]


def _text_block(texts: list[str]) -> list[dict[str, Any]]:
    return [
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        *({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": t}} for t in texts),
        {"type": "content_block_stop", "index": 0},
    ]


def tool_events(number: int) -> list[dict[str, Any]]:
    """A reply that says a sentence and calls the tool `look_up`: 13 events, a ping among them."""
    call: dict[str, Any] = {"type": "tool_use", "id": f"toolu_{number:06d}", "name": "look_up", "input": {}}
    pieces = ['{"key": ', f'"entry {number:06d}",', ' "depth": 2}']
    return [
        _start(number),
        *_text_block(["I look up ", f"entry {number:06d} now."]),
        {"type": "ping"},
        {"type": "content_block_start", "index": 1, "content_block": call},
        *(
            {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": piece}}
            for piece in pieces
        ),
        {"type": "content_block_stop", "index": 1},
        *_end("tool_use"),
    ]


def text_events(number: int = 0, deltas: int = 2) -> list[dict[str, Any]]:
    """A reply that is one text."""
    return [_start(number), *_text_block(["0123456789"] * deltas), *_end("end_turn")]


def wire(event: dict[str, Any]) -> bytes:
    """The event as a chunk of the body."""
    data = b"event: %s\ndata: %s\n\n" % (event["type"].encode(), json.dumps(event, separators=(",", ":")).encode())
    return b"%x\r\n%s\r\n" % (len(data), data)


class _Connection(asyncio.Protocol):
    """Reads requests, whatever is in them, and answers by the path."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self._path = ""
        self._body_left = 0
        self._in_body = False
        self._replies = 0
        self._writable = asyncio.Event()
        self._writable.set()
        self._writing: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the name is asyncio's
        if self._writing is not None:
            self._writing.cancel()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def data_received(self, data: bytes) -> None:
        if self._in_body:
            self._body_left -= len(data)
        else:
            self._received += data
            head, blank, rest = bytes(self._received).partition(b"\r\n\r\n")
            if not blank:
                return
            self._begin(head.decode("latin-1"), len(rest))
        if self._body_left <= 0:
            self._in_body = False
            self._received.clear()
            self._answer()

    def _begin(self, head: str, rest: int) -> None:
        request, *fields = head.split("\r\n")
        self._path = request.split(" ")[1]
        named = dict(field.lower().split(": ", 1) for field in fields)
        self._body_left = int(named.get("content-length", "0")) - rest
        self._in_body = True

    def _answer(self) -> None:
        assert self._transport is not None
        _, kind, number, *_ = self._path.split("/")
        if kind == "turns":
            last = self._replies >= int(number)
            self._replies = 0 if last else self._replies + 1
            events = text_events() if last else tool_events(self._replies)
            self._transport.write(_HEAD + b"".join(map(wire, events)) + b"0\r\n\r\n")
        elif kind == "silent":
            self._transport.write(_HEAD + b"".join(map(wire, text_events()[:4])))
        else:
            self._writing = asyncio.get_running_loop().create_task(self._stream(text_events(deltas=int(number))))

    async def _stream(self, events: list[dict[str, Any]]) -> None:
        assert self._transport is not None
        self._transport.write(_HEAD)
        for first in range(0, len(events), _DELTAS_AT_ONCE):
            self._transport.write(b"".join(map(wire, events[first : first + _DELTAS_AT_ONCE])))
            await self._writable.wait()
        self._transport.write(b"0\r\n\r\n")


async def _serve() -> None:
    server = await asyncio.get_running_loop().create_server(_Connection, "127.0.0.1", 0)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


@contextlib.contextmanager
def canned_server() -> Generator[str]:
    """The server in a process of its own; gives its URL."""
    with subprocess.Popen([sys.executable, "-m", __name__], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


if __name__ == "__main__":
    asyncio.run(_serve())
