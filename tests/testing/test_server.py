"""The local Messages API, spoken to by the real SDK over a real socket."""

import asyncio
import json
import socket
from typing import Any

import anthropic
import httpx2
import pytest

from fsm_agent.testing import (
    ApiError,
    ApiSettings,
    Chunking,
    MessagesServer,
    RateLimits,
    RawResponse,
    Repeat,
    Reply,
    Stream,
    text,
    thinking,
    tool_use,
)
from tests.testing.calls import MODEL, ask, client_of, stream, texts

REPLY = Reply(thinking("hm"), text("Let me look."), tool_use("read", {"path": "a.txt"}, id="t1"))


async def test_a_plain_request_gets_the_whole_message():
    async with MessagesServer([REPLY]) as server, client_of(server) as client:
        message = await ask(client)
    assert [block.type for block in message.content] == ["thinking", "text", "tool_use"]
    assert message.content[2].input == {"path": "a.txt"}
    assert (message.stop_reason, message.model, message.role) == ("tool_use", MODEL, "assistant")
    assert message._request_id == "req_000000000000000000000001"


async def test_a_stream_adds_up_to_the_same_message():
    async with MessagesServer([REPLY, REPLY]) as server, client_of(server) as client:
        plain = await ask(client)
        request: Any = {"model": MODEL, "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
        async with client.messages.stream(**request) as streamed:
            message = await streamed.get_final_message()
    assert message.to_dict()["content"] == plain.to_dict()["content"]
    assert message.stop_reason == plain.stop_reason


@pytest.mark.parametrize("size", [1, 3, 7])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
async def test_chunks_may_end_anywhere_also_inside_a_character(size, newline):
    chunking = Chunking(text=2, json=2, wire=size, newline=newline)
    reply = Reply("Grüße 😀 " * 3, tool_use("t", {"ö": "😀"}))
    async with MessagesServer([reply], chunking=chunking) as server, client_of(server) as client:
        events = await stream(client)
    assert texts(events) == "Grüße 😀 " * 3
    pieces = [
        event.delta.partial_json
        for event in events
        if getattr(event, "delta", None) and hasattr(event.delta, "partial_json")
    ]
    assert json.loads("".join(pieces)) == {"ö": "😀"}


async def test_the_log_keeps_body_bytes_headers_and_status():
    async with MessagesServer([Reply("a")]) as server, client_of(server) as client:
        await ask(client, "hello")
        (entry,) = server.requests
    assert entry.body is not None
    assert entry.messages == [{"role": "user", "content": "hello"}]
    assert json.loads(entry.raw) == entry.body
    assert entry.headers["authorization"] == "Bearer test"
    assert (entry.method, entry.path, entry.status) == ("POST", "/v1/messages", 200)
    assert entry.finished
    assert not entry.client_gone


async def test_a_request_against_the_rules_gets_the_answer_of_the_api():
    async with MessagesServer([Reply("a")]) as server, client_of(server) as client:
        with pytest.raises(anthropic.BadRequestError) as refused:
            await stream(client, "")
        assert refused.value.body == {
            "type": "error",
            "error": {
                "type": "invalid_request_error",
                "message": "messages.0: user messages must have non-empty content",
            },
            "request_id": refused.value.request_id,
        }
        assert [refusal.rule for refusal in server.refusals] == ["R113"]
        with pytest.raises(AssertionError, match="refused 1 requests; the first by R113"):
            server.assert_no_refusals()


async def test_an_unknown_model_an_unknown_path_and_a_wrong_key_are_refused():
    settings = ApiSettings(api_keys=frozenset({"right"}))
    async with MessagesServer([], settings=settings) as server:
        async with client_of(server, api_key="right") as client:
            with pytest.raises(anthropic.NotFoundError, match="model: nobody"):
                await ask(client, model="nobody")
            with pytest.raises(anthropic.NotFoundError, match="Not Found"):
                await client.post("/v1/nothing", body={}, cast_to=object)
        async with client_of(server, api_key="wrong") as client:
            with pytest.raises(anthropic.AuthenticationError, match="invalid x-api-key"):
                await ask(client)


async def test_a_body_above_the_limit_is_refused_without_a_request_id():
    async with MessagesServer([], settings=ApiSettings(max_body_bytes=1000)) as server, client_of(server) as client:
        with pytest.raises(anthropic.ContentTooLargeError) as refused:
            await ask(client, "x" * 1000)
    assert refused.value.request_id is None
    assert refused.value.body == {"error": {"type": "request_too_large", "message": "Request exceeds the maximum size"}}


async def test_a_scripted_error_comes_with_its_headers():
    error = ApiError(429, "rate_limit_error", "slow down", headers={"retry-after": "3"})
    async with MessagesServer([error, ApiError(529, "overloaded_error")]) as server, client_of(server) as client:
        with pytest.raises(anthropic.RateLimitError) as limited:
            await ask(client)
        assert limited.value.response.headers["retry-after"] == "3"
        with pytest.raises(anthropic.OverloadedError, match="Overloaded") as busy:
            await stream(client)
        assert busy.value.response.headers["x-should-retry"] == "true"
        assert [entry.status for entry in server.requests] == [429, 529]


async def test_tokens_are_counted_as_they_are_in_usage():
    async with MessagesServer([Reply("a")]) as server, client_of(server) as client:
        question: Any = [{"role": "user", "content": "How long is this?"}]
        counted = await client.messages.count_tokens(model=MODEL, messages=question)
        answer = await client.messages.create(model=MODEL, max_tokens=9, messages=question)
        with pytest.raises(anthropic.BadRequestError, match="at least one message"):
            await client.messages.count_tokens(model=MODEL, messages=[])
    assert counted.input_tokens == answer.usage.input_tokens == 11


async def test_models_are_listed_with_their_limits():
    async with MessagesServer([]) as server, client_of(server) as client:
        listed = [model.id async for model in client.models.list()]
        one = await client.models.retrieve("claude-sonnet-4-5")
        with pytest.raises(anthropic.NotFoundError):
            await client.models.retrieve("nobody")
    assert MODEL in listed
    assert (one.max_input_tokens, one.max_tokens) == (200_000, 64_000)


async def asked_twice(server):
    async with server, client_of(server) as client:
        await ask(client, "one")
        with pytest.raises(anthropic.BadRequestError, match="no item for request 2"):
            await ask(client, "two")


async def test_a_request_that_the_script_does_not_expect_fails_the_test():
    server = MessagesServer([Reply("a")])
    with pytest.raises(AssertionError, match=r"no item for request 2.*'two'.*Left in the script: nothing"):
        await asked_twice(server)
    assert [entry.unexpected is not None for entry in server.requests] == [False, True]


async def test_a_request_that_is_missing_fails_the_test():
    async with MessagesServer([Reply("a"), Reply("b")]) as server, client_of(server) as client:
        await ask(client)
        with pytest.raises(AssertionError, match=r"items left: 1 x Reply\(text 'b'"):
            server.assert_complete()
        await ask(client)
        server.assert_complete()


async def test_a_function_may_be_the_script():
    def echo(body):
        return Reply(body["messages"][-1]["content"].upper())

    async with MessagesServer(echo) as server, client_of(server) as client:
        assert (await ask(client, "loud")).content[0].text == "LOUD"


async def test_thinking_comes_back_to_its_model_only():
    async with MessagesServer([REPLY, Reply("b")]) as server, client_of(server) as client:
        first = await ask(client)
        turns = [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in first.content]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "x"}]},
        ]
        with pytest.raises(anthropic.BadRequestError, match="Invalid `signature` in `thinking` block"):
            await ask(client, messages=turns, model="claude-opus-5-5")
        assert (await ask(client, messages=turns)).content[0].text == "b"


async def test_rate_limits_refuse_and_recover_on_the_clock():
    now = [0.0]
    limits = RateLimits(requests=2)
    script = [Repeat(Reply("a"), "always")]
    async with MessagesServer(script, rate_limits=limits, clock=lambda: now[0]) as server, client_of(server) as client:
        response = await client.messages.with_raw_response.create(
            model=MODEL, max_tokens=9, messages=[{"role": "user", "content": "hi"}]
        )
        assert response.headers["anthropic-ratelimit-requests-limit"] == "2"
        assert response.headers["anthropic-ratelimit-requests-remaining"] == "1"
        await ask(client)
        with pytest.raises(anthropic.RateLimitError, match="rate limit of 2 requests per minute") as limited:
            await ask(client)
        assert limited.value.response.headers["retry-after"] == "30"
        now[0] = 30.0
        await ask(client)
        assert [entry.status for entry in server.requests] == [200, 200, 429, 200]


async def test_tokens_per_minute_are_limited_too():
    limits = RateLimits(input_tokens=100)
    script = [Repeat(Reply("a"), "always")]
    async with MessagesServer(script, rate_limits=limits, clock=lambda: 0.0) as server, client_of(server) as client:
        await ask(client, "x" * 300)
        with pytest.raises(anthropic.RateLimitError, match="100 input tokens per minute"):
            await ask(client, "x" * 300)


async def test_raw_bodies_are_sent_as_they_are():
    html = RawResponse("<html>busy</html>", headers={"content-type": "text/html"})
    headers = {"x-api-key": "k", "anthropic-version": "2023-06-01"}
    request = {"model": MODEL, "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
    script = [html, RawResponse("{}"), RawResponse("")]
    async with MessagesServer(script) as server, httpx2.AsyncClient(base_url=server.url) as http:
        answers = [await http.post("/v1/messages", json=request, headers=headers) for _ in range(3)]
    assert [answer.content for answer in answers] == [b"<html>busy</html>", b"{}", b""]
    assert answers[0].headers["content-type"] == "text/html"


async def test_a_connection_is_kept_alive_and_nothing_is_left_behind():
    before = asyncio.all_tasks()
    async with MessagesServer([Repeat(Reply("a"), 5)]) as server, client_of(server) as client:
        for _ in range(5):
            await ask(client)
        assert server.open_connections == 1
    assert server.open_connections == 0
    assert asyncio.all_tasks() == before
    with socket.socket() as free:
        free.bind(("127.0.0.1", server.port))


async def test_closing_ends_answers_that_hang():
    before = asyncio.all_tasks()
    server = MessagesServer([Stream(["message_start", {"wait": "abort"}])])
    async with server, client_of(server) as client:
        events = await ask(client, stream=True)
        assert (await anext(events)).type == "message_start"
        await server.close()
        with pytest.raises(httpx2.TransportError):
            await anext(events)
    assert asyncio.all_tasks() == before


async def test_many_conversations_at_once():
    turns = [Repeat(Reply(tool_use("t")), 200), Repeat(Reply("done"), 200)]
    async with MessagesServer(turns) as server:
        limits = httpx2.Limits(max_connections=200)
        async with client_of(server, http_client=httpx2.AsyncClient(limits=limits)) as client:
            first = await asyncio.gather(*(ask(client, str(number)) for number in range(200)))
            second = await asyncio.gather(*(stream(client, str(number)) for number in range(200)))
        assert len({message.content[0].id for message in first}) == 200
        assert {texts(events) for events in second} == {"done"}
        server.assert_complete()


async def test_a_malformed_request_closes_the_connection():
    async with MessagesServer([]) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"this is not HTTP\r\n\r\n")
        assert await reader.read() == b""
        writer.close()
        await writer.wait_closed()


async def test_a_server_that_is_not_running_says_how_to_start_it():
    with pytest.raises(RuntimeError, match="async with MessagesServer"):
        _ = MessagesServer([]).url
