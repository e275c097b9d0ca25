import asyncio
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fsm_agent.testing.simulation import FIFO, RandomChoices, Schedule, simulate, simulation_choices
from tests.testing_simulation.programs import PROGRAMS

programs = pytest.mark.parametrize(("program", "result", "seconds"), PROGRAMS, ids=[p[0].__name__ for p in PROGRAMS])


@programs
@settings(max_examples=40)
@given(choices=simulation_choices())
def test_a_sound_program_gives_its_result_in_every_order(program, result, seconds, choices):
    run = simulate(program, choices=choices)
    assert run.result == result
    assert run.elapsed == seconds


@programs
@settings(max_examples=20)
@given(seed=st.integers())
def test_a_random_run_is_repeated_by_its_seed_and_by_its_schedule(program, result, seconds, seed):
    first = simulate(program, choices=RandomChoices(seed))
    assert first.result == result
    assert simulate(program, choices=RandomChoices(seed)) == first
    assert simulate(program, choices=first.schedule) == first


async def trace_of_many_steps():
    seen = []

    async def walk(name, steps):
        for step in range(steps):
            seen.append((name, step))
            await asyncio.sleep(0 if step % 2 else 1)

    async with asyncio.TaskGroup() as group:
        for name in "abc":
            group.create_task(walk(name, 4))
    return seen


def test_the_plain_order_is_that_of_asyncio():
    async def without_clock():
        seen = []

        async def walk(name):
            for step in range(5):
                seen.append((name, step))
                await asyncio.sleep(0)

        await asyncio.gather(*(walk(name) for name in "abcd"))
        return seen

    assert simulate(without_clock).result == asyncio.run(without_clock())


def test_orders_differ_and_each_is_repeated_exactly():
    runs = [simulate(trace_of_many_steps, choices=RandomChoices(seed)) for seed in range(20)]
    assert len({tuple(run.result) for run in runs}) > 10
    for run in runs:
        assert simulate(trace_of_many_steps, choices=run.schedule) == run


def test_timers_with_the_same_deadline_fire_in_any_order():
    async def program():
        loop = asyncio.get_running_loop()
        seen: list[str] = []
        for name in "abc":
            loop.call_at(7, seen.append, name)
        await asyncio.sleep(8)
        return "".join(seen)

    seen = {simulate(program, choices=RandomChoices(seed)).result for seed in range(60)}
    assert seen == {"abc", "acb", "bac", "bca", "cab", "cba"}
    assert simulate(program).result == "abc"


def test_a_task_that_is_ready_is_not_starved():
    # What is ready now runs before anything that becomes ready meanwhile: nobody is more than one turn ahead.
    async def program():
        turns = [0, 0, 0]
        ahead = 0

        async def walk(number):
            nonlocal ahead
            for _ in range(20):
                turns[number] += 1
                ahead = max(ahead, turns[number] - min(turns))
                await asyncio.sleep(0)

        await asyncio.gather(*(walk(number) for number in range(3)))
        return ahead

    assert all(simulate(program, choices=RandomChoices(seed)).result == 1 for seed in range(30))


def test_sets_of_tasks_iterate_alike_in_every_run():
    async def program():
        ballast = [object() for _ in range(random.randrange(1_000))]  # moves the addresses of what comes next
        ended = []

        async def child(number):
            try:
                await asyncio.sleep(100)
            finally:
                ended.append(number)

        try:
            async with asyncio.TaskGroup() as group:
                for number in range(20):
                    group.create_task(child(number))
                await asyncio.sleep(1)
                raise ValueError(len(ballast))
        except* ValueError:
            pass
        return tuple(ended)

    assert len({simulate(program).result for _ in range(30)}) == 1


def test_default_names_of_tasks_are_those_of_the_run():
    async def program():
        task = asyncio.create_task(asyncio.sleep(0))
        await task
        return task.get_name()

    assert simulate(program).result == simulate(program).result == "Task-2"


def test_a_task_factory_of_the_program_is_obeyed():
    class Own(asyncio.Task):
        pass

    async def program():
        loop = asyncio.get_running_loop()
        loop.set_task_factory(lambda loop, coro, **options: Own(coro, loop=loop, **options))
        task = asyncio.create_task(asyncio.sleep(1, "done"))
        return type(task), await task

    assert simulate(program, choices=RandomChoices(1)).result == (Own, "done")


def test_a_schedule_is_a_value():
    schedule = Schedule([(17, 2), (3, 1)])
    assert repr(schedule) == "Schedule([(3, 1), (17, 2)])"
    assert schedule == eval(repr(schedule))
    assert hash(schedule) == hash(Schedule([[3, 1], [17, 2]]))
    assert repr(FIFO) == "Schedule()"
    assert Schedule() == FIFO
    assert schedule != FIFO


@pytest.mark.parametrize(
    ("deviations", "message"),
    [
        ([(-1, 1)], r"The deviation \(-1, 1\) means nothing"),
        ([(3, 0)], r"The deviation \(3, 0\) means nothing.*option 0 is the plain order"),
        ([(3, 1), (3, 2)], "deviates twice at choice point 3"),
    ],
)
def test_a_schedule_that_means_nothing_is_refused(deviations, message):
    with pytest.raises(ValueError, match=message):
        Schedule(deviations)


def test_options_beyond_those_there_are_wrap_around_among_the_deviating_ones():
    pick = Schedule([(0, 1), (1, 5), (2, 3)]).begin()
    assert [pick(2), pick(3), pick(4), pick(4)] == [1, 1, 3, 0]
