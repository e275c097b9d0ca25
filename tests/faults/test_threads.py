"""Fault `sync-tool-blocks`: a function that blocks holds up neither the loop, nor another tool, nor an abort."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Awaitable

from fsm_agent import AgentMachine, Deps, LoopLimits, tool
from fsm_agent.testing import Reply, ScriptedModel, tool_use
from fsm_agent.testing.invariants import ObservedRun, assert_invariants
from fsm_agent.testing.observed import ObservedModel
from tests.faults.loader import MODEL

WHO = contextvars.ContextVar("WHO", default="nobody")


async def test_sync_tool_blocks_neither_the_loop_nor_the_tool_beside_it() -> None:
    both_run = threading.Barrier(3, timeout=10)  # two tools and the loop's own side: none comes before the others
    release = threading.Event()

    @tool(concurrency_safe=True)
    def sleepy() -> str:
        """Block."""
        both_run.wait()
        release.wait(10)
        return WHO.get()

    model = ScriptedModel([Reply(tool_use("sleepy", id="a"), tool_use("sleepy", id="b")), Reply("ok")])
    machine = AgentMachine(MODEL, tools=[sleepy], deps=Deps(call_model=model))
    token = WHO.set("the host")
    run = asyncio.ensure_future(machine.run("go").finish())
    while both_run.n_waiting < 2:
        await asyncio.sleep(0)  # the heartbeat: the loop goes round while both tools block
    both_run.wait()
    beats = 0
    while beats < 50:
        await asyncio.sleep(0)
        beats += 1
    assert not run.done()
    release.set()
    result = await run
    WHO.reset(token)
    assert result.ok
    assert [block["content"] for block in result.messages[2]["content"]] == ["the host", "the host"]


async def test_sync_tool_blocks_no_abort_and_its_late_return_is_dropped() -> None:
    release = threading.Event()
    returned = threading.Event()

    @tool
    def sleepy() -> str:
        """Block."""
        release.wait(10)
        returned.set()
        return "too late"

    model = ObservedModel(ScriptedModel([Reply(tool_use("sleepy", id="a"))]))
    limits = LoopLimits(abort_grace=0.05)
    machine = AgentMachine(MODEL, tools=[sleepy], deps=Deps(call_model=model), limits=limits)
    events, aborted_at, loop = list[object](), 0.0, asyncio.get_running_loop()
    async with machine.run("go") as run:
        async for event in run:
            events.append(event)
            if event.type == "progress" and event.kind == "tool_started":
                aborted_at = loop.time()
                run.abort("enough")
    observed = ObservedRun(
        machine,
        events,  # type: ignore[arg-type]
        run.result,
        model.exchanges,
        aborted_at=aborted_at,
        ended_at=loop.time(),
    )
    assert_invariants(observed)
    assert run.result.reason == "aborted_tools"
    before = [dict(message) for message in run.result.messages]
    assert before[2]["content"][0]["is_error"] is True
    release.set()
    await asyncio.to_thread(returned.wait, 10)
    await asyncio.sleep(0)
    assert [dict(message) for message in run.result.messages] == before


async def test_sync_tool_blocks_not_if_it_returns_an_awaitable() -> None:
    @tool
    def later() -> Awaitable[str]:
        """Give something to await."""

        async def work() -> str:
            return "awaited"

        return work()

    model = ScriptedModel([Reply(tool_use("later", id="a")), Reply("ok")])
    result = await AgentMachine(MODEL, tools=[later], deps=Deps(call_model=model)).run("go")
    assert result.messages[2]["content"][0]["content"] == "awaited"
