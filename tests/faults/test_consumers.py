"""Faults of consumers and of cancellation: `generator-exit`, `fsm-queue-dead`, `unbounded-queue`."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from typing import Any

import pytest

from fsm_agent import AgentMachine, Deps, Hooks, LoopLimits
from fsm_agent.session.validator import violations
from fsm_agent.testing import Reply, ScriptedModel, Stream, text, tool_use
from fsm_agent.testing.invariants import ObservedRun, assert_invariants
from fsm_agent.testing.observed import ObservedModel
from fsm_agent.testing.simulation import abort_points, simulate
from tests.faults.behaviours import Seen, make_tools
from tests.faults.loader import MODEL

SCRIPT = [Reply("a", tool_use("slow", id="x")), Reply("b"), Reply("again")]


def agent(seconds: float, **more: Any) -> tuple[AgentMachine, ObservedModel, Seen]:
    seen = Seen()
    model = ObservedModel(ScriptedModel(SCRIPT))
    tools = make_tools({"slow": {"sleep": seconds}}, seen)
    return AgentMachine(MODEL, tools=tools, deps=Deps(call_model=model), strict=True, **more), model, seen


async def count_events() -> int:
    machine, _, _ = agent(10)
    return len([event async for event in machine.run("go")])


async def close(run: Any) -> None:
    await run.aclose()


async def leave(run: Any) -> None:
    """The caller has stopped iterating; it drops the run below."""


async def raise_inside(run: Any) -> None:
    with pytest.raises(LookupError):
        async with run:
            raise LookupError("the consumer failed")


@pytest.mark.parametrize("end", [close, leave, raise_inside])
@pytest.mark.slow
def test_generator_exit_at_every_event_leaves_nothing(end: Callable[[Any], Any]) -> None:
    total = simulate(count_events).result
    assert total > 15

    for stop in range(total):

        async def program(stop: int = stop) -> None:
            machine, model, seen = agent(10)
            run = machine.run("go")
            taken = 0
            while taken < stop:
                await anext(run)
                taken += 1
            history = run._driver.conversation.history
            await end(run)
            del run
            if end is leave:
                gc.collect()
            for _ in range(20):  # what a dropped run leaves is ended by the loop, in its own time
                await asyncio.sleep(0.1)
            sent = len(model.exchanges)
            assert model.open == []
            assert seen.running == []
            assert violations(history.messages) == []
            await asyncio.sleep(100)
            assert len(model.exchanges) == sent

        simulate(program)  # which fails for a task, a timer or a generator left, and for a word of the loop's handler


class Disturbed:
    """A run that is disturbed at one suspension point, beside a task of somebody else's."""

    def __init__(self, how: str) -> None:
        self.how = how
        self.machine, self.model, self.seen = agent(0.02)
        self.events: list[Any] = []
        self.run: Any = None
        self.task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        foreign = asyncio.ensure_future(asyncio.sleep(30, "untouched"))
        self.run = self.machine.run("go")
        self.task = asyncio.ensure_future(self.consume())
        await asyncio.wait({self.task})
        cancelled = self.task.cancelled()
        if self.run._task is not None:
            await asyncio.wait({self.run._task})
            result = self.run.result
            if not cancelled:
                assert sum(event.type == "terminal" for event in self.events) == 1
            observed = ObservedRun(
                self.machine, self.events, result, self.model.exchanges, whole=not cancelled and result.trace != ()
            )
            assert_invariants(observed)
            if not result.ok:
                assert result.reason in ("aborted_streaming", "aborted_tools")
            again = self.machine.run("and now?", history=result)
            left = 3 - len(self.model.exchanges)
            if left:
                assert (await again).ok
        assert await foreign == "untouched"
        assert self.model.open == []
        assert self.seen.running == []

    async def consume(self) -> None:
        async for event in self.run:
            self.events.append(event)

    def inject(self) -> None:
        if self.how in ("abort", "both") and self.run is not None:
            self.run.abort("disturbed")
        if self.how in ("cancel", "both") and self.task is not None:
            self.task.cancel()


@pytest.mark.parametrize("how", ["abort", "cancel", "both"])
def test_fsm_queue_dead_at_no_await(how: str) -> None:
    report = abort_points(lambda: Disturbed(how))
    assert report.ok, report
    assert len(report.points) > 30


@pytest.mark.parametrize("where", ["consumer", "tool", "stop hook", "permission", "before tool"])
def test_fsm_queue_dead_by_no_abort_from_inside(where: str) -> None:
    async def program() -> tuple[str, int]:
        held: list[Any] = []

        async def abort(*_: Any) -> None:
            held[0].abort("from inside")
            await asyncio.sleep(0)

        options: dict[str, Any] = {}
        if where == "stop hook":
            options["hooks"] = Hooks(stop=[abort])
        elif where == "before tool":
            options["hooks"] = Hooks(before_tool=[abort])
        elif where == "permission":
            options["can_use_tool"] = abort
        machine, model, _ = agent(0.0, **options)
        if where == "tool":
            machine.toolbox.get("slow").body._do = abort  # type: ignore[union-attr]
        run = machine.run("go")
        held.append(run)
        events: list[Any] = []
        async for event in run:
            events.append(event)
            if where == "consumer" and event.type == "assistant":
                await abort()
        assert_invariants(ObservedRun(machine, events, run.result, model.exchanges))
        assert (await AgentMachine(MODEL, deps=Deps(call_model=ScriptedModel([Reply("x")]))).run("again")).ok
        return str(run.result.reason), len(model.exchanges)

    reason, requests = simulate(program).result
    assert reason == ("aborted_streaming" if where == "stop hook" else "aborted_tools")
    assert requests == (2 if where == "stop hook" else 1)


def test_fsm_queue_dead_not_when_everything_happens_at_once() -> None:
    """Stream end, abort and a timer of the tool in one tick: the abort wins, and there is one end."""

    async def program() -> str:
        machine, model, _ = agent(1.0)
        run = machine.run("go")
        asyncio.get_running_loop().call_later(1.0, run.abort, "at the same time")
        events = [event async for event in run]
        assert_invariants(ObservedRun(machine, events, run.result, model.exchanges))
        return str(run.result.reason)

    assert simulate(program).result in ("aborted_tools", "aborted_streaming")


def test_unbounded_queue_is_none_for_a_slow_consumer() -> None:
    deltas = 5_000

    async def program() -> tuple[int, int, int, str]:
        script = [Stream(["message_start", {"text": "x", "repeat": deltas}, {"message_delta": "end_turn"}])]
        model = ObservedModel(ScriptedModel(script, validate=False))
        limits = LoopLimits(stream_idle_timeout=0.5, stream_progress_timeout=0.5)
        machine = AgentMachine(MODEL, deps=Deps(call_model=model), limits=limits)
        events: list[Any] = []
        ahead = seen = 0
        run = machine.run("go")
        async for event in run:
            events.append(event)
            seen += event.type == "stream_event"
            ahead = max(ahead, len(model.exchanges[0].events) - seen if model.exchanges else 0)
            await asyncio.sleep(0.01)
        observed = ObservedRun(machine, events, run.result, model.exchanges)
        assert_invariants(observed)
        return ahead, len(observed.net_text), len(model.exchanges), str(run.result.reason)

    ahead, length, requests, reason = simulate(program, max_steps=10_000_000).result
    assert ahead <= 1
    assert (length, requests, reason) == (deltas, 1, "completed")  # waiting for the consumer is no stall


def test_unbounded_queue_is_none_for_a_consumer_that_is_gone() -> None:
    async def program() -> tuple[int, int]:
        script = [Stream(["message_start", {"text": "x", "repeat": 100_000}, {"message_delta": "end_turn"}])]
        model = ObservedModel(ScriptedModel(script, validate=False))
        run = AgentMachine(MODEL, deps=Deps(call_model=model)).run("go")
        for _ in range(100):
            await anext(run)
        taken = len(model.exchanges[0].events)
        await asyncio.sleep(1_000)
        still = len(model.exchanges[0].events)
        del run
        gc.collect()
        await asyncio.sleep(1)
        assert model.open == []
        return taken, still

    taken, still = simulate(program).result
    assert still == taken <= 101


def test_unbounded_queue_is_none_for_the_progress_of_a_tool() -> None:
    async def program() -> tuple[int, bool]:
        seen = Seen()
        model = ScriptedModel([Reply(text("a"), tool_use("noisy", id="x")), Reply("b")])
        tools = make_tools({"noisy": {"progress": 50_000}}, seen)
        machine = AgentMachine(MODEL, tools=tools, deps=Deps(call_model=model))
        run = machine.run("go")
        most = 0
        async for event in run:
            most = max(most, len(run._driver.conversation.notices))
            if event.type == "progress":
                await asyncio.sleep(1)
        return most, run.result.ok

    most, ok = simulate(program).result
    assert ok
    assert most <= 3
