"""The rendezvous between a run and its consumer."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from fsm_agent.loop.channel import Channel


async def taken(channel: Channel[int]) -> int | None:
    return channel.ready() or await channel.request()


async def test_events_that_are_there_are_taken_one_by_one_and_nothing_goes_on_before_the_next_is_asked_for():
    channel: Channel[int] = Channel()
    producing = asyncio.create_task(channel.emit_all([1, 2, 3]))
    assert [await taken(channel) for _ in range(3)] == [1, 2, 3]
    await asyncio.sleep(0)
    assert not producing.done()
    asking = channel.request()
    await producing
    assert not asking.done()


async def test_what_was_not_taken_is_dropped_when_nobody_listens_any_more():
    channel: Channel[int] = Channel()
    producing = asyncio.create_task(channel.emit_all([1, 2, 3]))
    assert await taken(channel) == 1
    channel.stop_listening()
    await producing
    assert channel.ready() is None


async def ended(channel: Channel[int], producer: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    task = asyncio.create_task(producer)
    task.add_done_callback(channel.producer_ended)
    await asyncio.wait({task})
    return task


async def test_a_producer_that_fails_tells_whoever_waits():
    async def fails() -> None:
        raise LookupError("lost")

    channel: Channel[int] = Channel()
    asking = channel.request()
    task = await ended(channel, fails())
    assert isinstance(task.exception(), LookupError)
    with pytest.raises(LookupError, match="lost"):
        await asking
    assert not channel.listening


async def test_a_producer_that_is_cancelled_tells_that_nothing_comes():
    async def waits() -> None:
        raise asyncio.CancelledError

    channel: Channel[int] = Channel()
    asking = channel.request()
    await ended(channel, waits())
    assert await asking is None
