"""The Messages API on loopback, played from a script.

>>> import asyncio
>>> from fsm_agent.testing.script import Reply
>>> async def ask():
...     import anthropic
...     async with MessagesServer([Reply("hi")]) as server:
...         async with anthropic.AsyncAnthropic(base_url=server.url, api_key="test", max_retries=0) as client:
...             message = await client.messages.create(
...                 model="claude-sonnet-5-5", max_tokens=100, messages=[{"role": "user", "content": "hello"}])
...         return message.content[0].text, len(server.requests)
>>> asyncio.run(ask())
('hi', 1)
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self

from fsm_agent.testing.answers import break_at
from fsm_agent.testing.events import Chunking, fold_message
from fsm_agent.testing.http1 import ClientGoneError, HttpConnection, HttpRequest
from fsm_agent.testing.model_list import model_answer
from fsm_agent.testing.playback import Playback, Received, UnexpectedRequestError
from fsm_agent.testing.rate_limits import RateLimiter, RateLimits
from fsm_agent.testing.recordings import response_actions
from fsm_agent.testing.request_log import LoggedRequest
from fsm_agent.testing.rules import ApiRefusal, ApiSettings, check_headers, check_size, unknown_path
from fsm_agent.testing.script import ApiError, Item, RawResponse, Reply, RequestKind, Script, Stream, request_kind
from fsm_agent.testing.sending import send_json, send_message, send_raw, send_stream
from fsm_agent.testing.shapes import JsonObject
from fsm_agent.testing.sse import decode_events

__all__ = ["MessagesServer"]


class MessagesServer:
    """A strict Messages API for tests: `async with MessagesServer(script) as server`, then use `server.url`.

    It serves `POST /v1/messages` (streams and plain), `POST /v1/messages/count_tokens` and `GET /v1/models`, judges
    each request by the API's rules, accounts for the prompt cache, and breaks where the script says so. `requests` is
    the log. In `strict` mode leaving the block raises `AssertionError` when a request came that the script did not
    expect (the client got a 400 that says so). `clock` gives seconds for cache lifetimes and rate limits. `keep` bounds
    the log.
    """

    def __init__(
        self,
        script: Script,
        *,
        strict: bool = True,
        validate: bool = True,
        settings: ApiSettings | None = None,
        chunking: Chunking | None = None,
        rate_limits: RateLimits | None = None,
        clock: Callable[[], float] = time.monotonic,
        kind_of: Callable[[JsonObject], RequestKind] = request_kind,
        port: int = 0,
        keep: int | None = None,
    ) -> None:
        self.strict = strict
        self.validate = validate
        self.requests: deque[LoggedRequest] = deque(maxlen=keep)
        self._clock = clock
        self._chunking = chunking or Chunking()
        self._settings = settings or ApiSettings()
        self._playback = Playback(
            script, settings=self._settings, chunking=self._chunking, clock=clock, kind_of=kind_of
        )
        self._limiter = RateLimiter(rate_limits or RateLimits(), clock)
        self._port = port
        self._number = 0
        self._unexpected: list[UnexpectedRequestError] = []
        self._server: asyncio.Server | None = None
        self._connections: set[HttpConnection] = set()

    # ---- life

    async def start(self) -> None:
        """Listen on 127.0.0.1."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: HttpConnection(self._handle, self._connections), "127.0.0.1", self._port, backlog=1024
        )
        self._port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Stop listening, end every connection and every answer. Nothing is left behind."""
        if self._server is None:
            return
        self._server.close()
        while self._connections:
            await asyncio.gather(*(connection.stop() for connection in list(self._connections)))
        await self._server.wait_closed()
        self._server = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()
        if error is None and self.strict:
            self.assert_expected()

    # ---- what a test asks

    @property
    def url(self) -> str:
        """The base URL for a client."""
        if self._server is None:
            raise RuntimeError("The server is not running; use it as `async with MessagesServer(...) as server`.")
        return f"http://127.0.0.1:{self._port}"

    @property
    def port(self) -> int:
        """The port it listens on."""
        return self._port

    @property
    def open_connections(self) -> int:
        """Connections that are open now, idle ones included."""
        return len(self._connections)

    @property
    def bodies(self) -> list[JsonObject]:
        """The parsed bodies of the calls of `POST /v1/messages`."""
        return [entry.body for entry in self.requests if entry.is_messages_call and entry.body is not None]

    @property
    def refusals(self) -> list[ApiRefusal]:
        """The refusals of all requests."""
        return [entry.refusal for entry in self.requests if entry.refusal is not None]

    def assert_expected(self) -> None:
        """Fail when a request came that the script has no item for."""
        if self._unexpected:
            raise AssertionError(str(self._unexpected[0])) from self._unexpected[0]

    def assert_no_refusals(self) -> None:
        """Fail when a request was refused by a rule of the API."""
        if self.refusals:
            raise AssertionError(f"The API refused {len(self.refusals)} requests; the first by {self.refusals[0]}")

    def assert_complete(self) -> None:
        """Fail when requests were unexpected or refused, or when items of the script were not served."""
        self.assert_expected()
        self.assert_no_refusals()
        self._playback.assert_complete()

    # ---- requests

    async def _handle(self, connection: HttpConnection, request: HttpRequest) -> None:
        self._number += 1
        number = self._number
        entry = LoggedRequest(request.method, request.path, request.headers, request.body, self._clock())
        self.requests.append(entry)
        try:
            await self._answer(connection, request, entry, f"req_{number:024d}")
        except ClientGoneError:
            entry.client_gone = True
        finally:
            entry.finished = True

    async def _answer(
        self, connection: HttpConnection, request: HttpRequest, entry: LoggedRequest, request_id: str
    ) -> None:
        path = request.path.partition("?")[0].rstrip("/")
        refusal = next(check_size(len(request.body), self._settings), None)
        if refusal is None:
            refusal = next(check_headers(request.headers, self._settings), None)
        if refusal is None and request.method == "GET" and path.startswith("/v1/models"):
            await self._send_models(connection, entry, path, request_id)
            return
        counting = path == "/v1/messages/count_tokens"
        if refusal is None and not (request.method == "POST" and (counting or path == "/v1/messages")):
            refusal = unknown_path()
        if refusal is not None:
            await self._refuse(connection, entry, refusal, request_id)
            return
        received = self._playback.receive(request.body, request.headers, judge=self.validate, counting=counting)
        if isinstance(received, ApiRefusal):
            await self._refuse(connection, entry, received, request_id)
        elif counting:
            counted = {"input_tokens": received.reading.prompt.tokens}
            await send_json(connection, entry, 200, counted, _json(request_id))
        else:
            await self._message(connection, entry, received, request_id)

    async def _send_models(self, connection: HttpConnection, entry: LoggedRequest, path: str, request_id: str) -> None:
        name = path.removeprefix("/v1/models").strip("/")
        found = model_answer(name, self._settings)
        if found is None:
            refusal = ApiRefusal("R060", f"model: {name}", 404, "not_found_error")
            await self._refuse(connection, entry, refusal, request_id)
        else:
            await send_json(connection, entry, 200, found, _json(request_id))

    async def _refuse(
        self,
        connection: HttpConnection,
        entry: LoggedRequest,
        refusal: ApiRefusal,
        request_id: str,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        entry.refusal = refusal
        named = {"content-type": "application/json"} if refusal.bare else _json(request_id)
        named |= dict(headers or {})
        await send_json(connection, entry, refusal.status, refusal.body(request_id), named)

    async def _message(
        self, connection: HttpConnection, entry: LoggedRequest, received: Received, request_id: str
    ) -> None:
        body, reading = received.reading.body, received.reading
        limited = self._limiter.admit(str(body.get("model")), reading.prompt.tokens)
        if limited is not None:
            await self._refuse(connection, entry, limited[0], request_id, limited[1])
            return
        item = self._take(entry, received)
        if isinstance(item, ApiError):
            headers = _json(request_id) | self._limiter.headers() | dict(item.headers)
            await send_json(connection, entry, item.status, item.body(request_id), headers)
        elif isinstance(item, RawResponse):
            await self._raw(connection, entry, body, item)
        else:
            await self._reply(connection, entry, received, item, request_id)

    def _take(self, entry: LoggedRequest, received: Received) -> Item:
        try:
            return self._playback.take(received)
        except UnexpectedRequestError as error:
            self._unexpected.append(error)
            entry.unexpected = str(error)
            return ApiError(400, "invalid_request_error", str(error), headers={"x-should-retry": "false"})

    async def _reply(
        self,
        connection: HttpConnection,
        entry: LoggedRequest,
        received: Received,
        item: Reply | Stream,
        request_id: str,
    ) -> None:
        actions = self._playback.play(item, received, request_id)
        headers = {"request-id": request_id} | self._limiter.headers()
        if received.reading.body.get("stream") is True:
            await send_stream(connection, entry, actions, headers, self._chunking)
        else:
            await send_message(connection, entry, actions, headers)

    async def _raw(self, connection: HttpConnection, entry: LoggedRequest, body: JsonObject, item: RawResponse) -> None:
        """A raw response, in the form that was asked for: a recorded stream serves a plain request, and vice versa."""
        streaming = body.get("stream") is True
        if item.status == 200 and not streaming and item.is_event_stream:
            events = (event.json() for event in decode_events(item.body) if event.event and event.data)
            headers = {**item.headers, "content-type": "application/json"}
            await send_json(connection, entry, 200, fold_message(events), headers)
        elif item.fault is not None or (item.status == 200 and streaming and not item.is_event_stream):
            actions = response_actions(item)
            if item.fault is not None:
                actions = break_at(actions, item.fault, None)
            await send_stream(connection, entry, actions, item.headers, self._chunking)
        else:
            await send_raw(connection, entry, item, self._chunking)


def _json(request_id: str) -> dict[str, str]:
    return {"content-type": "application/json", "request-id": request_id}
