"""The SDK sends the bytes as they are, once, and its answers come back as raw events. Over a real socket."""

import asyncio
import gc
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anthropic
import httpx2
import pytest

from fsm_agent.machine.limits import LoopLimits
from fsm_agent.machine.vocabulary import ResponseOutcome as R
from fsm_agent.model.classify import Failure
from fsm_agent.model.request import ModelRequest, RequestTemplate
from fsm_agent.model.transport import KEEPALIVE, SdkTransport
from fsm_agent.testing import ApiError, Fault, MessagesServer, RawResponse, Reply, tool_use
from fsm_agent.testing import text as text_block
from tests.model.streams import Performed, start, stop, text, whole

TEMPLATE = RequestTemplate(system="Be brief.")
MESSAGES = '[{"role":"user","content":"Héllo"}]'.encode()


def request(template: RequestTemplate = TEMPLATE) -> ModelRequest:
    return template.request(model="claude-sonnet-5-5", messages=MESSAGES, max_tokens=100)


async def performed(transport: Any, sent: ModelRequest | None = None, limits: LoopLimits | None = None) -> Performed:
    from fsm_agent.model.call import ModelCall

    events: list[Any] = []

    async def on_event(reply: Any, event: Any) -> None:
        events.append(event)

    made = ModelCall(transport, sent or request(), limits=limits or LoopLimits(), on_event=on_event)
    return Performed(await made.perform(), made, events)


@asynccontextmanager
async def connected(*script: Any, **options: Any) -> AsyncIterator[tuple[MessagesServer, SdkTransport]]:
    async with (
        MessagesServer(list(script), **options) as server,
        anthropic.AsyncAnthropic(base_url=server.url, api_key="test", max_retries=5) as client,
    ):
        yield server, SdkTransport(client)


async def all_closed(server: MessagesServer) -> None:
    for _ in range(10_000):
        if not server._connections:
            return
        await asyncio.sleep(0)
    raise AssertionError("The client left a connection open.")


# ---- what is sent


async def test_the_body_goes_out_byte_for_byte_with_the_headers_of_the_sdk():
    template = RequestTemplate(system="Be brief.", betas=["context-1m-2025-08-07"])
    async with connected(Reply("Hi.")) as (server, transport):
        done = await performed(transport, request(template))
        assert done.outcome is R.END_TURN
        (logged,) = server.requests
        assert logged.raw == request(template).body
        assert logged.path == "/v1/messages?beta=true"
        headers = {name.lower(): value for name, value in logged.headers.items()}
        assert headers["content-type"] == "application/json"
        assert headers["anthropic-version"]
        assert headers["anthropic-beta"] == "context-1m-2025-08-07"


@pytest.mark.parametrize("status", [408, 409, 429, 500, 529])
async def test_nothing_is_sent_twice_whatever_the_client_would_do(status: int):
    async with connected(ApiError(status, "api_error", "x")) as (server, transport):
        assert (await performed(transport)).outcome in (R.RETRYABLE, R.OVERLOADED)
        assert len(server.requests) == 1


async def test_a_client_is_made_from_the_environment_and_closed(monkeypatch: pytest.MonkeyPatch):
    async with MessagesServer([Reply("Hi.")]) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "test")
        made: list[anthropic.AsyncAnthropic] = []
        real = anthropic.AsyncAnthropic

        def make() -> anthropic.AsyncAnthropic:
            made.append(real())
            return made[-1]

        monkeypatch.setattr("anthropic.AsyncAnthropic", make)
        transport = SdkTransport()
        assert (await performed(transport)).outcome is R.END_TURN
        (client,) = made
        assert not client.is_closed()
        await transport.aclose()
        assert client.is_closed()


async def test_without_a_key_nothing_is_sent_and_the_failure_says_so(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.delenv("ANTHROPIC_AUTH_TOKEN", raising=False)
    async with MessagesServer([]) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        transport = SdkTransport()
        done = await performed(transport)
        assert done.outcome is R.FATAL
        assert not server.requests
        await transport.aclose()


# ---- what comes back


async def test_a_reply_comes_whole_and_the_connection_is_used_again():
    replies = [Reply(text_block("Let me look."), tool_use("read", {"path": "a"}, id="t1")), Reply("Done.")]
    async with connected(*replies) as (server, transport):
        first = await performed(transport)
        assert first.outcome is R.TOOL_USE
        assert first.made.reply.tool_calls[0].input == {"path": "a"}
        open_now = set(server._connections)
        assert (await performed(transport)).outcome is R.END_TURN
        assert set(server._connections) == open_now
        assert len(open_now) == 1


FAULTS: list[tuple[Fault, R]] = [
    (Fault(4, "eof"), R.RETRYABLE),
    (Fault(4, "cut"), R.RETRYABLE),
    (Fault(4, "reset"), R.RETRYABLE),
    (Fault(4, "error"), R.OVERLOADED),
    (Fault(4, "garbage"), R.RETRYABLE),
    (Fault(5, "eof"), R.CUT),
    (Fault(5, "cut"), R.CUT),
    (Fault(5, "reset"), R.CUT),
    (Fault(5, "error"), R.OVERLOADED),
    (Fault(5, "garbage"), R.RETRYABLE),
    (Fault(5, "cut", after_bytes=30), R.CUT),
    (Fault(0, "eof"), R.RETRYABLE),
    (Fault(0, "cut"), R.RETRYABLE),
    (Fault(0, "error", error_type="invalid_request_error"), R.FATAL),
]


@pytest.mark.parametrize(("fault", "outcome"), FAULTS, ids=repr)
async def test_a_stream_that_breaks_at_an_event(fault: Fault, outcome: R):
    # message_start, block start, ping, delta, block stop, message_delta, message_stop
    async with connected(Reply("Hi.", fault=fault)) as (server, transport):
        done = await performed(transport)
        assert (done.outcome, len(server.requests)) == (outcome, 1)
        assert done.made.failure is not None


async def test_a_silent_stream_is_left_and_its_connection_closed():
    limits = LoopLimits(stream_idle_timeout=0.02)
    async with connected(Reply("Hi.", fault=Fault(2, "silence"))) as (server, transport):
        done = await performed(transport, limits=limits)
        assert (done.outcome, done.kind) == (R.RETRYABLE, "stall")
        await all_closed(server)


async def test_a_cancelled_request_closes_its_connection():
    async with connected(Reply("Hi.", fault=Fault(2, "silence"))) as (server, transport):
        arrived = asyncio.Event()

        async def on_event(reply: Any, event: Any) -> None:
            arrived.set()

        from fsm_agent.model.call import ModelCall

        task = asyncio.create_task(ModelCall(transport, request(), limits=LoopLimits(), on_event=on_event).perform())
        await arrived.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await all_closed(server)


async def test_an_answer_with_headers_tells_how_long_to_wait():
    error = ApiError(429, "rate_limit_error", "slow down", headers={"retry-after": "3", "x-should-retry": "true"})
    async with connected(error) as (_, transport):
        failure = (await performed(transport)).made.failure
        assert isinstance(failure, Failure)
        assert (failure.retry_after, failure.should_retry, failure.status) == (3.0, True, 429)
        assert failure.request_id
        assert "slow down" in failure.message


# ---- answers that are no stream, by a transport in process


def answering(*chunks: bytes, status: int = 200, **headers: str) -> SdkTransport:
    async def stream() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk

    def answer(sent: httpx2.Request) -> httpx2.Response:
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        return httpx2.Response(status, headers=names, content=stream())

    http = httpx2.AsyncClient(transport=httpx2.MockTransport(answer))
    return SdkTransport(anthropic.AsyncAnthropic(api_key="test", http_client=http))


def sse(*events: dict[str, Any]) -> bytes:
    return b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events)


@pytest.mark.parametrize(
    ("body", "outcome", "kind"),
    [
        (b"", R.RETRYABLE, "eof"),
        (b"\n\n", R.RETRYABLE, "protocol"),
        (b"<html>Bad gateway</html>", R.RETRYABLE, "protocol"),
        (b'{"type":"message","content":[]}', R.RETRYABLE, "protocol"),
        (b'"ok"', R.RETRYABLE, "protocol"),
        (b'{"error":{"type":"overloaded_error","message":"Overloaded"}}', R.OVERLOADED, "overloaded_error"),
        (b'{"type":"error","error":{"type":"invalid_request_error","message":"x"}}', R.FATAL, "invalid_request_error"),
        (b"data: {broken\n\n", R.RETRYABLE, "protocol"),
        (b"event: error\ndata: upstream died\n\n", R.RETRYABLE, "error_event"),
        (b"event: ping\ndata: {}\n\n", R.RETRYABLE, "eof"),
    ],
)
async def test_a_200_that_is_no_reply(body: bytes, outcome: R, kind: str):
    done = await performed(answering(body))
    assert (done.outcome, done.kind) == (outcome, kind)


async def test_events_without_names_are_read_and_a_last_blank_line_is_not_needed():
    body = sse(*whole(text("Hi."))).replace(b"event: ", b"id: ").rstrip()
    done = await performed(answering(body))
    assert (done.outcome, done.made.reply.text) == (R.END_TURN, "Hi.")


@pytest.mark.parametrize("size", [1, 3, 7, 64])
async def test_chunks_may_cut_events_and_characters_anywhere(size: int):
    body = sse(*whole(text("H\u00e9llo \U0001f600"))).decode().encode()
    chunks = [body[at : at + size] for at in range(0, len(body), size)]
    assert (await performed(answering(*chunks))).made.reply.text == "H\u00e9llo \U0001f600"


async def test_bytes_that_complete_no_event_are_a_sign_of_life():
    transport = answering(b": a proxy's comment\n\n", sse(start())[:9], sse(start())[9:])
    assert [event["type"] async for event in transport(request())] == [KEEPALIVE, KEEPALIVE, "message_start"]


async def test_an_html_page_with_an_error_status_is_judged_by_the_status():
    assert (await performed(answering(b"<html>", status=502))).outcome is R.RETRYABLE
    assert (await performed(answering(b"<html>", status=413))).outcome is R.PROMPT_TOO_LONG


# ---- nothing stays behind

ENDINGS: list[Callable[[], bytes]] = [
    lambda: sse(*whole(text("Hi."))),
    lambda: sse(*whole(text("one")), *whole(text("two"))),
    lambda: sse(start(), {"type": "error", "error": {"type": "api_error", "message": "x"}}, *text("y")),
    lambda: sse(start(), start(), *text("Hi."), stop("end_turn")),
]


@pytest.mark.parametrize("ending", ENDINGS)
async def test_no_task_and_no_open_response_is_left(ending: Callable[[], bytes]):
    async with connected(RawResponse(ending(), headers={"content-type": "text/event-stream"})) as (server, transport):
        before = asyncio.all_tasks()
        await performed(transport)
        gc.collect()
        for _ in range(5):
            await asyncio.sleep(0)
        assert {task for task in asyncio.all_tasks() - before if "HttpConnection" not in repr(task)} == set()
        assert all(entry.finished for entry in server.requests)
