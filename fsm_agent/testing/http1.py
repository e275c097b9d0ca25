"""One HTTP/1.1 connection of the server, with control over every byte and over how it ends.

h11 knows the protocol; this class knows the socket. A handler is called for each request, one at a time; between two
requests the connection is kept alive.
"""

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import h11

__all__ = ["ClientGoneError", "HttpConnection", "HttpRequest"]


class ClientGoneError(ConnectionError):
    """The client closed the connection before the answer was complete."""


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A whole request. Header names are lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


Handler = Callable[["HttpConnection", HttpRequest], Awaitable[None]]


class HttpConnection(asyncio.Protocol):
    """Feeds bytes to h11, runs the handler, and sends what it says."""

    def __init__(self, handler: Handler, connections: set["HttpConnection"]) -> None:
        self._handler = handler
        self._connections = connections
        self._http: Any = h11.Connection(h11.SERVER)  # its methods are not annotated
        self._transport: asyncio.Transport | None = None
        self._head: h11.Request | None = None
        self._body: list[bytes] = []
        self._writable = asyncio.Event()
        self._writable.set()
        self._handling: asyncio.Task[None] | None = None
        self.gone = asyncio.Event()
        """Set when the connection has ended, whoever ended it."""

    # ---- what asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has connected."""
        self._transport = cast(asyncio.Transport, transport)
        # Events leave one by one, also small ones, so that the client sees the chunks that the script asked for.
        sock = self._transport.get_extra_info("socket")
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connections.add(self)

    def data_received(self, data: bytes) -> None:
        """Bytes of a request, or of several."""
        self._http.receive_data(data)
        self._advance()

    def pause_writing(self) -> None:
        """The client reads slowly: the handler waits."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """The client has caught up."""
        self._writable.set()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is over."""
        del exc
        self._connections.discard(self)
        self.gone.set()
        self._writable.set()

    # ---- requests

    def _advance(self) -> None:
        try:
            while self._handling is None:
                event = self._http.next_event()
                if event is h11.NEED_DATA or event is h11.PAUSED:
                    return
                if isinstance(event, h11.Request):
                    self._head, self._body = event, []
                elif isinstance(event, h11.Data):
                    self._body.append(bytes(event.data))
                elif isinstance(event, h11.EndOfMessage) and self._head is not None:
                    self._start(self._head)
                else:
                    self.close()
                    return
        except h11.RemoteProtocolError:
            self.close()

    def _start(self, head: h11.Request) -> None:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in head.headers}
        request = HttpRequest(head.method.decode(), head.target.decode("latin-1"), headers, b"".join(self._body))
        self._body = []
        self._handling = asyncio.get_running_loop().create_task(self._handle(request))

    async def _handle(self, request: HttpRequest) -> None:
        try:
            await self._handler(self, request)
        except ClientGoneError:
            pass
        except BaseException:
            self.close()
            raise
        finally:
            self._handling = None
        self._next_request()

    def _next_request(self) -> None:
        if self.gone.is_set():
            return
        if self._http.our_state is h11.DONE and self._http.their_state is h11.DONE:
            self._http.start_next_cycle()
            self._advance()
        else:
            self.close()

    # ---- answers

    @property
    def has_begun(self) -> bool:
        """Whether the head of the answer is sent."""
        return self._http.our_state not in (h11.IDLE, h11.SEND_RESPONSE)

    async def begin(self, status: int, headers: Mapping[str, str]) -> None:
        """Send the head. Without `content-length` the body goes out in chunks."""
        named = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
        await self._send(h11.Response(status_code=status, headers=named))

    async def send(self, data: bytes) -> None:
        """Send a piece of the body as one chunk; waits while the client is slow."""
        await self._send(h11.Data(data=data))

    async def end(self) -> None:
        """The body is complete."""
        await self._send(h11.EndOfMessage())

    async def _send(self, event: Any) -> None:
        if self.gone.is_set() or self._transport is None or self._transport.is_closing():
            raise ClientGoneError
        content: bytes | None = self._http.send(event)
        self._transport.write(content or b"")
        if not self._writable.is_set():
            await self._writable.wait()
            if self.gone.is_set():
                raise ClientGoneError

    async def wait_gone(self, seconds: float | None = None) -> bool:
        """Wait until the client has gone, or so many seconds; whether it has gone."""
        if seconds is None:
            await self.gone.wait()
            return True
        try:
            async with asyncio.timeout(seconds):
                await self.gone.wait()
        except TimeoutError:
            return False
        return True

    async def cut(self) -> None:
        """Close after what was sent, without the end of the body (a TCP FIN)."""
        self.close()
        await self.gone.wait()

    async def reset(self) -> None:
        """Reset the connection (a TCP RST) once what was sent has left."""
        transport = self._transport
        if transport is not None and not transport.is_closing():
            transport.set_write_buffer_limits(0)
            if transport.get_write_buffer_size():
                await self._writable.wait()
            linger = struct.pack("ii", 1, 0)
            transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            transport.abort()
        await self.gone.wait()

    def close(self) -> None:
        """Close the connection after what was sent."""
        if self._transport is not None:
            self._transport.close()

    async def stop(self) -> None:
        """End the connection and its handler now."""
        handling = self._handling
        if self._transport is not None:
            self._transport.abort()
        if handling is not None:
            handling.cancel()
            await asyncio.gather(handling, return_exceptions=True)
        await self.gone.wait()
