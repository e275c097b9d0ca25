"""Server-sent events: wire events to bytes and back.

The encoder writes what the Messages API writes (an `event:` line, one `data:` line of JSON, a blank line). The decoder
is as lenient as the HTML standard and the Anthropic SDK: all three kinds of line end, comments, several `data:` lines,
and a last event without its blank line.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

from fsm_agent.testing.shapes import JsonObject

__all__ = ["ServerSentEvent", "compact_json", "decode_events", "encode_event", "split_events"]


def compact_json(value: object) -> str:
    """JSON as the API sends it: no spaces, non-ASCII text as it is, lone surrogates escaped (UTF-8 has no such code).

    >>> compact_json({"text": "\\u00e9"}) == '{"text":"\\u00e9"}'
    True
    """
    written = _ENCODER.encode(value)
    if written.isascii():
        return written
    try:
        written.encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":"))
    return written


# `json.dumps` with options makes an encoder for each call.
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def encode_event(event: JsonObject, newline: str = "\n") -> bytes:
    """One wire event as the bytes of a server-sent event.

    >>> encode_event({"type": "message_stop"})
    b'event: message_stop\\ndata: {"type":"message_stop"}\\n\\n'
    """
    return f"event: {event.get('type')}{newline}data: {compact_json(event)}{newline}{newline}".encode()


@dataclass(frozen=True, slots=True)
class ServerSentEvent:
    """One event of a stream: its name (`None` without an `event:` line) and its data."""

    event: str | None
    data: str

    def json(self) -> Any:
        """The data parsed; `json.JSONDecodeError` when it is no JSON."""
        return json.loads(self.data)


def decode_events(stream: bytes) -> Iterator[ServerSentEvent]:
    """The events of a whole stream, also those at its end that lack the blank line.

    >>> list(decode_events(b': hello\\n\\nevent: ping\\ndata: {"type": "ping"}'))
    [ServerSentEvent(event='ping', data='{"type": "ping"}')]
    """
    name: str | None = None
    data: list[str] = []
    for line in [*_LINE_END.split(stream.decode("utf-8")), ""]:
        if line:
            key, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if key == "event":
                name = value
            elif key == "data":
                data.append(value)
        elif name is not None or data:
            yield ServerSentEvent(name, "\n".join(data))
            name, data = None, []


# Not str.splitlines: JSON may hold U+2028 and the like unescaped.
_LINE_END = re.compile("\r\n|\n|\r")


def split_events(stream: bytes) -> list[bytes]:
    """The stream cut behind each blank line, nothing lost: `b"".join(split_events(s)) == s`.

    >>> split_events(b"event: a\\ndata: 1\\n\\nevent: b\\ndata: 2")
    [b'event: a\\ndata: 1\\n\\n', b'event: b\\ndata: 2']
    """
    parts = cast(list[bytes], _BLANK_LINE.split(stream))
    joined = [parts[at] + parts[at + 1] for at in range(0, len(parts) - 1, 2)]
    return [part for part in [*joined, parts[-1]] if part]


_BLANK_LINE = re.compile(rb"((?:\r\n){2,}|\n{2,}|\r{2,})")
