"""How the server sends an answer: as JSON, as a stream of actions, or byte for byte."""

import asyncio
from collections.abc import Iterable, Mapping

from fsm_agent.testing.events import Action, Chunking, Ending, Partial, Pause, fold_message
from fsm_agent.testing.http1 import ClientGoneError, HttpConnection
from fsm_agent.testing.request_log import LoggedRequest
from fsm_agent.testing.script import RawResponse
from fsm_agent.testing.shapes import JsonObject, as_object
from fsm_agent.testing.sse import compact_json, encode_event

__all__ = ["send_json", "send_message", "send_raw", "send_stream"]

_STREAM_HEADERS = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}
_FRAMING = ("content-length", "transfer-encoding", "content-encoding", "connection")
"""Headers that the framing decides, whatever a recording says."""


async def send_json(
    connection: HttpConnection, entry: LoggedRequest, status: int, body: JsonObject, headers: Mapping[str, str]
) -> None:
    """Send a whole JSON answer."""
    content = compact_json(body).encode()
    entry.status = status
    await connection.begin(status, _free(headers) | {"content-length": str(len(content))})
    await connection.send(content)
    await connection.end()


def _free(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items() if name.lower() not in _FRAMING}


async def send_raw(connection: HttpConnection, entry: LoggedRequest, item: RawResponse, chunking: Chunking) -> None:
    """Send a raw response."""
    entry.status = item.status
    await connection.begin(item.status, _free(item.headers))
    await _send_pieces(connection, item.body, chunking.wire)
    await connection.end()


async def _send_pieces(connection: HttpConnection, content: bytes, size: int | None) -> None:
    step = size or max(1, len(content))
    for start in range(0, len(content), step):
        await connection.send(content[start : start + step])


async def send_stream(
    connection: HttpConnection,
    entry: LoggedRequest,
    actions: Iterable[Action],
    headers: Mapping[str, str],
    chunking: Chunking,
) -> None:
    """Send actions as an event stream. The head goes out with the first bytes, so that a pause, a cut or a reset before
    them comes before the answer has begun."""
    sender = _StreamSender(connection, entry, _free({**_STREAM_HEADERS, **headers}), chunking)
    # A stream of very many small events must let the rest of the process run, also when the client keeps up with it.
    for number, action in enumerate(actions):
        if not await sender.perform(action):
            return
        if number % 100 == 99:
            await asyncio.sleep(0)
    await sender.finish()


class _StreamSender:
    def __init__(
        self, connection: HttpConnection, entry: LoggedRequest, headers: Mapping[str, str], chunking: Chunking
    ) -> None:
        self._connection = connection
        self._entry = entry
        self._headers = headers
        self._chunking = chunking

    async def perform(self, action: Action) -> bool:
        """Do one action; whether there may be another."""
        if isinstance(action, dict):
            await self._write(encode_event(action, self._chunking.newline))
        elif isinstance(action, bytes):
            await self._write(action)
        elif isinstance(action, Partial):
            event = action.event
            content = encode_event(event, self._chunking.newline) if isinstance(event, dict) else event
            await self._write(content[: action.length])
        elif isinstance(action, Pause):
            if await self._connection.wait_gone(action.seconds):
                raise ClientGoneError
        else:
            await self._end(action)
            return False
        return True

    async def _begin(self) -> None:
        if not self._connection.has_begun:
            self._entry.status = 200
            await self._connection.begin(200, self._headers)

    async def _write(self, content: bytes) -> None:
        await self._begin()
        await _send_pieces(self._connection, content, self._chunking.wire)
        self._entry.events_sent += 1

    async def finish(self) -> None:
        """The proper end."""
        await self._begin()
        await self._connection.end()

    async def _end(self, ending: Ending) -> None:
        if ending is Ending.EOF:
            await self.finish()
        else:
            await end_early(self._connection, ending)


async def end_early(connection: HttpConnection, ending: Ending) -> None:
    """End an answer in the middle."""
    if ending is Ending.SILENCE:
        await connection.wait_gone()
        raise ClientGoneError
    if ending is Ending.RESET:
        await connection.reset()
    else:
        await connection.cut()


_STATUS_OF_ERROR = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}


async def send_message(
    connection: HttpConnection, entry: LoggedRequest, actions: Iterable[Action], headers: Mapping[str, str]
) -> None:
    """Send what the actions add up to, as a request without `stream` gets it.

    An error event becomes an error answer. An early end leaves half of the body: properly framed (`eof`) or with the
    connection closed or reset in the middle of it.
    """
    events: list[JsonObject] = []
    for action in actions:
        if isinstance(action, dict) and action.get("type") == "error":
            await _send_error(connection, entry, action, headers)
            return
        if isinstance(action, dict):
            events.append(action)
        elif isinstance(action, Pause):
            if await connection.wait_gone(action.seconds):
                raise ClientGoneError
        elif isinstance(action, Ending):
            await _send_half(connection, entry, fold_message(events), headers, action)
            return
    named = {"content-type": "application/json", **headers}
    await send_json(connection, entry, 200, fold_message(events), named)


async def _send_error(
    connection: HttpConnection, entry: LoggedRequest, event: JsonObject, headers: Mapping[str, str]
) -> None:
    error = as_object(event.get("error")) or {}
    status = _STATUS_OF_ERROR.get(str(error.get("type")), 500)
    await send_json(connection, entry, status, event, {"content-type": "application/json", **headers})


async def _send_half(
    connection: HttpConnection, entry: LoggedRequest, message: JsonObject, headers: Mapping[str, str], ending: Ending
) -> None:
    content = compact_json(message).encode()
    half = content[: len(content) // 2] if message else b""
    if ending is not Ending.SILENCE and (half or ending is Ending.EOF):
        entry.status = 200
        named = _free({"content-type": "application/json", **headers})
        length = {} if ending is Ending.EOF else {"content-length": str(len(content))}
        await connection.begin(200, named | length)
        await connection.send(half)
    if ending is Ending.EOF:
        await connection.end()
    else:
        await end_early(connection, ending)
