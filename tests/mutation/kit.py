"""What every mutant meets, cheapest first. All in process and on the virtual clock, so that nothing waits.

- The scenarios of the loop: the reason, the rows, every invariant, and a script that is served whole.
- The faults that users reported: the same, and what each expects.
- The edges: what no scenario shows.
- Each fault at each event of a stream: every reply breaks once at each of its events.
- The drivers: abort, cancel, close and drop at points spread over the run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import Any, TypeAlias

import pytest

from fsm_agent import Deps
from fsm_agent.testing import ScriptedModel
from fsm_agent.testing.invariants import ObservedRun, assert_invariants
from fsm_agent.testing.observed import ObservedModel
from fsm_agent.testing.simulation import abort_points, simulate
from tests.drivers.disturbed import Disturbance, Disturbed
from tests.drivers.test_faults_everywhere import broken, in_process
from tests.faults import expectations
from tests.faults.loader import Case, load, play_in_process
from tests.loop.scenarios import SCENARIOS, Scenario
from tests.mutation.edges import EDGES

Check: TypeAlias = tuple[str, Callable[[], None]]

BROKEN = ["one tool", "truncated, then continued", "a cut stream that is resumed", "a pause"]
PART_TESTS = {
    "loop": ["tests/loop/test_machine.py"],
    "model": ["tests/model"],
    "tools": ["tests/tools/test_batch.py", "tests/tools/test_gate.py", "tests/tools/test_results.py"],
    "session": ["tests/session"],
    "context": ["tests/context"],
}
"""The quick tests of each part. Asked last, and only about what all else let pass."""
LEFT: list[tuple[Disturbance, str]] = [
    (how, name)
    for how in ("cancel", "close", "drop")
    for name in ("one tool", "a cut stream that is resumed", "an abort while a tool runs")
]


def play(scenario: Scenario) -> None:
    """One scenario of the loop, with all that is to come of it."""
    scripted = ScriptedModel(scenario.script)

    async def program() -> ObservedRun:
        model = ObservedModel(scripted)
        machine = scenario.build(deps=Deps(call_model=model))
        events: list[Any] = []
        aborted: list[float] = []
        loop = asyncio.get_running_loop()

        def see(event: Any) -> None:
            events.append(event)
            if scenario.abort_at is not None and scenario.abort_at(event):
                aborted.append(loop.time())

        run = await scenario.play(machine, see=see)
        at = aborted[0] if aborted else None
        return ObservedRun(machine, events, run.result, model.exchanges, aborted_at=at, ended_at=loop.time())

    run = simulate(program, max_time=36_000).result
    assert_invariants(run)
    assert run.result.reason == scenario.reason, run.result
    rest = iter(run.result.trace)
    assert all(any(wanted == given for given in rest) for wanted in scenario.through), run.result.trace
    assert not scripted.unexpected, scripted.unexpected
    assert not scripted.refusals, scripted.refusals
    assert scripted.open_streams == 0


def _faults(case: Case) -> None:
    expectations.check(play_in_process(case))


def _broken(scenario: Scenario) -> None:
    for _, _, script in broken(scenario):
        in_process(scenario, script)


def _disturbed(scenario: Scenario, how: Disturbance, at_most: int) -> None:
    report = abort_points(lambda: Disturbed(scenario, how), at_most=at_most)
    assert report.ok, report


def checks() -> Iterator[Check]:
    """Every check with its name, in the order in which they are tried."""
    yield from ((f"scenario: {name}", partial(play, scenario)) for name, scenario in SCENARIOS.items())
    yield from ((f"fault: {case.name}", partial(_faults, case)) for case in load() if case.plays_in("process"))
    yield from ((f"edge: {check.__name__}", check) for check in EDGES)
    yield from ((f"broken reply: {name}", partial(_broken, SCENARIOS[name])) for name in BROKEN)
    for name, scenario in SCENARIOS.items():
        yield f"abort: {name}", partial(_disturbed, scenario, "abort", 8)
    for how, name in LEFT:
        yield f"{how}: {name}", partial(_disturbed, SCENARIOS[name], how, 5)


def first_failure(only: int | None = None) -> str | None:
    """The first check that fails (of the first `only`), and how; None if all hold."""
    for name, check in islice(checks(), only):
        try:
            check()
        except (Exception, asyncio.CancelledError, pytest.fail.Exception) as error:
            told = str(error).strip().splitlines() or [""]
            return f"{name} ({type(error).__name__}: {' '.join(told[:2])[:160]})"
    return None


class _Failures:
    """Notes the tests that fail."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.names.append(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.names.append(report.nodeid)


def first_failure_of_part(part: str) -> str | None:
    """The first of a part's own quick tests that fails; None if none does."""
    failures = _Failures()
    options = [
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "--hypothesis-profile=fast",
        "-o",
        "filterwarnings=ignore",
    ]
    pytest.main([*PART_TESTS[part], *options, "-m", "not slow and not deep"], plugins=[failures])
    return f"own test: {failures.names[0]}" if failures.names else None
