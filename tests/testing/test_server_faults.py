"""Every way in which an answer may break, over a real socket, as the real SDK sees it."""

import asyncio
import json
from typing import Any

import anthropic
import httpx2
import pytest

from fsm_agent.testing import Chunking, Fault, MessagesServer, Reply, Stream, count_events, tool_use, with_fault
from tests.testing.calls import ask, client_of, stream, texts

QUIET = Chunking(pings=False)
REPLY = Reply("hello", tool_use("read", {"path": "a"}, id="t1"))
EVENTS = count_events(REPLY, QUIET)


async def seen(server):
    """The types of the events that a client sees, and the error that ends the stream."""
    events: list[str] = []
    async with client_of(server) as client:
        try:
            async for event in await ask(client, stream=True):
                events.append(event.type)  # noqa: PERF401  the ones before the error count
        except (anthropic.APIError, httpx2.TransportError, json.JSONDecodeError) as error:
            return events, error
    return events, None


async def whole():
    async with MessagesServer([REPLY], chunking=QUIET) as server:
        return (await seen(server))[0]


@pytest.mark.parametrize("at", range(EVENTS))
async def test_an_early_end_at_every_event(at):
    async with MessagesServer([with_fault(REPLY, Fault(at, "eof"))], chunking=QUIET) as server:
        events, error = await seen(server)
    assert events == (await whole())[:at]
    assert error is None


@pytest.mark.parametrize("at", range(EVENTS))
@pytest.mark.parametrize(("kind", "expected"), [("cut", httpx2.RemoteProtocolError), ("reset", httpx2.ReadError)])
async def test_a_lost_connection_at_every_event(at, kind, expected):
    async with MessagesServer([with_fault(REPLY, Fault(at, kind))], chunking=QUIET) as server:
        events, error = await seen(server)
    assert events == (await whole())[:at]
    assert isinstance(error, expected if at else anthropic.APIConnectionError)


@pytest.mark.parametrize("at", range(EVENTS))
async def test_an_error_event_at_every_event(at):
    async with MessagesServer([with_fault(REPLY, Fault(at, "error"))], chunking=QUIET) as server:
        events, error = await seen(server)
    assert events == (await whole())[:at]
    assert type(error) is anthropic.APIStatusError
    assert (error.status_code, error.type) == (200, "overloaded_error")


@pytest.mark.parametrize("at", range(EVENTS))
async def test_garbage_at_every_event(at):
    async with MessagesServer([with_fault(REPLY, Fault(at, "garbage"))], chunking=QUIET) as server:
        events, error = await seen(server)
    assert events == (await whole())[:at]
    assert isinstance(error, json.JSONDecodeError)


@pytest.mark.parametrize("at", range(EVENTS))
async def test_silence_at_every_event_until_the_client_gives_up(at):
    async with MessagesServer([with_fault(REPLY, Fault(at, "silence"))], chunking=QUIET) as server:
        events: list[str] = []
        async with client_of(server) as client:
            task = asyncio.create_task(collect(client, events))
            while not server.requests or server.requests[0].events_sent < at:
                await asyncio.sleep(0)
            while len(events) < at:
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        while not server.requests[0].finished:
            await asyncio.sleep(0)
        assert server.requests[0].client_gone
        assert server.open_connections == 0
    assert events == (await whole())[:at]


async def collect(client, events):
    async for event in await ask(client, stream=True):
        events.append(event.type)


async def test_silence_before_the_answer_is_a_timeout_of_the_request():
    async with MessagesServer([Stream([{"wait": "abort"}])]) as server, client_of(server, timeout=0.02) as client:
        with pytest.raises(anthropic.APITimeoutError):
            await stream(client)


async def test_silence_inside_the_stream_is_a_read_timeout():
    script = [Stream(["message_start", "silence"])]
    async with MessagesServer(script) as server, client_of(server, timeout=0.02) as client:
        with pytest.raises(httpx2.ReadTimeout):
            await stream(client)


async def test_an_event_may_be_cut_in_its_middle():
    fault = Fault(1, "cut", after_bytes=20)
    async with MessagesServer([with_fault(REPLY, fault)], chunking=QUIET) as server, client_of(server) as client:
        with pytest.raises(httpx2.RemoteProtocolError):
            await stream(client)
        assert server.requests[0].events_sent == 2


@pytest.mark.parametrize(("kind", "status"), [("error", 529), ("eof", 200), ("cut", 200), ("reset", 200)])
async def test_a_plain_request_breaks_too(kind, status):
    async with MessagesServer([with_fault(REPLY, Fault(3, kind))]) as server, client_of(server) as client:
        with pytest.raises((anthropic.APIError, json.JSONDecodeError)) as broken:
            await ask(client)
        assert server.requests[0].status == status
    if kind == "error":
        assert isinstance(broken.value, anthropic.OverloadedError)


async def test_a_client_that_goes_away_is_noted_and_stops_the_answer():
    steps: list[Any] = ["message_start", {"text": "x" * 1000, "repeat": 1_000_000}]
    async with MessagesServer([Stream(steps)]) as server, client_of(server) as client:
        events = await ask(client, stream=True)
        for _ in range(3):
            await anext(events)
        await events.close()
        while not server.requests[0].finished:
            await asyncio.sleep(0)
        assert server.requests[0].client_gone
        assert server.requests[0].events_sent < 1_000_000


async def test_a_slow_client_holds_the_server_back():
    """What was sent is bounded by the buffers of the sockets, not by the length of the script."""
    steps: list[Any] = ["message_start", {"text": "x" * 10_000, "repeat": 100_000}]
    async with MessagesServer([Stream(steps)]) as server, client_of(server) as client:
        events = await ask(client, stream=True)
        await anext(events)
        entry = server.requests[0]
        sent = -1
        while sent != entry.events_sent:
            sent = entry.events_sent
            await asyncio.sleep(0.005)
        assert sent < 5_000
        await events.close()


async def test_unknown_events_and_late_pings_pass():
    steps: list[Any] = [
        "message_start",
        {"event": {"type": "news", "x": 1}},
        "ping",
        {"text": "a"},
        {"message_delta": "end_turn"},
    ]
    async with MessagesServer([Stream([*steps, "message_stop", "ping"])]) as server, client_of(server) as client:
        assert texts(await stream(client)) == "a"
