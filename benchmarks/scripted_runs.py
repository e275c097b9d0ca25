"""How many runs and scenarios a test suite gets through in a second of one core."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from statistics import median

from benchmarks.canned_server import MODEL
from benchmarks.fresh import fresh
from benchmarks.rows import Row

__all__ = ["rows", "scenario_rows"]

RUNS = 500
TIMES = 3
SCENARIOS = 300
WARM_UP_SCENARIOS = 60


def rows() -> Iterator[Row]:
    yield _row("scripted runs a second, one tool turn each", 1_000, validate=True)
    yield _row("the same, requests not judged by the API's rules", None, validate=False)


def _row(what: str, bound: float | None, *, validate: bool) -> Row:
    figures = [fresh(scripted, validate=validate) for _ in range(TIMES)]
    rate = median(f["runs"] / f["seconds"] for f in figures)
    told = f"{1_000 / rate:.2f} ms of CPU a run; virtual clock, a machine and a model for each"
    return Row(what, told, rate, bound, "1/s", "at least")


def scripted(*, validate: bool) -> dict[str, float]:
    from fsm_agent import AgentMachine, Deps, tool
    from fsm_agent.testing import Reply, ScriptedModel, tool_use
    from fsm_agent.testing.simulation import simulate

    @tool
    async def echo(x: str) -> str:
        """Say it again."""
        return x

    async def one() -> str:
        model = ScriptedModel([Reply(tool_use("echo", {"x": "hello"})), Reply("Done.")], validate=validate)
        result = await AgentMachine(MODEL, tools=[echo], deps=Deps(call_model=model)).run("Go.")
        model.assert_complete()
        return result.text

    async def several(runs: int) -> None:
        for _ in range(runs):
            assert await one() == "Done."

    simulate(lambda: several(20))
    started = time.process_time()
    simulate(lambda: several(RUNS))
    return {"runs": RUNS, "seconds": time.process_time() - started}


def scenario_rows() -> Iterator[Row]:
    """As a suite runs them (`pytest -n auto`), and in one process."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with ThreadPoolExecutor(cores) as pool:
        rounds = [list(pool.map(fresh, [generated] * cores)) for _ in range(TIMES)]
    together = median(sum(f["scenarios"] / f["wall"] for f in figures) for figures in rounds)
    told = f"a process on each of {cores} cores, wall time"
    yield Row("generated scenarios a second", told, together, 300, "1/s", "at least")
    figures = [fresh(generated) for _ in range(TIMES)]
    rate = median(f["scenarios"] / f["seconds"] for f in figures)
    playing = median(f["playing"] / f["scenarios"] for f in figures)
    told = f"{1_000 / rate:.2f} ms of CPU each, {playing * 1_000:.2f} of them to play it and check the invariants"
    if figures[0]["broken"]:
        told += f"; {figures[0]['broken']:.0f} of {figures[0]['scenarios']:.0f} break one"
    yield Row("the same in one process", told, rate, None, "1/s", "at least")


def generated() -> dict[str, float]:
    from hypothesis import HealthCheck, Phase, given, settings

    from fsm_agent import AgentMachine, tool
    from fsm_agent.testing.playing import play_scenario
    from fsm_agent.testing.scenario import Scenario
    from fsm_agent.testing.strategies import scenarios

    @tool
    async def echo(x: str) -> str:
        """Say it again."""
        return x

    machine = AgentMachine(MODEL, tools=[echo])
    strategy = scenarios(machine)

    def suite(examples: int) -> dict[str, float]:
        played, playing, broken = 0, 0.0, 0

        @settings(
            max_examples=examples,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            derandomize=True,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
        )
        @given(scenario=strategy)
        def test(scenario: Scenario) -> None:
            nonlocal played, playing, broken
            began = time.process_time()
            broken += bool(play_scenario(machine, scenario).breaches())
            played, playing = played + 1, playing + time.process_time() - began

        started, begun = time.process_time(), time.perf_counter()
        test()
        seconds, wall = time.process_time() - started, time.perf_counter() - begun
        return {"scenarios": played, "seconds": seconds, "wall": wall, "playing": playing, "broken": broken}

    suite(WARM_UP_SCENARIOS)  # imports the SDK for its errors, and lets the checker find the ways to rows
    return suite(SCENARIOS)
