"""Rules that come before the body is looked at (R001 to R006, R190 is in `fsm_agent.testing.rate_limits`)."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

from fsm_agent.testing.rules.refusal import ApiRefusal, refuse
from fsm_agent.testing.rules.settings import ApiSettings
from fsm_agent.testing.shapes import JsonObject, is_object

__all__ = ["check_headers", "check_size", "parse_body", "unknown_path"]


def unknown_path() -> ApiRefusal:
    """R002."""
    return ApiRefusal("R002", "Not Found", 404, "not_found_error")


def check_size(length: int, settings: ApiSettings) -> Iterator[ApiRefusal]:
    """R001: `length` is in bytes. The answer comes from the network in front of the API and has its own body."""
    if length > settings.max_body_bytes:
        text = "Request exceeds the maximum size"
        yield ApiRefusal("R001", text, 413, "request_too_large", bare=True)


def check_headers(headers: Mapping[str, str], settings: ApiSettings) -> Iterator[ApiRefusal]:
    """R005, R006. A bearer token is as good as an API key."""
    named = {key.lower(): value for key, value in headers.items()}
    bearer = named.get("authorization", "").removeprefix("Bearer ")
    key = named.get("x-api-key", "") or bearer
    if not key:
        yield ApiRefusal("R005", "x-api-key header is required", 401, "authentication_error")
    elif settings.api_keys is not None and key not in settings.api_keys:
        yield ApiRefusal("R005", "invalid x-api-key", 401, "authentication_error")
    if "anthropic-version" not in named:
        yield refuse("R006", "anthropic-version: header is required")


def parse_body(raw: bytes) -> JsonObject | ApiRefusal:
    """R003: the body as strict JSON (UTF-8, no NaN, no lone surrogates), which must be an object.

    >>> parse_body(b'{"model": "m"}')
    {'model': 'm'}
    >>> parse_body(b'{"text": "\\\\ud83d"}').message
    'The request body is not valid JSON: no low surrogate in string: line 1 column 11 (char 10)'
    """
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        return _not_json(f"str is not valid UTF-8: surrogates not allowed: line 1 column 1 (char {error.start})")
    try:
        body: Any = _DECODER.decode(text)
    except ValueError as error:
        return _not_json(str(error))
    except RecursionError:
        return _not_json("recursion limit reached: line 1 column 1 (char 0)")
    lone = _lone_surrogate(text) if "\\u" in text else None
    if lone is not None:
        line = text.count("\n", 0, lone) + 1
        column = lone - text.rfind("\n", 0, lone)
        return _not_json(f"no low surrogate in string: line {line} column {column} (char {lone})")
    if not is_object(body):
        return refuse("R003", "Input does not match the expected shape.")
    return body


def _not_json(why: str) -> ApiRefusal:
    return refuse("R003", f"The request body is not valid JSON: {why}")


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"unexpected character: {name}")


_DECODER = json.JSONDecoder(parse_constant=_no_constant)  # `json.loads` with an option makes one for each call

# An escape, or a pair of surrogate escapes, each taken whole, so that `\\ud83d` (an escaped backslash) is none.
_ESCAPE = re.compile(r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.)", re.DOTALL)
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")


def _lone_surrogate(text: str) -> int | None:
    for escape in _ESCAPE.finditer(text):
        if _SURROGATE.fullmatch(escape[0]):
            return escape.start()
    return None
