"""Every failure of a request, as one outcome of the declared machine.

The type of the error decides before the HTTP status does: an error event inside a 200 stream has no other status.
Texts decide only where the API has no type for it (a prompt that is too long, an image that it cannot read); their
wording is that of recorded answers and public reports.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from json import JSONDecodeError
from types import MappingProxyType
from typing import Any, Final, cast

from fsm_agent.machine.vocabulary import ResponseOutcome
from fsm_agent.model.faults import PROTOCOL, StreamFault
from fsm_agent.model.json_types import as_object, as_text, is_array
from fsm_agent.model.retry_after import retry_after, should_retry
from fsm_agent.model.surrogates import mended_text

__all__ = ["CONNECTION", "TIMEOUT", "Failure", "classify"]

CONNECTION: Final = "connection"
TIMEOUT: Final = "timeout"

_LONGEST_MESSAGE = 2_000


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a request came to nothing, and what that means for the machine."""

    outcome: ResponseOutcome
    kind: str
    """The API's error type (`overloaded_error`, ...), or `eof`, `stall`, `protocol`, `connection`, `timeout`, or the
    name of an exception that no request should raise."""
    message: str
    """For a person, at most 2,000 characters; the API's own words are in it."""
    status: int | None = None
    """HTTP status, if there was an answer. 200 for an error inside a stream."""
    retry_after: float | None = None
    """Seconds that the service asks to wait."""
    should_retry: bool | None = None
    """What the service says itself about a repetition (`x-should-retry`)."""
    request_id: str | None = None


_R = ResponseOutcome

ERROR_TYPES: Mapping[str, ResponseOutcome] = MappingProxyType(
    {
        "overloaded_error": _R.OVERLOADED,
        "rate_limit_error": _R.RETRYABLE,
        "api_error": _R.RETRYABLE,
        "timeout_error": _R.RETRYABLE,
        "conflict_error": _R.RETRYABLE,
        "request_too_large": _R.PROMPT_TOO_LONG,
        "invalid_request_error": _R.FATAL,
        "authentication_error": _R.FATAL,
        "billing_error": _R.FATAL,
        "permission_error": _R.FATAL,
        "not_found_error": _R.FATAL,
        "forbidden": _R.FATAL,
    }
)
"""What each error type of the API comes to, before texts and headers have their say."""

_RETRIED_STATUSES: Final = frozenset({408, 409, 425, 429})
# `error.details.error_code`: a 429 that no wait of ours ends.
_SPEND_LIMITS: Final = frozenset({"contract_spend_limit_reached", "enforced_spend_limit_reached"})
_MEDIA_CODES: Final = frozenset({"image_dimensions_too_large", "file_expired"})

_TOO_LONG: Final = re.compile(
    r"prompt is too long"
    r"|exceeds? (the )?(model'?s? )?(maximum )?context (limit|window|length)"
    r"|request exceeds the maximum size"
    r"|context_length_exceeded",
    re.IGNORECASE,
)
_MEDIA: Final = re.compile(
    r"could not process (the )?(image|pdf|document|file)"
    r"|image exceeds .* maximum"
    r"|image (cannot be empty|dimensions)"
    r"|exceed max allowed size"
    r"|specified using the image/\S+ media type"
    r"|the pdf specified (was not valid|is password protected)"
    r"|maximum of \d+ pdf pages"
    r"|unable to download the file"
    r"|\.(image|document|pdf)\.source\.",
    re.IGNORECASE,
)
# h11's words for a header that cannot be sent. Most often it is an API key with a line end.
_HEADER_VALUE: Final = re.compile(r"(Illegal header value) .*", re.DOTALL)
_MODEL: Final = re.compile(r"^\s*model:|\bmodel\b.*(not exist|not found|not available|retired)", re.IGNORECASE)

# Libraries whose errors are errors of the transport. Named, not imported: an error of theirs can only come from one
# that is loaded.
_TRANSPORT: Final = frozenset({"anyio", "h11", "h2", "httpcore", "httpcore2", "httpx", "httpx2"})
# Errors of a transport that the request itself is to blame for.
_OUR_FAULT: Final = frozenset(
    {"CookieConflict", "InvalidURL", "LocalProtocolError", "TooManyRedirects", "UnsupportedProtocol"}
)


def classify(error: BaseException | Mapping[str, Any]) -> Failure:
    """The failure behind an exception of a request, or behind an `error` event of the stream. Total.

    >>> classify({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}).outcome
    <ResponseOutcome.OVERLOADED: 'overloaded'>
    >>> classify(ConnectionResetError("reset by peer")).outcome
    <ResponseOutcome.RETRYABLE: 'retryable'>
    """
    if not isinstance(error, BaseException):
        return _api_failure(_ApiError.read(dict(error), status=200, headers={}))
    if isinstance(error, BaseExceptionGroup):
        return classify(next(_leaves(cast("BaseExceptionGroup[BaseException]", error))))
    if isinstance(error, StreamFault):
        return Failure(_R.RETRYABLE, error.kind, _short(error.message))
    status = getattr(error, "status_code", None)
    if isinstance(status, int):
        return _status_failure(error, status)
    return _transport_failure(error)


def _leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(cast("BaseExceptionGroup[BaseException]", error))
        else:
            yield error


# ---- answers of the API


@dataclass(frozen=True, slots=True)
class _ApiError:
    """What an error of the API says, wherever it says it."""

    status: int
    type: str | None
    code: str | None
    message: str
    headers: Mapping[str, str]
    request_id: str | None

    @classmethod
    def read(cls, body: object, *, status: int, headers: Mapping[str, str], text: str = "") -> _ApiError:
        whole = as_object(body) or {}
        error = as_object(whole.get("error")) or {}
        details = as_object(error.get("details")) or {}
        message = as_text(error.get("message")) or as_text(body) or text
        paths = [path for path in _array(details.get("paths")) if isinstance(path, str) and path not in message]
        return cls(
            status=status,
            type=as_text(error.get("type")) or None,
            code=as_text(details.get("error_code")) or None,
            message=" ".join([message, f"({', '.join(paths)})"]) if paths else message,
            headers=headers,
            request_id=as_text(whole.get("request_id")) or headers.get("request-id"),
        )


def _status_failure(error: BaseException, status: int) -> Failure:
    headers = getattr(getattr(error, "response", None), "headers", None)
    body = getattr(error, "body", None)
    if status < 400 and as_object((as_object(body) or {}).get("error")) is None:
        # An answer that is no answer: the SDK could not read it, or it holds an error event that is no JSON.
        return Failure(_R.RETRYABLE, PROTOCOL, _short(f"{status}: {_said(error)}"), status=status)
    return _api_failure(
        _ApiError.read(body, status=status, headers=cast("Mapping[str, str]", headers or {}), text=_said(error))
    )


def _api_failure(error: _ApiError) -> Failure:
    told = should_retry(error.headers)
    outcome = _outcome(error)
    if told is False and outcome in (_R.RETRYABLE, _R.OVERLOADED):
        outcome = _R.FATAL
    elif told is True and outcome is _R.FATAL:
        outcome = _R.RETRYABLE
    kind = error.type or (f"http_{error.status}" if error.status >= 400 else "error_event")
    return Failure(
        outcome,
        kind,
        _short(
            f"{error.status} {kind}: {error.message or 'no message'}"
            if error.status >= 400
            else f"{kind} inside the stream: {error.message or 'no message'}"
        ),
        status=error.status,
        retry_after=retry_after(error.headers),
        should_retry=told,
        request_id=error.request_id,
    )


def _outcome(error: _ApiError) -> ResponseOutcome:
    if error.code in _SPEND_LIMITS:
        return _R.FATAL
    by_type = ERROR_TYPES.get(error.type or "")
    outcome = _of_status(error.status) if by_type is None else by_type
    if error.status == 529 and outcome is _R.RETRYABLE:
        return _R.OVERLOADED
    if outcome in (_R.FATAL, _R.PROMPT_TOO_LONG):
        return _of_text(error, outcome)
    return outcome


def _of_text(error: _ApiError, otherwise: ResponseOutcome) -> ResponseOutcome:
    """The outcome of an error that the request is to blame for: which part of the request?"""
    if error.code in _MEDIA_CODES:
        return _R.MEDIA_REJECTED
    if error.status == 404 or error.type == "not_found_error":
        return _R.MODEL_UNAVAILABLE if _MODEL.search(error.message) else otherwise
    if error.type not in (None, "invalid_request_error", "request_too_large"):
        return otherwise
    if _TOO_LONG.search(error.message):
        return _R.PROMPT_TOO_LONG
    if _MEDIA.search(error.message):
        return _R.MEDIA_REJECTED
    return otherwise


def _of_status(status: int) -> ResponseOutcome:
    if status == 413:
        return _R.PROMPT_TOO_LONG
    if status < 300 or status in _RETRIED_STATUSES or status >= 500:
        return _R.RETRYABLE
    return _R.FATAL


# ---- no answer


def _transport_failure(error: BaseException) -> Failure:
    said = _short(_said(error))
    names = [(cls.__module__.partition(".")[0], cls.__name__) for cls in type(error).__mro__]
    bare = {name for _, name in names}
    if isinstance(error, JSONDecodeError | UnicodeDecodeError):
        return Failure(_R.RETRYABLE, PROTOCOL, said)
    if isinstance(error, TimeoutError) or bare & {"TimeoutException", "APITimeoutError"}:
        return Failure(_R.RETRYABLE, TIMEOUT, said)
    if "APIConnectionError" in bare and error.__cause__ is not None:
        # The SDK wraps whatever its transport raised, a closed client and a wrong URL too.
        return replace(_transport_failure(error.__cause__), message=said)
    from_transport = any(module in _TRANSPORT for module, _ in names) and not bare & _OUR_FAULT
    if from_transport or isinstance(error, OSError | EOFError) or "APIConnectionError" in bare:
        return Failure(_R.RETRYABLE, CONNECTION, said)
    if "RetryableError" in bare:  # the SDK's word for "try again", raised by middleware
        return Failure(_R.RETRYABLE, type(error).__name__, said)
    return Failure(_R.FATAL, type(error).__name__, said)


def _said(error: BaseException) -> str:
    """The error in words, with its type, and with the cause that the SDK hides behind 'Connection error.'."""
    words = _text_of(error)
    said = f"{type(error).__name__}: {words}" if words else type(error).__name__
    cause = error.__cause__
    return f"{said} ({type(cause).__name__}: {_text_of(cause)})" if cause is not None else said


def _text_of(error: BaseException) -> str:
    try:
        return _HEADER_VALUE.sub(r"\1 (not shown, for it may be a key)", str(error))
    except Exception:
        return "(its text cannot be made)"


def _short(message: str) -> str:
    message = mended_text(message)
    return message if len(message) <= _LONGEST_MESSAGE else message[: _LONGEST_MESSAGE - 1] + "…"


def _array(value: object) -> list[Any]:
    return value if is_array(value) else []
