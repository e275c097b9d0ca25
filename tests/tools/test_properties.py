"""Random batches: whatever tools do and whenever the run is aborted, the answers are complete and nothing is left."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsm_agent.machine.limits import LoopLimits
from fsm_agent.testing.simulation import Schedule, abort_points, simulate, simulation_choices
from fsm_agent.tools import Allow, Defer, Deny, ToolCall, ToolContext, ToolError, tool
from fsm_agent.tools.schedule import Stage, startable
from tests.tools.batches import Recorder, call

KINDS = {"read": (True, True), "put": (True, True), "compute": (True, False), "write": (False, False)}
ENDS = ["return", "raise", "exit", "swallow", "unserialisable", "hang"]


class World:
    """Tools that do as they are told, and that check that nobody runs beside who must be alone."""

    def __init__(self) -> None:
        self.running: list[str] = []
        self.runs: dict[str, int] = {}
        self.tools = [
            tool(name="read", read_only=True)(self._perform),
            tool(name="put", idempotent=True, concurrency_safe=True)(self._perform),
            tool(name="compute", concurrency_safe=True)(self._perform),
            tool(name="write")(self._perform),
        ]

    async def _perform(self, context: ToolContext[Any], kind: str, seconds: float, end: str) -> Any:
        self.runs[context.tool_use_id] = self.runs.get(context.tool_use_id, 0) + 1
        assert "write" not in self.running, "an exclusive tool is alone"
        assert kind != "write" or not self.running, "an exclusive tool starts alone"
        self.running.append(kind)
        try:
            context.progress(f"{context.tool_use_id} runs")
            if end == "swallow":
                try:
                    await asyncio.sleep(seconds)
                except asyncio.CancelledError:
                    await asyncio.sleep(0.1)
            else:
                await asyncio.sleep(1_000 if end == "hang" else seconds)
        finally:
            self.running.remove(kind)
        match end:
            case "raise":
                raise ToolError("as told")
            case "exit":
                raise SystemExit(3)
            case "unserialisable":
                return object()
            case _:
                return context.tool_use_id


@dataclass
class Plan:
    calls: list[ToolCall]
    offered: int
    accepted: bool
    limits: LoopLimits
    denied: set[str]


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    calls: list[ToolCall] = []
    for place in range(draw(st.integers(0, 6))):
        kind = draw(st.sampled_from([*KINDS, "unknown"]))
        given: dict[str, Any] = {
            "kind": kind,
            "seconds": draw(st.sampled_from([0, 0, 1, 2, 3])),
            "end": draw(st.sampled_from(ENDS)),
        }
        if draw(st.integers(0, 9)) == 0:
            given.pop("end")
        calls.append(ToolCall(f"id_{place}", kind, given))
    limits = LoopLimits(max_concurrent_tools=draw(st.integers(1, 4)), tool_timeout=5, abort_grace=0.5)
    denied = {each.id for each in calls if draw(st.integers(0, 9)) == 0}
    return Plan(calls, draw(st.integers(0, len(calls))), draw(st.integers(0, 4)) > 0, limits, denied)


class Turn:
    """One message's calls, offered one by one and then accepted or discarded; `inject` aborts."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.world = World()
        self.task: asyncio.Task[Any] | None = None
        self.recorder: Recorder | None = None
        self.aborted = False

    def inject(self) -> None:
        self.aborted = True
        if self.task is not None:
            self.task.cancel()

    async def start(self) -> list[dict[str, Any]]:
        self.recorder = recorder = Recorder(*self.world.tools, limits=self.plan.limits, permission=self._permission)
        self.task = asyncio.ensure_future(self._turn(recorder))
        if self.aborted:
            self.task.cancel()
        await asyncio.wait({self.task})
        if not self.task.cancelled():
            await self.task  # raise what it raised
        self.check(recorder)
        return [result.block() for result in recorder.batch.results()]

    async def _permission(self, call: ToolCall, *_: Any) -> Allow | Deny:
        return Deny("as told") if call.id in self.plan.denied else Allow()

    async def _turn(self, recorder: Recorder) -> None:
        try:
            for each in self.plan.calls[: self.plan.offered]:
                recorder.offer(each)
                await asyncio.sleep(0.5)
            if not self.plan.accepted:
                await recorder.batch.discard()
                return
        except asyncio.CancelledError:
            await recorder.batch.discard()
            raise
        work = recorder.batch.run(self.plan.calls)
        try:
            assert await work == "done"
        except asyncio.CancelledError:
            work.close()
            await recorder.batch.stop(self.plan.calls)
            raise

    def check(self, recorder: Recorder) -> None:
        recorder.assert_balanced()
        assert not self.world.running, "no tool runs any more"
        assert all(times == 1 for times in self.world.runs.values()), "no call runs twice"
        assert not self.plan.denied & set(self.world.runs)
        results = recorder.batch.results()
        if results:
            assert [result.tool_use_id for result in results] == [each.id for each in self.plan.calls]
        else:
            early = {each.id for each in self.plan.calls if all(KINDS.get(each.name, (False, False)))}
            assert set(self.world.runs) <= early, "only what may be repeated runs before the message is accepted"
        for result in results:
            ran = result.tool_use_id in self.world.runs
            assert ran == (result.status in {"ok", "error", "timeout", "interrupted"}), result
            assert result.is_error == (result.status != "ok")


def blocks_of(plan: Plan, schedule: Any) -> list[dict[str, Any]]:
    return simulate(Turn(plan).start, choices=schedule).result


@pytest.mark.slow
@given(plans(), simulation_choices())
def test_every_call_has_one_honest_answer_in_its_place_in_any_order_of_events(plan: Plan, schedule: Schedule) -> None:
    assert len(blocks_of(plan, schedule)) == (len(plan.calls) if plan.accepted else 0)


@pytest.mark.slow
@given(plans(), simulation_choices())
def test_the_answers_do_not_depend_on_the_order_of_events(plan: Plan, schedule: Schedule) -> None:
    assert blocks_of(plan, schedule) == blocks_of(plan, Schedule())


@pytest.mark.slow
def test_an_abort_at_every_suspension_point_leaves_nothing_and_answers_all() -> None:
    def calls(*ends: tuple[str, str, float]) -> list[ToolCall]:
        return [call(f"id_{i}", kind, kind=kind, seconds=s, end=end) for i, (kind, end, s) in enumerate(ends)]

    limits = LoopLimits(abort_grace=0.5, tool_timeout=4)
    mixed = calls(
        ("read", "return", 2), ("read", "swallow", 3), ("write", "return", 1), ("compute", "raise", 1),
        ("put", "hang", 0), ("nothing", "return", 0), ("write", "exit", 1),
    )  # fmt: skip
    for offered, accepted in [(0, True), (3, True), (2, False)]:
        plan = Plan(mixed, offered, accepted, limits, {"id_3"})
        report = abort_points(lambda plan=plan: Turn(plan))  # type: ignore[misc]
        assert report.ok, report


@dataclass
class Place:
    stage: Stage
    exclusive: bool
    repeatable: bool


PLACES = st.lists(st.builds(Place, st.sampled_from(Stage), st.booleans(), st.booleans()), max_size=7)


@given(PLACES, st.booleans(), st.integers(1, 4))
def test_what_may_start_keeps_every_rule(places: list[Place], accepted: bool, at_once: int) -> None:
    chosen = list(startable(places, accepted=accepted, at_once=at_once))
    assert chosen == sorted(set(chosen))
    running = sum(place.stage is Stage.RUNNING for place in places)
    assert not chosen or running + len(chosen) <= at_once
    assert not chosen or not any(place.exclusive for place in places if place.stage is Stage.RUNNING)
    for position in chosen:
        place, before = places[position], places[:position]
        assert place.stage is Stage.WAITING
        assert accepted or (place.repeatable and not place.exclusive)
        unfinished = [each for each in before if each.stage is not Stage.DONE]
        assert not any(each.exclusive for each in unfinished), "nobody overtakes an exclusive call"
        assert not place.exclusive or not unfinished, "an exclusive call waits for all before it"
    waiting = [i for i, place in enumerate(places) if place.stage is Stage.WAITING]
    if accepted and waiting and not running:
        assert chosen, "a batch never stands still"


async def test_a_deferral_while_streaming_lets_nothing_start_after_it() -> None:
    world = World()

    async def later(*_: Any) -> Defer:
        return Defer("later")

    recorder = Recorder(*world.tools, permission=later)
    calls = [call(str(i), "read", kind="read", seconds=0, end="return") for i in range(2)]
    recorder.offer(calls[0])
    for _ in range(10):
        await asyncio.sleep(0)
    assert await recorder.run(*calls) == "deferred"
    assert recorder.statuses == ["deferred", "not_run"]
    assert world.runs == {}
