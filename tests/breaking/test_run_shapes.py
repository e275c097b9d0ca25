"""One run, used by several tasks, threads and event loops at once, and in the wrong order."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator
from typing import Any

import anyio
import pytest

from fsm_agent import AgentMachine, Deps, ToolContext, tool
from fsm_agent.testing import Reply, tool_use
from tests.breaking.agents import MODEL, QUICK, machine, results


def turns(count: int = 5) -> list[Reply]:
    return [*(Reply(tool_use("echo", {"x": str(i)})) for i in range(count)), Reply("done")]


@tool
async def endless() -> str:
    """Never end."""
    await asyncio.Event().wait()
    return ""


async def test_a_run_awaited_while_another_task_waits_for_its_next_event_goes_on() -> None:
    asked = asyncio.Event()

    @tool
    async def wait() -> str:
        """Wait."""
        await asked.wait()
        return "waited"

    agent, _ = machine(Reply(tool_use("wait", {})), Reply("done"), tools=[wait])
    run = agent.run("hi")

    async def follow() -> list[str]:
        return [event.type async for event in run]

    following = asyncio.create_task(follow())
    while run.state != "executing_tools":
        await asyncio.sleep(0)
    for _ in range(5):
        await asyncio.sleep(0)
    waiting = asyncio.create_task(run.finish())
    await asyncio.sleep(0)
    asked.set()
    result = await waiting
    assert (result.reason, result.text) == ("completed", "done")
    assert "terminal" not in await following


async def test_two_tasks_cannot_iterate_and_the_first_is_not_disturbed() -> None:
    agent, _ = machine(*turns())
    run = agent.run("hi")

    async def follow() -> int:
        return len([event async for event in run])

    first, second = await asyncio.gather(follow(), follow(), return_exceptions=True)
    assert isinstance(first, int)
    assert first > 20
    assert isinstance(second, RuntimeError)
    assert run.result.ok


async def test_two_tasks_await_one_result() -> None:
    agent, _ = machine(*turns())
    run = agent.run("hi")
    first, second = await asyncio.gather(run.finish(), run.finish())
    assert first is second


@pytest.mark.parametrize("iterated", [True, False])
def test_another_event_loop_is_told_that_the_run_is_not_its_own(iterated: bool) -> None:
    agent, _ = machine(*turns())
    run = agent.run("hi")

    async def begin() -> str:
        return (await anext(run)).type

    async def go_on() -> Any:
        return [event async for event in run] if iterated else await run

    async def finish() -> str:
        return str((await run).reason)

    with asyncio.Runner() as first:
        assert first.run(begin()) == "transition"
        with asyncio.Runner() as second, pytest.raises(RuntimeError, match="belongs to another event loop"):
            second.run(go_on())
        assert first.run(finish()) == "completed"


def test_the_result_of_a_run_that_ended_with_its_event_loop_is_there() -> None:
    agent, _ = machine(Reply(tool_use("endless", {})), tools=[endless])
    run = agent.run("hi")

    async def begin() -> None:
        async for event in run:
            if event.type == "progress":
                return

    asyncio.run(begin())
    run.abort("too late")
    assert run.result.reason == "aborted_tools"
    assert results(run.result)[0]["is_error"]


@pytest.mark.parametrize("why", [5, ValueError("5"), "", "\ud800", None])
async def test_any_reason_of_an_abort_is_told_as_text(why: Any) -> None:
    agent, model = machine(Reply("hello"))
    run = agent.run("hi")
    run.abort(why)
    *_, last = [event async for event in run]
    assert last.model_dump(mode="json")["detail"] == ("�" if why == "\ud800" else str(why))
    assert last.model_dump_json()
    assert run.result.reason == "aborted_streaming"
    assert model.call_count == 0


async def test_a_sibling_that_fails_ends_the_run_in_its_task_group() -> None:
    agent, _ = machine(Reply(tool_use("endless", {})), tools=[endless])
    run = agent.run("hi")

    async def fail() -> None:
        while run.state != "executing_tools":
            await asyncio.sleep(0)
        raise KeyError("sibling")

    async def together() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(run.finish())
            group.create_task(fail())

    with pytest.raises(ExceptionGroup):
        await together()
    assert run.result.reason == "aborted_tools"


async def test_a_cancel_scope_of_anyio_ends_the_run_after_its_clean_up() -> None:
    cleaned = False

    @tool
    async def slow() -> None:
        """Clean up slowly."""
        nonlocal cleaned
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.01)
            cleaned = True

    agent, _ = machine(Reply(tool_use("slow", {})), tools=[slow])
    run = agent.run("hi")
    with anyio.move_on_after(0.02) as scope:
        await run
    assert scope.cancelled_caught
    assert cleaned
    assert run.result.reason == "aborted_tools"


async def test_a_tool_may_close_the_run_that_it_belongs_to() -> None:
    runs: list[Any] = []

    @tool
    async def close() -> None:
        """Close the run."""
        await runs[0].aclose()

    agent, _ = machine(Reply(tool_use("close", {})), Reply("never"), tools=[close])
    runs.append(agent.run("hi"))
    result = await runs[0]
    assert result.reason == "aborted_tools"
    assert result.requests == 1


async def test_an_abort_from_a_thread_that_a_tool_runs_in() -> None:
    runs: list[Any] = []

    @tool
    def stop(ctx: ToolContext[Any]) -> str:
        """Abort the run."""
        threading.Thread(target=runs[0].abort, args=("from a thread",)).start()
        ctx.stopped.wait(1)
        return "stopped"

    agent, _ = machine(Reply(tool_use("stop", {})), Reply("never"), tools=[stop])
    runs.append(agent.run("hi"))
    result = await runs[0]
    assert (result.reason, result.detail) == ("aborted_tools", "from a thread")


async def test_a_model_whose_clean_up_hangs_does_not_hold_up_an_abort() -> None:
    hanging = asyncio.Event()

    async def call_model(_: Any) -> AsyncGenerator[dict[str, Any], None]:
        try:
            yield {"type": "ping"}
            hanging.set()
            await asyncio.Event().wait()
        finally:
            await asyncio.Event().wait()

    agent = AgentMachine(MODEL, deps=Deps(call_model=call_model), limits=QUICK)
    run = agent.run("hi")
    finishing = asyncio.create_task(run.finish())
    await hanging.wait()
    run.abort("enough")
    assert (await finishing).detail == "enough"
