"""Every failure of a request is one outcome of the machine."""

import json
from typing import Any

import anthropic
import anyio
import httpx2
import pytest

from fsm_agent.machine.vocabulary import ResponseOutcome as R
from fsm_agent.model.classify import ERROR_TYPES, classify
from fsm_agent.model.faults import EOF, PROTOCOL, STALL, StreamFault
from fsm_agent.model.retry_after import retry_after

REQUEST = httpx2.Request("POST", "https://api.anthropic.com/v1/messages")


def api_error(status: int, kind: str | None, message: str = "x", **headers: str) -> anthropic.APIStatusError:
    body: Any = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    response = httpx2.Response(status, headers=names, content=json.dumps(body).encode(), request=REQUEST)
    return anthropic.APIStatusError(message, response=response, body=body)


@pytest.mark.parametrize(
    ("status", "kind", "outcome"),
    [
        (400, "invalid_request_error", R.FATAL),
        (401, "authentication_error", R.FATAL),
        (402, "billing_error", R.FATAL),
        (403, "permission_error", R.FATAL),
        (404, "not_found_error", R.FATAL),
        (408, "timeout_error", R.RETRYABLE),
        (409, "conflict_error", R.RETRYABLE),
        (413, "request_too_large", R.PROMPT_TOO_LONG),
        (422, "invalid_request_error", R.FATAL),
        (429, "rate_limit_error", R.RETRYABLE),
        (500, "api_error", R.RETRYABLE),
        (504, "timeout_error", R.RETRYABLE),
        (529, "overloaded_error", R.OVERLOADED),
        (529, "api_error", R.OVERLOADED),
        (503, "overloaded_error", R.OVERLOADED),
        (418, None, R.FATAL),
        (422, None, R.FATAL),
        (413, None, R.PROMPT_TOO_LONG),
        (429, None, R.RETRYABLE),
        (502, None, R.RETRYABLE),
        (529, None, R.OVERLOADED),
        (500, "an_error_of_tomorrow", R.RETRYABLE),
        (400, "an_error_of_tomorrow", R.FATAL),
    ],
)
def test_an_answer_is_judged_by_its_error_type_then_by_its_status(status: int, kind: str | None, outcome: R):
    failure = classify(api_error(status, kind))
    assert (failure.outcome, failure.status, failure.request_id) == (outcome, status, "req_1")
    assert failure.kind == (kind or f"http_{status}")


def test_every_error_type_of_the_sdk_is_known():
    from typing import get_args

    from anthropic.types.shared import ErrorType

    of_other_endpoints = {"memory_precondition_failed_error", "memory_path_conflict_error"}
    assert set(get_args(ErrorType)) - of_other_endpoints <= set(ERROR_TYPES)


@pytest.mark.parametrize(
    "text",
    [
        "prompt is too long: 3333404 tokens > 200000 maximum",
        "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length",
        "Request size exceeds model context window",
    ],
)
def test_a_prompt_that_is_too_long_is_known_by_its_text(text: str):
    assert classify(api_error(400, "invalid_request_error", text)).outcome is R.PROMPT_TOO_LONG


@pytest.mark.parametrize(
    "text",
    [
        "messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 5316852 bytes > 5242880 bytes",
        "messages.3.content.0.image.source.base64.data: At least one of the image dimensions exceed max allowed size",
        "messages.0.content.0.image.source.base64.media_type: Input should be 'image/jpeg', 'image/png'",
        "messages.0.content.0.image.source.base64: image cannot be empty",
        "Could not process image",
        "The image was specified using the image/png media type, but the image appears to be a image/jpeg image",
        "messages.0.content.0.pdf.source.base64.data: The PDF specified was not valid.",
        "messages.0.content.0.pdf.source.base64.data: The PDF specified is password protected.",
        "A maximum of 100 PDF pages may be provided.",
    ],
)
def test_refused_media_are_known_by_their_text(text: str):
    failure = classify(api_error(400, "invalid_request_error", text))
    assert failure.outcome is R.MEDIA_REJECTED
    assert text in failure.message


def test_refused_media_are_known_by_the_code_and_the_paths_are_told():
    details = {"error_code": "image_dimensions_too_large", "paths": ["messages.2.content.0"]}
    body = {"type": "error", "error": {"type": "invalid_request_error", "message": "Too large.", "details": details}}
    failure = classify(body)
    assert failure.outcome is R.MEDIA_REJECTED
    assert "messages.2.content.0" in failure.message


@pytest.mark.parametrize(
    "text", ["temperature: range: 0..1", "messages: at least one message is required", "tools.0.x"]
)
def test_any_other_bad_request_is_fatal(text: str):
    assert classify(api_error(400, "invalid_request_error", text)).outcome is R.FATAL


@pytest.mark.parametrize("text", ["prompt is too long", "Could not process image"])
def test_texts_do_not_decide_about_errors_of_another_type(text: str):
    assert classify(api_error(401, "authentication_error", text)).outcome is R.FATAL
    assert classify(api_error(500, "api_error", text)).outcome is R.RETRYABLE


def test_a_missing_model_is_told_from_a_missing_page():
    assert classify(api_error(404, "not_found_error", "model: claude-none")).outcome is R.MODEL_UNAVAILABLE
    assert classify(api_error(404, "not_found_error", "Not Found")).outcome is R.FATAL


def test_a_spend_limit_is_not_waited_for():
    details = {"error_code": "enforced_spend_limit_reached"}
    body = {"error": {"type": "rate_limit_error", "message": "x", "details": details}}
    error = anthropic.APIStatusError("x", response=httpx2.Response(429, request=REQUEST), body=body)
    assert classify(error).outcome is R.FATAL


def test_what_the_service_says_of_a_repetition_is_obeyed():
    assert classify(api_error(529, "overloaded_error", x_should_retry="false")).outcome is R.FATAL
    assert classify(api_error(400, "invalid_request_error", x_should_retry="true")).outcome is R.RETRYABLE
    told = classify(api_error(529, "overloaded_error", x_should_retry="true"))
    assert (told.outcome, told.should_retry) == (R.OVERLOADED, True)


def test_the_cdn_refuses_a_body_without_top_level_type_or_request_id():
    body = {"error": {"type": "request_too_large", "message": "Request exceeds the maximum size"}}
    error = anthropic.APIStatusError("x", response=httpx2.Response(413, request=REQUEST), body=body)
    failure = classify(error)
    assert (failure.outcome, failure.request_id) == (R.PROMPT_TOO_LONG, None)


def test_a_page_of_a_proxy_is_judged_by_its_status_and_its_text_is_bounded():
    page = "<html>" + "x" * 100_000
    error = anthropic.APIStatusError(page, response=httpx2.Response(502, request=REQUEST), body=page)
    failure = classify(error)
    assert (failure.outcome, failure.kind) == (R.RETRYABLE, "http_502")
    assert len(failure.message) <= 2_000


def test_an_error_status_without_an_error_in_the_body_is_judged_by_the_status():
    for body in (None, {}, {"detail": "no"}, "no"):
        response = httpx2.Response(400, request=REQUEST)
        failure = classify(anthropic.APIStatusError("bad", response=response, body=body))
        assert (failure.outcome, failure.status) == (R.FATAL, 400)


# ---- error events


@pytest.mark.parametrize(
    ("kind", "outcome"),
    [
        ("overloaded_error", R.OVERLOADED),
        ("api_error", R.RETRYABLE),
        ("rate_limit_error", R.RETRYABLE),
        ("timeout_error", R.RETRYABLE),
        ("invalid_request_error", R.FATAL),
        ("authentication_error", R.FATAL),
        ("an_error_of_tomorrow", R.RETRYABLE),
    ],
)
def test_an_error_event_is_judged_by_its_type_and_so_is_the_sdks_exception_for_it(kind: str, outcome: R):
    event = {"type": "error", "error": {"details": None, "type": kind, "message": "x"}, "request_id": "req_2"}
    told = classify(event)
    assert (told.outcome, told.kind, told.status, told.request_id) == (outcome, kind, 200, "req_2")
    assert classify(api_error(200, kind)).outcome is outcome


@pytest.mark.parametrize(
    "event", [{"type": "error"}, {"error": None}, {"error": {"message": None}}, {"error": "x"}, {}]
)
def test_an_error_event_that_says_nothing_is_passing(event: Any):
    failure = classify(event)
    assert (failure.outcome, failure.kind) == (R.RETRYABLE, "error_event")


def test_an_error_event_that_is_no_json_is_passing_for_the_sdk_too():
    error = anthropic.APIStatusError("oops", response=httpx2.Response(200, request=REQUEST), body="oops")
    assert (classify(error).outcome, classify(error).kind) == (R.RETRYABLE, PROTOCOL)


# ---- no answer


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (httpx2.ConnectError("refused"), "connection"),
        (httpx2.ReadError("reset"), "connection"),
        (httpx2.WriteError("broken pipe"), "connection"),
        (httpx2.RemoteProtocolError("peer closed connection without sending complete message body"), "connection"),
        (httpx2.ProxyError("x"), "connection"),
        (httpx2.DecodingError("bad gzip"), "connection"),
        (httpx2.ReadTimeout("x"), "timeout"),
        (httpx2.ConnectTimeout("x"), "timeout"),
        (httpx2.PoolTimeout("x"), "timeout"),
        (anthropic.APIConnectionError(request=REQUEST), "connection"),
        (anthropic.APITimeoutError(request=REQUEST), "timeout"),
        (anyio.BrokenResourceError(), "connection"),
        (ConnectionResetError("x"), "connection"),
        (OSError(113, "No route to host"), "connection"),
        (EOFError("x"), "connection"),
        (TimeoutError(), "timeout"),
        (json.JSONDecodeError("x", "y", 0), "protocol"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "x"), "protocol"),
        (StreamFault(EOF, "x"), "eof"),
        (StreamFault(STALL, "x"), "stall"),
        (StreamFault(PROTOCOL, "x"), "protocol"),
    ],
    ids=repr,
)
def test_a_fault_of_the_transport_is_passing(error: Exception, kind: str):
    failure = classify(error)
    assert (failure.outcome, failure.kind) == (R.RETRYABLE, kind)
    assert failure.message


@pytest.mark.parametrize(
    "error",
    [
        TypeError("Could not resolve authentication method."),
        anthropic.AnthropicError("no key"),
        httpx2.UnsupportedProtocol("Request URL is missing an 'http://' or 'https://' protocol."),
        httpx2.InvalidURL("x"),
        httpx2.LocalProtocolError("illegal header value"),
        httpx2.TooManyRedirects("x"),
        UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed"),
        ZeroDivisionError(),
        AssertionError(),
    ],
    ids=repr,
)
def test_a_fault_of_the_request_or_of_the_program_is_fatal(error: Exception):
    failure = classify(error)
    assert (failure.outcome, failure.kind) == (R.FATAL, type(error).__name__)
    assert type(error).__name__ in failure.message


def test_the_cause_that_the_sdk_hides_is_told():
    error = anthropic.APIConnectionError(request=REQUEST)
    error.__cause__ = httpx2.ConnectError("All connection attempts failed")
    assert "All connection attempts failed" in classify(error).message


def test_a_group_is_judged_by_its_first_error():
    inner = ExceptionGroup("inner", [httpx2.ReadError("reset"), ValueError()])
    assert classify(ExceptionGroup("outer", [inner, ValueError()])).kind == "connection"


def test_an_error_whose_text_cannot_be_made_is_still_told():
    class Silent(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert "Silent" in classify(Silent()).message


# ---- retry-after


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after-ms": "x", "retry-after": "9"}, 9.0),
        ({"retry-after": "86400"}, 86_400.0),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "abc"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": ""}, None),
        ({}, None),
        ({"date": "Wed, 21 Oct 2026 07:28:00 GMT", "retry-after": "Wed, 21 Oct 2026 07:28:30 GMT"}, 30.0),
        ({"date": "Wed, 21 Oct 2026 07:28:00 GMT", "retry-after": "Wed, 21 Oct 2026 07:27:00 GMT"}, None),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, None),
        ({"retry-after": "Wed, 99 Oct 2026 07:28:00 GMT"}, None),
    ],
)
def test_retry_after_in_each_form(headers: dict[str, str], seconds: float | None):
    assert retry_after(headers) == seconds


def test_a_date_without_the_answers_own_is_measured_against_the_clock():
    seconds = retry_after({"retry-after": "Fri, 21 Oct 2099 07:28:00 GMT"})
    assert seconds is not None
    assert seconds > 365 * 86_400


def test_a_failure_carries_the_wait():
    assert classify(api_error(429, "rate_limit_error", retry_after="3")).retry_after == 3.0
