"""The request on the wire: the Anthropic SDK sends it, its answer comes back as raw events."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, cast
from weakref import WeakKeyDictionary

from fsm_agent.model.faults import PROTOCOL, StreamFault
from fsm_agent.model.sse import EventDecoder

if TYPE_CHECKING:
    import anthropic
    import httpx2

    from fsm_agent.model.request import ModelRequest

__all__ = ["KEEPALIVE", "CallModel", "SdkTransport"]

CallModel: TypeAlias = "Callable[[ModelRequest], AsyncGenerator[dict[str, Any], None]]"
"""Sends a request and yields the raw events of its answer, pings and `error` events included, as they came.

Raises errors of the SDK or of its transport, or a `StreamFault`. It sends once: retries are the loop's.
"""

KEEPALIVE: Final = "keepalive"
"""Type of an event that is none of the API's: bytes came that complete no event."""

# After one of these the end of the body is due. It is waited for, briefly, so that the connection can be used again.
_LAST_EVENTS: Final = frozenset({"message_stop", "error"})
NO_KEY: Final = (
    "There is no key for the Messages API; set ANTHROPIC_API_KEY, or give AgentMachine(client=...) an `AsyncAnthropic` "
    "with an `api_key`."
)
_END_OF_BODY_SECONDS: Final = 0.05
_MOST_BODY_BYTES: Final = 65_536


class SdkTransport:
    """`CallModel` over an `anthropic.AsyncAnthropic`, made from the environment when left out.

    The client's own retries are off for these requests. The body goes out as the bytes that it is, so a client that
    rewrites bodies (Bedrock, Vertex) cannot be used.
    """

    def __init__(self, client: anthropic.AsyncAnthropic | None = None) -> None:
        self._client = client
        self._spare: anthropic.AsyncAnthropic | None = None
        """Made to see whether it could be used; the first event loop that asks gets it."""
        self._missing: str | None = None
        # A client's connections belong to the event loop that made them. Each is held by an async generator, which the
        # loop closes when it ends, or when the transport is collected.
        self._own: WeakKeyDictionary[asyncio.AbstractEventLoop, _OwnClient] = WeakKeyDictionary()

    def missing(self) -> str:
        """Why no request could be sent (there is no key), in a sentence; '' if nothing is known to be missing."""
        if self._missing is None:
            client = self._client
            if client is None:
                from anthropic import AsyncAnthropic

                client = self._spare = AsyncAnthropic()
            self._missing = "" if _has_key(client) else NO_KEY
        return self._missing

    async def __call__(self, request: ModelRequest) -> AsyncGenerator[dict[str, Any], None]:
        response = await self._sent(request)
        chunks = response.aiter_bytes()
        decoder = EventDecoder()
        before_events: bytearray | None = bytearray()
        last: object = None
        try:
            async for chunk in chunks:
                quiet = True
                for event in decoder.feed(chunk):
                    quiet, before_events, last = False, None, event.get("type")
                    yield event
                if quiet:
                    if before_events is not None and len(before_events) < _MOST_BODY_BYTES:
                        before_events += chunk
                    yield {"type": KEEPALIVE}
            end = decoder.end()
            if end is not None:
                yield end
            elif before_events:
                yield _other_answer(bytes(before_events), response.headers.get("content-type", ""))
        except GeneratorExit:
            if last in _LAST_EVENTS:
                await _drain(chunks)
            raise
        finally:
            await response.aclose()

    async def _sent(self, request: ModelRequest) -> httpx2.Response:
        from anthropic import AsyncStream
        from anthropic.types import Message, RawMessageStreamEvent

        stream = await (await self._ready_client()).post(
            "/v1/messages",
            content=request.body,
            cast_to=Message,
            stream=True,
            stream_cls=AsyncStream[RawMessageStreamEvent],
            options={"headers": dict(request.headers), "params": dict(request.query), "max_retries": 0},
        )
        return stream.response

    async def _ready_client(self) -> anthropic.AsyncAnthropic:
        if self._client is not None:
            return self._client
        loop = asyncio.get_running_loop()
        own = self._own.get(loop)
        if own is None:
            from anthropic import AsyncAnthropic

            made, self._spare = self._spare or AsyncAnthropic(), None
            own = self._own[loop] = _OwnClient(made, _open(made))
            await anext(own.open)
        return own.client

    async def aclose(self) -> None:
        """Close the client that was made here for this event loop, if there is one."""
        own = self._own.pop(asyncio.get_running_loop(), None)
        if own is not None:
            await own.open.aclose()


class _OwnClient(NamedTuple):
    client: anthropic.AsyncAnthropic
    open: AsyncGenerator[None, None]


_OPEN: Final[set[anthropic.AsyncAnthropic]] = set()
"""Our clients that are not closed. What is in here is not collected, and its sockets with it, before it is closed."""


async def _open(client: anthropic.AsyncAnthropic) -> AsyncGenerator[None, None]:
    """As long as this waits, the client is in use."""
    _OPEN.add(client)
    try:
        yield
    finally:
        _OPEN.discard(client)
        await client.close()


def _has_key(client: anthropic.AsyncAnthropic) -> bool:
    """Whether a request could be signed. A client of another kind (a cloud's, a user's own) is taken at its word."""
    from anthropic import AsyncAnthropic

    if type(client) is not AsyncAnthropic or client.credentials is not None:
        return True
    headers = {name.lower(): value for name, value in client.default_headers.items()}
    return bool(headers.get("x-api-key") or headers.get("authorization"))


async def _drain(chunks: AsyncIterator[bytes]) -> None:
    with contextlib.suppress(Exception):
        async with asyncio.timeout(_END_OF_BODY_SECONDS):
            async for _ in chunks:
                pass


def _other_answer(body: bytes, content_type: str) -> dict[str, Any]:
    """The event that a body without any event stands for: an error object; else the body is not from the API."""
    try:
        value = json.loads(body.decode())
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict) and "error" in value:
        return {**cast("dict[str, Any]", value), "type": "error"}
    shown = body[:200].decode("utf-8", "replace")
    raise StreamFault(PROTOCOL, f"The answer is {content_type or 'untyped'} and no event stream: {shown}")
