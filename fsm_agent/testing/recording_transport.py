"""An HTTP transport that keeps a copy of what passes. Imported when a recording begins, since it needs httpx2."""

from collections.abc import AsyncIterator, Callable

import httpx2

__all__ = ["Passed", "RecordingTransport"]

Passed = Callable[[httpx2.Request, bytes, httpx2.Response, bytes], None]
"""Called with a request, its body, the response and its body."""


class RecordingTransport(httpx2.AsyncBaseTransport):
    """Passes requests on and keeps a copy of every answer, also of one that breaks."""

    def __init__(self, inner: httpx2.AsyncBaseTransport, passed: Passed) -> None:
        self._inner = inner
        self._passed = passed

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request; the copy is kept when its response is closed."""
        request.headers["accept-encoding"] = "identity"  # uncompressed, so that the recording is text
        content = await request.aread()
        response = await self._inner.handle_async_request(request)
        stream = _CopyingStream(response, lambda body: self._passed(request, content, response, body))
        return httpx2.Response(
            response.status_code, headers=response.headers, stream=stream, extensions=response.extensions
        )

    async def aclose(self) -> None:
        """Close the transport inside."""
        await self._inner.aclose()


class _CopyingStream(httpx2.AsyncByteStream):
    def __init__(self, response: httpx2.Response, keep: Callable[[bytes], None]) -> None:
        self._response = response
        self._keep: Callable[[bytes], None] | None = keep
        self._pieces: list[bytes] = []

    async def __aiter__(self) -> AsyncIterator[bytes]:
        stream = self._response.stream
        assert isinstance(stream, httpx2.AsyncByteStream)
        async for piece in stream:
            self._pieces.append(piece)
            yield piece

    async def aclose(self) -> None:
        keep, self._keep = self._keep, None
        if keep is not None:
            keep(b"".join(self._pieces))
        await self._response.aclose()
