"""Server-sent events, as far as the Messages API uses them.

The SDK's decoder tells nothing before an event is whole. This one is fed chunk by chunk, so that its caller knows of
every byte (a proxy's comments keep a stream alive too), and a last event without its blank line is not lost.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final, cast

from fsm_agent.model.faults import PROTOCOL, StreamFault

__all__ = ["EventDecoder"]

_MOST_SHOWN: Final = 200
_BOM: Final = b"\xef\xbb\xbf"


class EventDecoder:
    """Bytes in, the JSON objects of the events out. All line ends of the standard, cut anywhere.

    >>> decoder = EventDecoder()
    >>> list(decoder.feed(b'event: ping\\ndata: {"type": "ping"}\\n')), list(decoder.feed(b"\\n: hello\\n\\n"))
    ([], [{'type': 'ping'}])
    """

    def __init__(self) -> None:
        self._pending: list[bytes] = []
        self._last = b"\n"
        self._after_return = False
        self._begun = False

    def feed(self, chunk: bytes) -> Iterator[dict[str, Any]]:
        """The events that this chunk completes. Raises `StreamFault` for one that is no JSON object."""
        chunk = self._unified(chunk)
        if not chunk:
            return
        # The end of an event may lie between two chunks.
        whole = b"\n\n" in chunk or (self._last == b"\n" and chunk.startswith(b"\n"))
        self._last = chunk[-1:]
        self._pending.append(chunk)
        if not whole:
            return
        *events, rest = b"".join(self._pending).split(b"\n\n")
        self._pending = [rest] if rest else []
        for event in events:
            parsed = _parsed(event)
            if parsed is not None:
                yield parsed

    def end(self) -> dict[str, Any] | None:
        """The last event, if it came whole but for its blank line. One that was cut is as if it had not begun."""
        rest, self._pending = b"".join(self._pending), []
        try:
            return _parsed(rest)
        except StreamFault:
            return None

    def _unified(self, chunk: bytes) -> bytes:
        """With one kind of line end, and without the mark that may begin a stream."""
        if not self._begun:
            self._begun = True
            chunk = chunk.removeprefix(_BOM)
        if self._after_return:
            chunk = chunk.removeprefix(b"\n")
        if chunk:
            self._after_return = chunk.endswith(b"\r")
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in chunk else chunk


def _parsed(event: bytes) -> dict[str, Any] | None:
    name = b""
    data: list[bytes] = []
    for line in event.split(b"\n"):
        if line.startswith(b"data:"):
            data.append(line[5:].removeprefix(b" "))
        elif line.startswith(b"event:"):
            name = line[6:].strip()
    text = data[0] if len(data) == 1 else b"\n".join(data)
    if not text.strip():
        return None
    try:
        value = json.loads(text.decode())
    except (ValueError, RecursionError) as error:
        return _unreadable(name, text, error)
    if not isinstance(value, dict):
        return _unreadable(name, text, TypeError("it is no object"))
    found = cast("dict[str, Any]", value)
    if name and "type" not in found:
        found["type"] = name.decode("utf-8", "replace")
    return found


def _unreadable(name: bytes, text: bytes, error: Exception) -> dict[str, Any]:
    shown = text[:_MOST_SHOWN].decode("utf-8", "replace")
    if name == b"error":
        return {"type": "error", "error": {"message": shown}}
    raise StreamFault(PROTOCOL, f"An event of the stream is no JSON object ({error}): {shown}")
