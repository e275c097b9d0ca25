"""The exceptions that the Anthropic SDK would raise, for a model that is called without HTTP.

The SDK is imported when the first error is made.
"""

import json
import re
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from fsm_agent.testing.shapes import as_object

if TYPE_CHECKING:
    import anthropic
    import httpx2

__all__ = ["connection_error", "cut_error", "load", "reset_error", "status_error", "stream_error"]

_URL = "https://api.anthropic.com/v1/messages"


def _request() -> "httpx2.Request":
    import httpx2

    return httpx2.Request("POST", _URL)


@cache
def _classes() -> dict[int, "type[anthropic.APIStatusError]"]:
    """The public error class of each status, by the `status_code` that the class itself states."""
    import anthropic

    found: dict[int, type[anthropic.APIStatusError]] = {}
    for value in vars(anthropic).values():
        if isinstance(value, type) and issubclass(value, anthropic.APIStatusError):
            status = vars(value).get("status_code")
            if isinstance(status, int):
                found[status] = value
    return found


@cache
def _classes_of_codes() -> dict[tuple[int, str], "type[anthropic.APIStatusError]"]:
    """The error classes that the SDK chooses by `error.details.error_code`; each states its code in an annotation."""
    from anthropic import APIStatusError, types

    found: dict[tuple[int, str], type[APIStatusError]] = {}
    for value in vars(types).values():
        if isinstance(value, type) and issubclass(value, APIStatusError):
            stated = str(value.__annotations__.get("error_code"))
            for code in re.findall(r"""['"](\w+)['"]""", stated):
                found[value.status_code, code] = value
    return found


def load() -> None:
    """Import the SDK now, so that no example of a search pays for it (Hypothesis times each)."""
    _classes()
    _classes_of_codes()


def status_error(status: int, content: bytes, headers: Mapping[str, str]) -> "anthropic.APIStatusError":
    """The error for an HTTP status from 400: its class, message and body as the SDK makes them.

    >>> error = status_error(529, b'{"error": {"type": "overloaded_error"}}', {})
    >>> type(error).__name__, error.type
    ('OverloadedError', 'overloaded_error')
    """
    import httpx2

    text = content.decode("utf-8", "replace").strip()
    body: Any = text
    message = text or f"Error code: {status}"
    try:
        body = json.loads(text)
        message = f"Error code: {status} - {body}"
    except ValueError:
        pass
    response = httpx2.Response(status, headers=dict(headers), content=content, request=_request())
    return _make(status, message, response, body)


def stream_error(data: str, headers: Mapping[str, str]) -> "anthropic.APIStatusError":
    """The error for an `error` event inside a 200 stream: a plain `APIStatusError` with status 200."""
    import httpx2

    body: Any = data
    message = data or "Error code: 200"
    try:
        body = json.loads(data)
        message = f"{body}"
    except ValueError:
        pass
    response = httpx2.Response(200, headers=dict(headers), request=_request())
    return _make(200, message, response, body)


def _make(status: int, message: str, response: "httpx2.Response", body: Any) -> "anthropic.APIStatusError":
    import anthropic

    details = as_object((as_object((as_object(body) or {}).get("error")) or {}).get("details")) or {}
    code = details.get("error_code")
    special = _classes_of_codes().get((status, code)) if isinstance(code, str) else None
    usual = anthropic.InternalServerError if status >= 500 else anthropic.APIStatusError
    made = special or _classes().get(status) or usual
    return made(message, response=response, body=body)


def connection_error() -> "anthropic.APIConnectionError":
    """The connection broke before the answer began."""
    import anthropic

    return anthropic.APIConnectionError(request=_request())


def cut_error() -> "httpx2.RemoteProtocolError":
    """The connection closed in the middle of the body. The SDK lets it through as it is."""
    import httpx2

    text = "peer closed connection without sending complete message body (incomplete chunked read)"
    return httpx2.RemoteProtocolError(text, request=_request())


def reset_error() -> "httpx2.ReadError":
    """A TCP reset in the middle of the body. The SDK lets it through as it is."""
    import httpx2

    return httpx2.ReadError("Connection reset by peer", request=_request())
