import asyncio
import gc
import re

import pytest

from fsm_agent.testing.simulation import (
    BackgroundFailure,
    Deadlock,
    LeftBehind,
    Livelock,
    OutOfTime,
    RandomChoices,
    Schedule,
    simulate,
)


def test_a_deadlock_says_which_task_waits_for_what_and_where():
    async def program():
        left, right = asyncio.Lock(), asyncio.Lock()
        numbers: asyncio.Queue[int] = asyncio.Queue()

        async def take(first, second):
            async with first:
                await asyncio.sleep(1)
                async with second:
                    pass

        async def stream():
            yield 1
            yield await numbers.get()

        async def consume():
            async for _ in stream():
                pass

        async with asyncio.TaskGroup() as group:
            group.create_task(take(left, right), name="left first")
            right_first = group.create_task(take(right, left), name="right first")
            group.create_task(consume(), name="consumer")
            await right_first

    with pytest.raises(Deadlock) as caught:
        simulate(program)
    lines = re.sub(r"0x[0-9a-f]+", "0x0", str(caught.value)).splitlines()
    assert lines[0] == "Nothing can go on at 1 s: no callback is ready and no timer is set."
    tasks: dict[str, str] = dict(re.findall(r"^  - task '(.*?)' (.*)$", "\n".join(lines[2:]), re.MULTILINE))
    assert sorted(tasks) == ["consumer", "left first", "main", "right first"]
    assert (
        "async with second:), waiting for Lock.acquire of <asyncio.locks.Lock object at 0x0 [locked, waiters:1]>"
        in (tasks["left first"])
    )
    assert ".stream (test_hangs.py:" in tasks["consumer"]
    assert "yield await numbers.get()), waiting for Queue.get of <Queue at 0x0" in tasks["consumer"]
    assert tasks["main"].endswith("await right_first), waiting for task 'right first'")


def test_a_program_that_waits_for_nobody_is_a_deadlock():
    async def program():
        await asyncio.get_running_loop().create_future()

    with pytest.raises(Deadlock, match=r"task 'main' in .*program .*waiting for <Future pending"):
        simulate(program)


def test_a_timer_at_infinity_does_not_hide_a_deadlock():
    async def program():
        asyncio.get_running_loop().call_at(float("inf"), print)
        await asyncio.Event().wait()

    with pytest.raises(Deadlock, match=r"Event\.wait"):
        simulate(program)


def test_a_livelock_names_the_busiest_callbacks():
    async def program():
        done = False

        async def spin():
            while not done:
                await asyncio.sleep(0)

        async with asyncio.TaskGroup() as group:
            group.create_task(spin(), name="spinner")
            await asyncio.Event().wait()

    with pytest.raises(Livelock) as caught:
        simulate(program, max_steps=5_000)
    message = str(caught.value)
    assert (
        "still going after 5000 steps; the clock stands at 0 s, and has not moved in the last 5000 of them" in message
    )
    assert re.search(r"Busiest at the end:\n  - \d+ x task 'spinner'\n", message)
    assert "task 'main'" in message
    assert "waiting for Event.wait" in message


@pytest.mark.parametrize("choices", [Schedule(), RandomChoices(1)])
def test_endless_polling_is_a_livelock_too(choices):
    async def program():
        while True:
            await asyncio.sleep(1)

    with pytest.raises(Livelock, match="still going after 3000 steps"):
        simulate(program, choices=choices, max_steps=3_000)


def test_a_program_has_to_end_in_its_virtual_time():
    async def program():
        while True:
            await asyncio.sleep(30)

    with pytest.raises(OutOfTime, match=r"after 90 of at most 100 virtual seconds .*due at 120 s"):
        simulate(program, max_time=100)


def test_a_task_left_behind_is_named():
    kept = []

    async def program():
        kept.append(asyncio.create_task(asyncio.sleep(5), name="forgotten"))
        await asyncio.sleep(0)

    with pytest.raises(LeftBehind) as caught:
        simulate(program)
    assert "task 'forgotten'" in str(caught.value)
    assert "a timer due at 5 s" in str(caught.value)


def test_a_timer_left_behind_is_named():
    async def program():
        asyncio.get_running_loop().call_later(60, gc.collect)

    with pytest.raises(LeftBehind, match="a timer due at 60 s for callback collect"):
        simulate(program)


def test_an_open_generator_left_behind_is_named():
    kept = []

    async def numbers():
        yield 1
        yield 2

    async def program():
        generator = numbers()
        kept.append(generator)
        return await anext(generator)

    with pytest.raises(LeftBehind, match=r"an asynchronous generator suspended in .*numbers .*: yield 1"):
        simulate(program)


def test_what_ends_without_the_clock_is_not_left_behind():
    closed = []
    kept = []

    async def numbers():
        try:
            yield 1
        finally:
            await asyncio.sleep(0)
            closed.append(True)

    async def last_words():
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    async def program():
        kept.append(asyncio.create_task(last_words()))
        generator = numbers()
        cycle: list[object] = [generator]
        cycle.append(cycle)
        return await anext(generator)

    assert simulate(program).result == 1
    assert closed == [True]


def test_an_error_nobody_looked_at_is_a_failure():
    async def fail():
        raise LookupError("unseen")

    async def program():
        task = asyncio.create_task(fail())
        await asyncio.wait([task])
        del task

    with pytest.raises(
        BackgroundFailure, match=r"Task exception was never retrieved: LookupError\('unseen'\)"
    ) as caught:
        simulate(program)
    assert isinstance(caught.value.__cause__, LookupError)


def test_an_error_in_a_callback_is_a_failure():
    def fail():
        raise LookupError("in a callback")

    async def program():
        asyncio.get_running_loop().call_soon(fail)
        await asyncio.sleep(1)

    with pytest.raises(BackgroundFailure, match="in a callback"):
        simulate(program)


def test_the_programs_own_error_comes_first_and_what_it_left_is_ended():
    ended = []
    kept = []

    async def stay():
        try:
            await asyncio.sleep(1_000)
        finally:
            await asyncio.sleep(10)
            ended.append("stay")

    async def program():
        kept.append(asyncio.create_task(stay()))
        await asyncio.sleep(1)
        raise ValueError("own")

    with pytest.raises(ValueError, match="own") as caught:
        simulate(program)
    assert ended == ["stay"]
    assert caught.value.__notes__ == ["Simulated 1 s in 6 steps. The same again: choices=Schedule()"]


def test_a_task_that_refuses_to_end_cannot_hold_up_the_end():
    async def refuse():
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                continue

    async def program():
        task = asyncio.create_task(refuse(), name="refuser")
        await asyncio.sleep(1)
        await task

    with pytest.raises(Deadlock, match="task 'refuser'"):
        simulate(program)
    gc.collect()
