"""Faults of long sessions: `memory-growth`, `quadratic`. Counted in objects and in calls, never in seconds."""

from __future__ import annotations

import gc
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from fsm_agent import AgentMachine, Deps, LoopLimits
from fsm_agent.testing import Repeat, Reply, ScriptedModel, Stream, tool_use
from fsm_agent.testing.simulation import simulate
from tests.faults.behaviours import Seen, make_tools
from tests.faults.loader import MODEL


def machine(turns: int, tool: dict[str, Any]) -> AgentMachine:
    model = ScriptedModel([Repeat(Reply(tool_use("work", id="a")), turns), Reply("ok")], validate=False, keep=1)
    limits = LoopLimits(max_turns=turns + 1, context_window=100_000_000)
    return AgentMachine(MODEL, tools=make_tools({"work": tool}, Seen()), deps=Deps(call_model=model), limits=limits)


def open_descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def size() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


@pytest.mark.slow
def test_memory_growth_of_big_outputs_is_that_of_their_previews() -> None:
    """Two hundred outputs of 300 kB: what stays in memory is 2 kB of each."""

    async def program() -> int:
        run = machine(220, {"characters": 300_000}).run("go")
        sizes: list[int] = []
        async for event in run:
            if event.type == "transition" and event.trigger == "next_turn":
                sizes.append(size() if len(sizes) in (20, 219) else 0)
        assert run.result.ok
        return sizes[-1] - sizes[20]

    tracemalloc.start()
    try:
        grown = simulate(program, max_steps=10_000_000).result
    finally:
        tracemalloc.stop()
    assert grown < 200 * 25_000  # of 200 * 300_000


def test_memory_growth_after_aborted_runs_is_none() -> None:
    agent = machine(10_000, {"hang": True})

    async def program() -> None:
        async with agent.run("go") as run:
            async for event in run:
                if event.type == "progress":
                    run.abort("enough")
        assert run.result.reason == "aborted_tools"

    def size_after(runs: int) -> int:
        for _ in range(runs):
            simulate(program)
        return size()

    simulate(program)
    descriptors = open_descriptors()
    tracemalloc.start()
    try:
        warm = size_after(20)
        grown = size_after(60) - warm
    finally:
        tracemalloc.stop()
    assert open_descriptors() <= descriptors
    assert grown < 60 * 2_000, grown


def calls_per_turn(turns: int, first: int, last: int) -> float:
    """Python calls of the loop's own side in a turn, between two turns of a conversation. The history before them is
    what may not matter."""
    counted = 0
    counting = False

    def count(frame: Any, kind: str, _: object) -> None:
        nonlocal counted
        if counting and kind == "call" and "/fsm_agent/testing/" not in frame.f_code.co_filename:
            counted += 1

    async def program() -> None:
        nonlocal counting
        turn = 0
        async for event in machine(turns, {"value": "ok"}).run("go"):
            if event.type == "transition" and event.trigger == "next_turn":
                turn += 1
                counting = first <= turn < last

    sys.setprofile(count)
    try:
        simulate(program, max_steps=10_000_000)
    finally:
        sys.setprofile(None)
    return counted / (last - first)


@pytest.mark.slow
def test_quadratic_is_no_work_of_a_turn() -> None:
    early, late = calls_per_turn(520, 20, 40), calls_per_turn(520, 480, 500)
    assert late < 1.2 * early, (early, late)


def test_quadratic_is_not_the_joining_of_deltas() -> None:
    def calls(deltas: int) -> int:
        counted = 0

        def count(_: object, kind: str, __: object) -> None:
            nonlocal counted
            counted += kind == "call"

        async def program() -> int:
            script = [Stream(["message_start", {"text": "x", "repeat": deltas}, {"message_delta": "end_turn"}])]
            agent = AgentMachine(MODEL, deps=Deps(call_model=ScriptedModel(script, validate=False)))
            return len((await agent.run("go")).text)

        sys.setprofile(count)
        try:
            assert simulate(program, max_steps=10_000_000).result == deltas
        finally:
            sys.setprofile(None)
        return counted

    few, many = calls(200), calls(2_000)
    assert many < 12 * few
