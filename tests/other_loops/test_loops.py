"""Our own loop under every scenario, over HTTP; and others, of which the table is printed and nothing is asserted."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from fsm_agent.testing.other_loops import WIRE_SCENARIOS, Drive, LoopReport, probe_loop, probe_scenario
from tests.other_loops.loops import ours, pydantic_ai_agent, sdk_tool_runner

PAGE = Path(__file__).parents[2] / "docs" / "other-loops.md"


PATIENCE = 60.0
"""Seconds; our loop needs three at most, on a machine that does nothing else."""
LONG = {"tools without end": pytest.mark.slow}


@pytest.mark.parametrize("name", [pytest.param(name, marks=LONG.get(name, ())) for name in WIRE_SCENARIOS])
async def test_everything_holds_of_our_loop(name: str) -> None:
    async with ours() as drive:
        found = await probe_scenario(drive, name, WIRE_SCENARIOS[name], patience=PATIENCE)
    assert found.faults == {}
    assert found.judgements["follow-up"].verdict == "yes"


@pytest.mark.slow
async def test_the_table_of_our_loop_in_the_documentation_is_true() -> None:
    async with ours() as drive:
        report = await probe_loop(drive, patience=PATIENCE)
    assert report.faults == []
    assert report.table() in PAGE.read_text(encoding="utf-8"), f"Put this into {PAGE.name}:\n{report.table()}"


async def test_the_documentation_says_what_each_column_means() -> None:
    assert LoopReport.legend() in PAGE.read_text(encoding="utf-8"), f"Put this into {PAGE.name}:\n{LoopReport.legend()}"


async def shown(loop: AbstractAsyncContextManager[Drive]) -> None:
    """Print what holds. That there is a finding for each scenario is all that is asserted."""
    async with loop as drive:
        report = await probe_loop(drive)
    print(f"\n{report}")
    assert [finding.scenario for finding in report.findings] == list(WIRE_SCENARIOS)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Tool .* not found in tool runner:UserWarning")
async def test_the_tool_runner_of_the_sdk() -> None:
    await shown(sdk_tool_runner())


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
async def test_pydantic_ai() -> None:
    pytest.importorskip("pydantic_ai", reason="pydantic-ai is not installed, and no dependency of ours")
    await shown(pydantic_ai_agent())
