"""Planted races that plain asyncio never shows: found, shrunk to the one deviation that matters, told in words."""

import asyncio

import pytest
from hypothesis import find, given, settings

from fsm_agent.testing.simulation import FIFO, RandomChoices, simulate, simulation_choices


async def lost_update():
    """Two deposits read and write without a lock; in asyncio's order one is through before the other reads."""
    balance = 0

    async def deposit(name, turns_before):
        nonlocal balance
        await asyncio.sleep(1)
        for _ in range(turns_before):
            await asyncio.sleep(0)
        before = balance
        await asyncio.sleep(0)
        balance = before + 1

    async with asyncio.TaskGroup() as group:
        group.create_task(deposit("first", 0), name="first")
        group.create_task(deposit("second", 1), name="second")
    assert balance == 2, "an update was lost"


async def deep_lost_update():
    """The same after a few hundred steps of other work."""

    async def work():
        for _ in range(40):
            await asyncio.sleep(0)

    await asyncio.gather(*(work() for _ in range(4)))
    await lost_update()


async def abort_and_completion_tie():
    """A tool and an abort end at the same moment: the result is taken for granted by whoever runs second."""
    results: dict[str, str] = {}

    async def tool():
        await asyncio.sleep(5)
        results["tool"] = "done"

    async def abort():
        await asyncio.sleep(5)
        results.setdefault("reason", "aborted after " + results["tool"])

    async with asyncio.TaskGroup() as group:
        group.create_task(tool(), name="tool")
        group.create_task(abort(), name="abort")


def fails(program):
    def check(choices):
        try:
            simulate(program, choices=choices)
        except (AssertionError, ExceptionGroup):
            return True
        return False

    return check


RACES = [lost_update, pytest.param(deep_lost_update, marks=pytest.mark.slow), abort_and_completion_tie]
races = pytest.mark.parametrize("program", RACES)
MANY = settings(max_examples=2_000, derandomize=True, database=None)


@races
def test_the_plain_order_hides_the_race(program):
    simulate(program, choices=FIFO)


@races
def test_hypothesis_finds_the_race_and_shrinks_it_to_one_deviation(program):
    schedule = find(simulation_choices(), fails(program), settings=MANY)
    assert len(schedule.deviations) == 1
    assert fails(program)(schedule)


@races
def test_random_orders_find_the_race(program):
    assert any(fails(program)(RandomChoices(seed)) for seed in range(50))


def test_a_failing_run_says_how_to_repeat_it_and_what_deviated():
    schedule = find(simulation_choices(), fails(lost_update), settings=MANY)
    with pytest.raises(AssertionError) as caught:
        simulate(lost_update, choices=schedule)
    (note,) = caught.value.__notes__
    assert f"The same again: choices={schedule!r}" in note
    assert "task 'second' before task 'first'" in note


def test_a_failing_property_prints_the_schedule():
    @MANY
    @given(choices=simulation_choices())
    def no_update_is_lost(choices):
        simulate(lost_update, choices=choices)

    with pytest.raises(AssertionError) as caught:
        no_update_is_lost()
    printed = "\n".join(caught.value.__notes__)
    assert "choices=Schedule([(" in printed


def test_the_simplest_choices_are_the_plain_order():
    assert find(simulation_choices(), lambda _: True) == FIFO
