"""A guard against tests that call the real API, and spend real money, by mistake."""

import contextlib
import ipaddress
from collections.abc import Generator
from typing import Any

__all__ = ["RealRequestForbidden", "forbid_real_requests"]


class RealRequestForbidden(BaseException):
    """A request to another host than this machine, where real requests are forbidden.

    It is no `Exception`, so that neither the SDK nor an agent loop takes it for a failing network and tries again.
    """


@contextlib.contextmanager
def forbid_real_requests() -> Generator[list[str], None, None]:
    """Inside this block an HTTP request through httpx2 (the SDK's transport) that leaves this machine is not sent but
    raises `RealRequestForbidden`. Gives the list of URLs that were tried.

    Requests to loopback addresses and to mock transports go through.

    >>> with forbid_real_requests() as tried:
    ...     tried
    []
    """
    from unittest.mock import patch

    import httpx2

    tried: list[str] = []
    send, send_async = httpx2.HTTPTransport.handle_request, httpx2.AsyncHTTPTransport.handle_async_request

    def check(request: httpx2.Request) -> None:
        if not _is_this_machine(request.url.host):
            tried.append(str(request.url))
            raise RealRequestForbidden(
                f"A test tried to send a real request: {request.method} {request.url}. Give the client the URL of a"
                " MessagesServer, or the machine a ScriptedModel."
            )

    def handle_request(self: Any, request: httpx2.Request) -> httpx2.Response:
        check(request)
        return send(self, request)

    async def handle_async_request(self: Any, request: httpx2.Request) -> httpx2.Response:
        check(request)
        return await send_async(self, request)

    with (
        patch.object(httpx2.HTTPTransport, "handle_request", handle_request),
        patch.object(httpx2.AsyncHTTPTransport, "handle_async_request", handle_async_request),
    ):
        yield tried


def _is_this_machine(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
