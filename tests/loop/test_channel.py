"""The rendezvous between a run and its consumer."""

import asyncio

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
