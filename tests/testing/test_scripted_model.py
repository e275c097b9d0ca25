"""The scripted model in process: the same events, and the errors that the SDK would raise."""

import asyncio
from typing import Any

import anthropic
import httpx2
import pytest

from fsm_agent.model.faults import StreamFault
from fsm_agent.testing import (
    ApiError,
    ApiSettings,
    Fault,
    RawResponse,
    Repeat,
    Reply,
    ScriptedModel,
    Stream,
    UnexpectedRequestError,
    forbid_real_requests,
    thinking,
    tool_use,
)
from fsm_agent.testing.events import fold_message
from fsm_agent.testing.real_requests import RealRequestForbidden
from tests.testing.calls import MODEL, Call, call, events_of


async def test_a_call_yields_the_wire_events_of_the_reply():
    model = ScriptedModel([Reply("hi")])
    message = fold_message(await events_of(model))
    assert message["content"] == [{"type": "text", "text": "hi"}]
    assert message["model"] == MODEL
    assert model.calls[0]["messages"] == [{"role": "user", "content": "hi"}]
    model.assert_complete()


async def test_a_call_that_the_script_does_not_expect_shows_both():
    model = ScriptedModel([Reply("a", when="summary")])
    with pytest.raises(UnexpectedRequestError, match=r"no item for request 1 \(turn\).*'hi'.*Left.*text 'a'"):
        await events_of(model)
    with pytest.raises(AssertionError, match="no item for request 1"):
        model.assert_complete()


async def test_a_lenient_model_answers_an_unexpected_call_with_an_error():
    model = ScriptedModel([], strict=False)
    with pytest.raises(anthropic.BadRequestError, match="no item for request 1"):
        await events_of(model)


async def test_a_missing_call_is_an_error_that_shows_what_is_left():
    model = ScriptedModel([Reply("a"), Reply("b")])
    await events_of(model)
    with pytest.raises(AssertionError, match=r"1 requests came.*Reply\(text 'b'"):
        model.assert_complete()


async def test_a_request_is_judged_by_the_rules_of_the_api():
    model = ScriptedModel([Reply("a")])
    with pytest.raises(anthropic.BadRequestError) as refused:
        await events_of(model, call(""))
    assert refused.value.api_message == "messages.0: user messages must have non-empty content"
    assert [refusal.rule for refusal in model.refusals] == ["R113"]
    assert model.call_count == 1
    await events_of(model)


async def test_a_body_that_is_no_json_is_refused():
    with pytest.raises(anthropic.BadRequestError, match="not valid JSON"):
        await events_of(ScriptedModel([]), Call(b"{"))


@pytest.mark.parametrize(
    ("status", "kind", "expected"),
    [
        (400, "invalid_request_error", anthropic.BadRequestError),
        (401, "authentication_error", anthropic.AuthenticationError),
        (403, "permission_error", anthropic.PermissionDeniedError),
        (404, "not_found_error", anthropic.NotFoundError),
        (413, "request_too_large", anthropic.ContentTooLargeError),
        (418, "odd", anthropic.APIStatusError),
        (429, "rate_limit_error", anthropic.RateLimitError),
        (500, "api_error", anthropic.InternalServerError),
        (529, "overloaded_error", anthropic.OverloadedError),
        (599, "odd", anthropic.InternalServerError),
    ],
)
async def test_an_api_error_is_the_class_that_the_sdk_raises(status, kind, expected):
    model = ScriptedModel([ApiError(status, kind, "words", headers={"retry-after": "3"})])
    with pytest.raises(anthropic.APIStatusError) as raised:
        await events_of(model)
    error = raised.value
    assert type(error) is expected
    assert (error.status_code, error.type, error.api_message) == (status, kind, "words")
    assert error.response.headers["retry-after"] == "3"
    assert error.request_id is not None


async def test_a_code_in_the_details_chooses_the_class():
    details = {"error_code": "thread_not_found"}
    model = ScriptedModel([ApiError(404, "not_found_error", details=details)])
    with pytest.raises(anthropic.NotFoundError) as raised:
        await events_of(model)
    assert type(raised.value).__name__ == "ThreadNotFoundError"


async def collected(model, events):
    async for event in model(call()):
        events.append(event["type"])


@pytest.mark.parametrize(("kind", "error"), [("cut", httpx2.RemoteProtocolError), ("reset", httpx2.ReadError)])
async def test_a_lost_connection_is_a_transport_error(kind, error):
    events: list[str] = []
    with pytest.raises(error):
        await collected(ScriptedModel([Reply("hi", fault=Fault(2, kind))]), events)
    assert events == ["message_start", "content_block_start"]


@pytest.mark.parametrize("kind", ["cut", "reset"])
async def test_a_connection_lost_before_the_answer_is_a_connection_error(kind):
    with pytest.raises(anthropic.APIConnectionError):
        await events_of(ScriptedModel([Reply("hi", fault=Fault(0, kind))]))


async def test_an_early_end_just_ends():
    events = await events_of(ScriptedModel([Stream(["message_start", {"text": "par"}, "eof", {"text": "never"}])]))
    assert [event["type"] for event in events] == ["message_start", "content_block_start", "content_block_delta"]


async def test_an_error_event_is_yielded_as_it_is():
    events = await events_of(ScriptedModel([Reply("hi", fault=Fault(1, "error"))]))
    assert events[-1]["error"]["type"] == "overloaded_error"


async def test_garbage_raises_what_reading_it_raises():
    with pytest.raises(StreamFault, match="no JSON object"):
        await events_of(ScriptedModel([Reply("hi", fault=Fault(1, "garbage"))]))


async def test_bytes_are_read_as_the_transport_reads_them():
    cut: list[Any] = [
        b'event: ping\r\ndata: {"ty',
        b'pe": "ping"}\r\n\r\n: comment\n\n',
        {"text": "a"},
        b'data: {"type": "x"}',
    ]
    events = await events_of(ScriptedModel([Stream(cut)]))
    assert [event["type"] for event in events] == ["ping", "content_block_start", "content_block_delta", "x"]


async def test_a_body_that_is_no_stream_is_a_fault_and_an_empty_one_nothing():
    with pytest.raises(StreamFault, match="<html>busy</html>"):
        await events_of(ScriptedModel([RawResponse(b"<html>busy</html>")]))
    assert await events_of(ScriptedModel([RawResponse(b"")])) == []


async def test_an_error_object_with_status_200_is_an_error_event():
    events = await events_of(ScriptedModel([RawResponse('{"error": {"type": "api_error"}}')]))
    assert events == [{"type": "error", "error": {"type": "api_error"}}]


async def test_silence_lasts_until_the_caller_gives_up():
    model = ScriptedModel([Stream(["message_start", {"wait": "abort"}])])
    events: list[str] = []
    task = asyncio.create_task(collected(model, events))
    while not events:
        await asyncio.sleep(0)
    assert model.open_streams == 1
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert model.open_streams == 0


async def test_a_consumer_that_closes_the_stream_leaves_nothing_open():
    model = ScriptedModel([Reply("hi")])
    stream = model(call())
    await anext(stream)
    await stream.aclose()
    assert model.open_streams == 0


async def test_thinking_comes_back_signed_and_only_to_its_model():
    model = ScriptedModel([Reply(thinking("hm"), tool_use("t", id="a")), Reply("b"), Reply("c")])
    message = fold_message(await events_of(model))
    turns = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": message["content"]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]},
    ]
    await events_of(model, call(messages=turns))
    with pytest.raises(anthropic.BadRequestError, match="Invalid `signature`"):
        await events_of(model, call(messages=turns, model="claude-opus-5-5"))


async def test_ids_of_calls_and_messages_are_fresh_and_the_same_in_every_run():
    async def ids():
        model = ScriptedModel([Repeat(Reply(tool_use("t")), "always")])
        messages = [fold_message(await events_of(model)) for _ in range(3)]
        return [(message["id"], message["content"][0]["id"]) for message in messages]

    first = await ids()
    assert len({identifier for pair in first for identifier in pair}) == 6
    assert first == await ids()


async def test_only_the_last_bodies_are_kept_when_asked():
    model = ScriptedModel([Repeat(Reply("a"), "always")], keep=2)
    for number in range(5):
        await events_of(model, call(str(number)))
    assert [body["messages"][0]["content"] for body in model.calls] == ["3", "4"]
    assert model.call_count == 5


async def test_a_reply_stops_where_the_context_window_ends():
    settings = ApiSettings(context_window=100)
    message = fold_message(await events_of(ScriptedModel([Reply("x" * 4000)], settings=settings)))
    assert message["stop_reason"] == "model_context_window_exceeded"
    assert len(message["content"][0]["text"]) < 400


async def test_a_reply_stops_at_max_tokens_in_the_middle_of_a_call_when_asked():
    settings = ApiSettings(enforce_max_tokens=True)
    model = ScriptedModel([Reply("a", tool_use("write", {"text": "y" * 4000}))], settings=settings)
    message = fold_message(await events_of(model, call(max_tokens=200)))
    assert message["stop_reason"] == "max_tokens"
    assert message["usage"]["output_tokens"] == 200
    assert message["content"][1]["input"] == {}


async def test_a_real_request_is_forbidden_where_the_guard_stands():
    with forbid_real_requests() as tried:
        async with anthropic.AsyncAnthropic(api_key="test", base_url="https://api.example.com") as client:
            with pytest.raises(RealRequestForbidden, match=r"POST https://api\.example\.com/v1/messages"):
                await client.messages.create(model=MODEL, max_tokens=1, messages=[{"role": "user", "content": "hi"}])
    assert tried == ["https://api.example.com/v1/messages"]
