"""A scripted model in the process of the test: no socket, no client, the same wire events."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from itertools import chain
from typing import Any, NoReturn, Protocol

from fsm_agent.model.faults import PROTOCOL, StreamFault
from fsm_agent.model.sse import EventDecoder
from fsm_agent.testing.answers import break_at
from fsm_agent.testing.events import Action, Chunking, Ending, Partial, Pause
from fsm_agent.testing.playback import Playback, Received, UnexpectedRequestError
from fsm_agent.testing.recordings import response_actions
from fsm_agent.testing.rules import ApiRefusal, ApiSettings, parse_body
from fsm_agent.testing.script import ApiError, Item, RawResponse, RequestKind, Script, request_kind
from fsm_agent.testing.sdk_errors import connection_error, cut_error, reset_error, status_error
from fsm_agent.testing.shapes import JsonObject
from fsm_agent.testing.sse import compact_json, encode_event

__all__ = ["ModelCall", "ScriptedModel", "UnexpectedRequestError"]


_SETTINGS = ApiSettings(accept_unknown_models=True)


class ModelCall(Protocol):
    """What a scripted model needs of a request (`fsm_agent.model.ModelRequest` has it)."""

    @property
    def model(self) -> str:
        """The model's name."""
        ...

    @property
    def body(self) -> bytes:
        """The JSON body of `POST /v1/messages`."""
        ...


class ScriptedModel:
    """A model that answers from a script. Use it as `call_model`:

    >>> from types import SimpleNamespace
    >>> from fsm_agent.testing.script import Reply
    >>> body = b'{"model": "claude-sonnet-5-5", "max_tokens": 9, "messages": [{"role": "user", "content": "q"}]}'
    >>> async def events():
    ...     model = ScriptedModel([Reply("hi")])
    ...     return [event["type"] async for event in model(SimpleNamespace(model="claude-sonnet-5-5", body=body))]
    >>> asyncio.run(events())[:2]
    ['message_start', 'content_block_start']

    A call yields the raw wire events, pings and `error` events included, and raises what the SDK would raise for an
    HTTP error, a cut or a reset. Every request is judged by the rules of the API (`validate=False` to save the time).
    In `strict` mode a call that the script does not expect raises `UnexpectedRequestError`, and is kept in
    `unexpected`, so that `assert_complete` fails even when the loop under test swallowed it; otherwise it is answered
    with an API error. `keep` bounds how many request bodies are kept for `calls` (a long run's bodies are large).
    """

    def __init__(
        self,
        script: Script,
        *,
        strict: bool = True,
        validate: bool = True,
        settings: ApiSettings | None = None,
        chunking: Chunking | None = None,
        keep: int | None = None,
        clock: Callable[[], float] = time.monotonic,
        kind_of: Callable[[JsonObject], RequestKind] = request_kind,
    ) -> None:
        self.strict = strict
        self.validate = validate
        self.unexpected: list[UnexpectedRequestError] = []
        self.refusals: list[ApiRefusal] = []
        self.open_streams = 0
        """Streams that were begun and neither ended nor closed."""
        self._bodies: deque[bytes] = deque(maxlen=keep)
        self._count = 0
        self._playback = Playback(
            script,
            settings=settings or _SETTINGS,
            chunking=chunking or Chunking(),
            clock=clock,
            kind_of=kind_of,
        )

    @property
    def calls(self) -> list[JsonObject]:
        """The parsed bodies of the requests so far, those that were refused included (the last `keep` of them)."""
        return [body for raw in self._bodies if not isinstance(body := parse_body(raw), ApiRefusal)]

    @property
    def raw_calls(self) -> list[bytes]:
        """The bodies of the requests so far, as they were sent."""
        return list(self._bodies)

    @property
    def call_count(self) -> int:
        """How many requests came."""
        return self._count

    def assert_complete(self) -> None:
        """Fail when a call was not expected, or when items of the script were not served."""
        if self.unexpected:
            raise AssertionError(str(self.unexpected[0])) from self.unexpected[0]
        self._playback.assert_complete()

    async def __call__(self, request: ModelCall) -> AsyncGenerator[dict[str, Any], None]:
        """Answer one request."""
        actions = self._begin(request)
        self.open_streams += 1
        events: AsyncGenerator[JsonObject, None] | None = None
        begun = False
        try:
            for action in actions:
                if isinstance(action, dict):
                    begun = True
                    yield action
                else:
                    events = play(chain([action], actions), begun=begun)
                    async for event in events:
                        yield event
                    break
        finally:
            self.open_streams -= 1
            if events is not None:
                await events.aclose()

    def _begin(self, request: ModelCall) -> Iterator[Action]:
        self._count += 1
        self._bodies.append(request.body)
        named: Mapping[str, str] = getattr(request, "headers", None) or {}
        headers = {name.lower(): value for name, value in named.items()}
        received = self._playback.receive(request.body, headers, judge=self.validate)
        if isinstance(received, ApiRefusal):
            self._refuse(received)
        item = self._take(received, getattr(request, "purpose", None))
        if isinstance(item, ApiError):
            raise status_error(item.status, _json(item.body(_request_id(self._count))), _headers(self._count, item))
        if isinstance(item, RawResponse):
            if item.status >= 400:
                raise status_error(item.status, item.body, item.headers)
            actions = response_actions(item)
            return actions if item.fault is None else break_at(actions, item.fault, None)
        return self._playback.play(item, received)

    def _take(self, received: Received, kind: RequestKind | None) -> Item:
        try:
            return self._playback.take(received, kind)
        except UnexpectedRequestError as error:
            self.unexpected.append(error)
            if self.strict:
                raise
            return ApiError(400, "invalid_request_error", str(error))

    def _refuse(self, refusal: ApiRefusal) -> NoReturn:
        self.refusals.append(refusal)
        raise status_error(refusal.status, _json(refusal.body(_request_id(self._count))), _json_headers(self._count))


def _json(value: object) -> bytes:
    return compact_json(value).encode()


def _request_id(number: int) -> str:
    return f"req_{number:024d}"


def _json_headers(number: int) -> dict[str, str]:
    return {"content-type": "application/json", "request-id": _request_id(number)}


def _headers(number: int, item: ApiError) -> dict[str, str]:
    return _json_headers(number) | dict(item.headers)


async def play(actions: Iterator[Action], *, begun: bool = False) -> AsyncGenerator[JsonObject, None]:
    """The wire events of a sequence of actions: waits for pauses, raises for endings. `begun`: events came before.

    Bytes are read as the library's own transport reads them; broken JSON raises its `StreamFault`.
    """
    reader = _BytesReader()
    for action in actions:
        if isinstance(action, Pause):
            await asyncio.sleep(action.seconds)
        elif isinstance(action, dict) and reader.is_between_events:
            begun = True
            yield action
        elif isinstance(action, dict | bytes | Partial):
            begun = True
            for event in reader.feed(_encoded(action)):
                yield event
        elif action is Ending.EOF:
            break
        else:
            await _end(action, begun=begun)
    for event in reader.rest():
        yield event


def _encoded(action: JsonObject | bytes | Partial) -> bytes:
    if isinstance(action, Partial):
        return _encoded(action.event)[: action.length]
    return action if isinstance(action, bytes) else encode_event(action)


class _BytesReader:
    """Finds whole events in pieces of bytes."""

    def __init__(self) -> None:
        self._decoder = EventDecoder()
        self._tail = b""
        self._eventless: bytes | None = b""

    @property
    def is_between_events(self) -> bool:
        return not self._tail or self._tail.endswith((b"\n\n", b"\r\r", b"\n\r\n"))

    def feed(self, piece: bytes) -> Iterator[JsonObject]:
        self._tail = (self._tail + piece)[-4:]
        for event in self._decoder.feed(piece):
            self._eventless = None
            yield event
        if self._eventless is not None:
            self._eventless += piece

    def rest(self) -> Iterator[JsonObject]:
        end = self._decoder.end()
        if end is not None:
            yield end
        elif self._eventless:
            yield _other_answer(self._eventless)


def _other_answer(body: bytes) -> JsonObject:
    """What the transport makes of an answer without any event: an error object is one, anything else is a fault."""
    parsed = parse_body(body)
    if not isinstance(parsed, ApiRefusal) and "error" in parsed:
        return {**parsed, "type": "error"}
    raise StreamFault(PROTOCOL, f"The answer is no event stream: {body[:200].decode('utf-8', 'replace')}")


async def _end(ending: Ending, *, begun: bool) -> None:
    if ending is Ending.SILENCE:
        await asyncio.get_running_loop().create_future()
    if not begun:
        raise connection_error()
    raise cut_error() if ending is Ending.CUT else reset_error()
