import asyncio
import time

import pytest

from fsm_agent.testing.simulation import Schedule, SimulationError, VirtualLoop, simulate


def test_ten_minutes_of_backoff_pass_in_no_time():
    async def program():
        for attempt in range(4):
            await asyncio.sleep(40 * 2**attempt)
        return "answered"

    begun = time.monotonic()
    run = simulate(program)
    assert (run.result, run.elapsed) == ("answered", 600)
    assert run.steps < 50
    assert time.monotonic() - begun < 5  # generous: what matters is that nobody waited ten minutes


def test_the_clock_stands_still_while_anything_can_run():
    async def program():
        loop = asyncio.get_running_loop()
        begun = loop.time()
        for _ in range(1_000):
            await asyncio.sleep(0)
        return loop.time() - begun

    assert simulate(program).result == 0


def test_deadlines_are_met_exactly():
    async def program():
        loop = asyncio.get_running_loop()
        met = []
        for delay in (0.1, 0.25, 1e-3, 86_400):
            begun = loop.time()
            await asyncio.sleep(delay)
            met.append(loop.time() == begun + delay)
        return met

    assert simulate(program).result == [True] * 4


def test_many_cancelled_timers_do_not_pile_up():
    async def program():
        for _ in range(5_000):
            async with asyncio.timeout(3_600):
                await asyncio.sleep(0)

    loop = VirtualLoop()
    loop.run_until_complete(program())
    assert len(loop.timers.heap) < 250
    loop.close()


def test_the_loop_serves_an_asyncio_runner():
    async def program():
        await asyncio.sleep(3_600)
        return await asyncio.to_thread(lambda: "ended in a thread")

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        assert runner.run(program()) == "ended in a thread"
        assert runner.get_loop().time() == 3_600


def test_a_second_loop_inside_a_running_one_is_refused():
    async def program():
        simulate(program)

    with pytest.raises(SimulationError, match=r"cannot be called inside a running one: call it from a plain function"):
        simulate(program)


@pytest.mark.parametrize("choices", [Schedule(), Schedule([(0, 1)])])
def test_a_call_before_a_step_comes_before_a_jump_of_the_clock(choices):
    called = []

    async def program():
        await asyncio.sleep(600)

    def call():
        called.append(asyncio.get_running_loop().time())

    # Step 0 begins the program, step 1 is the jump.
    simulate(program, choices=choices, before_step={1: call})
    simulate(program, choices=choices, before_step={2: call})
    assert called == [0, 600]


def test_a_call_before_a_step_that_is_over_is_refused():
    loop = VirtualLoop()
    loop.run_until_complete(asyncio.sleep(1))
    with pytest.raises(ValueError, match=r"Step 1 is over \(the loop has made \d+ steps\)"):
        loop.call_before_step(1, print)
    loop.close()
