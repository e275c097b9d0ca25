"""Recorded traffic: the file form, reading and writing it, and playing it.

A *cassette* is a JSON file: a list of exchanges, each `{"request": {method, path, headers, body}, "response": {status,
headers, body | sse | text}}`. `body` is parsed JSON, `sse` the raw text of an event stream, `text` anything else
(base64 when the body was compressed).
"""

import base64
import binascii
import gzip
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from fsm_agent.testing.events import Action, Answer, Chunking, reply_actions
from fsm_agent.testing.script import Fault, RawResponse, Reply
from fsm_agent.testing.shapes import JsonObject, as_list, as_object, is_object, objects
from fsm_agent.testing.sse import compact_json, split_events

__all__ = ["Exchange", "load_cassette", "recorded_item", "recorded_script", "response_actions", "save_cassette"]

Exchange = JsonObject
"""One request with its response, in the form above."""


def load_cassette(path: str | Path) -> list[Exchange]:
    """The exchanges of a cassette file; `ValueError` when it is not one."""
    try:
        exchanges = as_list(json.loads(Path(path).read_text(encoding="utf-8")))
    except ValueError as error:
        raise ValueError(f"{path} is no cassette: it is not JSON ({error}).") from error
    if exchanges is None:
        raise ValueError(f"{path} is no cassette: it holds no list of exchanges.")
    for at, exchange in enumerate(exchanges):
        response = as_object(exchange.get("response")) if is_object(exchange) else None
        if response is None or not isinstance(response.get("status"), int):
            raise ValueError(f"{path} is no cassette: exchange {at} has no response with a status.")
    return exchanges


def save_cassette(path: str | Path, exchanges: Iterable[Exchange]) -> None:
    """Write exchanges as a cassette file."""
    Path(path).write_text(json.dumps(list(exchanges), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def recorded_item(exchange: Exchange, fault: Fault | None = None) -> RawResponse:
    """The response of an exchange as a script item.

    >>> recorded_item({"response": {"status": 200, "headers": {}, "sse": "event: ping\\ndata: {}\\n\\n"}}).body
    b'event: ping\\ndata: {}\\n\\n'
    """
    response = exchange["response"]
    named = as_object(response.get("headers")) or {}
    headers = {key: str(value) for key, value in named.items() if not _BLANKED.search(str(value))}
    if isinstance(response.get("sse"), str):
        content, usual = response["sse"].encode(), "text/event-stream; charset=utf-8"
    elif isinstance(response.get("text"), str):
        content, usual = _plain_bytes(response["text"]), "application/json"
    else:
        content, usual = compact_json(response.get("body")).encode(), "application/json"
    headers.setdefault("content-type", usual)
    return RawResponse(content, status=response["status"], headers=headers, fault=fault)


# What recorders put in the place of a value that they took out: the header counts as absent.
_BLANKED = re.compile(r"\*\*REDACTED\*\*|^<[A-Z_]+>$")


def _plain_bytes(text: str) -> bytes:
    """A text body; recorders keep a compressed one as base64."""
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return text.encode()
    for unpack in (gzip.decompress, zlib.decompress):
        try:
            return unpack(raw)
        except (OSError, EOFError, zlib.error):
            continue
    return raw if raw.lstrip().startswith((b"{", b"[", b"<")) else text.encode()


def recorded_script(source: str | Path | Sequence[Exchange]) -> list[RawResponse]:
    """A cassette as a script: its responses, in order."""
    exchanges = load_cassette(source) if isinstance(source, str | Path) else source
    return [recorded_item(exchange) for exchange in exchanges]


def response_actions(item: RawResponse) -> Iterator[Action]:
    """A raw response as a stream gets it: event by event, as the bytes are; a JSON message is told as a stream."""
    message = None if item.is_event_stream else _message(item.body)
    if message is None:
        yield from split_events(item.body)
    else:
        yield from message_actions(message)


def _message(content: bytes) -> JsonObject | None:
    try:
        parsed = as_object(json.loads(content))
    except ValueError:
        return None
    return parsed if parsed is not None and parsed.get("type") == "message" else None


def message_actions(message: JsonObject) -> Iterator[Action]:
    """The stream that adds up to a given message."""
    reply = Reply(
        *objects(message.get("content")),
        stop=message.get("stop_reason"),
        usage=as_object(message.get("usage")),
        stop_sequence=message.get("stop_sequence"),
        stop_details=as_object(message.get("stop_details")),
    )
    answer = Answer(str(message.get("id")), "req_0", str(message.get("model")))
    return reply_actions(reply, answer, Chunking())
