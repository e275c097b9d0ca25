"""Every scenario of the loop, disturbed everywhere: aborted at each suspension point, each event of a stream broken.

Whatever happens where, every invariant holds, and the API refuses no request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from fsm_agent import Deps
from fsm_agent.testing import Fault, FaultKind, Repeat, Reply, ScriptedModel, Stream, with_fault
from fsm_agent.testing.invariants import ObservedRun, assert_invariants
from fsm_agent.testing.observed import ObservedModel
from fsm_agent.testing.simulation import RandomChoices, abort_points, simulate
from tests.faults.loader import Case, load, play
from tests.loop.scenarios import SCENARIOS, Scenario

KINDS: tuple[FaultKind, ...] = ("eof", "cut", "reset", "error", "silence", "garbage")
pytestmark = pytest.mark.slow


class Aborted:
    """A scenario that is aborted at one point."""

    def __init__(self, scenario: Scenario, script: Sequence[Any] | None = None) -> None:
        self.scenario = scenario
        self.scripted = ScriptedModel(scenario.script if script is None else script, strict=script is None)
        self.run: Any = None
        self.aborted_at: float | None = None

    def abort(self) -> None:
        if self.aborted_at is None:
            self.aborted_at = asyncio.get_running_loop().time()
        self.run.abort("disturbed")

    def inject(self) -> None:
        if self.run is not None:
            self.abort()

    async def start(self) -> tuple[str, ...]:
        model = ObservedModel(self.scripted)
        machine = self.scenario.build(deps=Deps(call_model=model))
        self.run = machine.run(self.scenario.prompt, history=list(self.scenario.history))
        events: list[Any] = []
        async with self.run as run:
            async for event in run:
                events.append(event)
                if self.scenario.abort_at is not None and self.scenario.abort_at(event):
                    self.abort()
        now = asyncio.get_running_loop().time()
        observed = ObservedRun(machine, events, run.result, model.exchanges, aborted_at=self.aborted_at, ended_at=now)
        assert_invariants(observed)
        assert self.scripted.refusals == []
        return tuple(run.result.trace)


@pytest.mark.parametrize("name", SCENARIOS)
def test_an_abort_at_any_point_breaks_no_invariant(name: str) -> None:
    report = abort_points(lambda: Aborted(SCENARIOS[name]), choices=RandomChoices(1), at_most=40)
    assert report.ok, report


class AbortedCase:
    """A fault scenario that is aborted at one point besides."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.scripted = ScriptedModel(case.script(), strict=False)
        self.run: Any = None
        self.aborted: dict[int, float] = {}

    def follow(self, run: Any) -> None:
        self.run = run

    def inject(self) -> None:
        if self.run is not None:
            self.aborted.setdefault(id(self.run), asyncio.get_running_loop().time())
            self.run.abort("disturbed")

    async def start(self) -> None:
        played = await play(self.case, ObservedModel(self.scripted), {}, on_run=self.follow)
        for run in played.runs:
            assert_invariants(run)
        last, at = played.runs[-1], self.aborted.get(id(self.run))
        if at is not None:
            assert_invariants(replace(last, aborted_at=at))
        assert self.scripted.refusals == []
        assert played.seen.running == []


# These leave a tool behind on purpose, or are too large to be run often.
UNDISTURBED = ("late-duplicate-result", "huge-tool-output")
CASES = [case for case in load() if case.plays_in("process") and case.words["id"] not in UNDISTURBED]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_fault_and_an_abort_at_any_point_break_no_invariant(case: Case) -> None:
    report = abort_points(lambda: AbortedCase(case), choices=RandomChoices(3), at_most=10)
    assert report.ok, report


EARLY = (
    "after a call that started",
    "while the tool runs",
    "the call started",
    "started early",
    "while the calls stream",
)


@pytest.mark.parametrize("seed", [3, 4, 5])
@pytest.mark.parametrize("case", [c for c in CASES if c.words.get("case") in EARLY], ids=lambda case: case.name)
def test_an_early_tool_outlives_no_abort(case: Case, seed: int) -> None:
    report = abort_points(lambda: AbortedCase(case), choices=RandomChoices(seed))
    assert report.ok, report


def broken(script: Sequence[Any]) -> Iterator[tuple[str, list[Any]]]:
    """The script with one more answer in it, which breaks: in the place of each, at each event, in each way."""
    for place, item in enumerate(script):
        plain = item.item if isinstance(item, Repeat) else item
        if not isinstance(plain, Reply | Stream) or plain.fault is not None:
            continue
        for event in range(8):
            for kind in KINDS:
                faulty = with_fault(plain, Fault(event, kind))
                yield f"{place}.{event} {kind}", [*script[:place], faulty, *script[place:]]


@pytest.mark.parametrize("name", [name for name, scenario in SCENARIOS.items() if any(broken(scenario.script))])
def test_a_fault_at_any_event_breaks_no_invariant(name: str) -> None:
    traces = {
        where: simulate(Aborted(SCENARIOS[name], script).start).result
        for where, script in broken(SCENARIOS[name].script)
    }
    assert len(set(traces.values())) > 1, "no fault made any difference"
