"""The probe finds the mistakes that loops make, each where it belongs, and finds nothing in a loop without them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from fsm_agent.testing.other_loops import (
    PROPERTIES,
    WIRE_SCENARIOS,
    Finding,
    Outcome,
    Property,
    ToolFunction,
    WireScenario,
    probe_loop,
    probe_scenario,
)
from tests.other_loops.plain_loop import plain_loop

MISTAKES: list[tuple[str, str, Property, str]] = [
    ("answers in another order", "two calls at once", "paired", "begins with the results of"),
    ("loses a result", "two calls at once", "accepted", "R134"),
    ("loses a result", "two calls at once", "paired", "R134"),
    ("runs calls of a cut reply", "max_tokens after a whole call", "calls", "lookup(key='half') ran"),
    ("runs a tool twice", "one tool", "calls", "ran once more"),
    ("marks no error", "a tool that there is not", "case", "told by an error result"),
    ("marks no error", "a tool that raises", "case", "told by an error result"),
    ("drops thinking", "thinking before a call", "case", "the thinking goes back"),
    ("never gives up", "529 for ever", "ends", "too many requests"),
    ("calls everything a success", "refusal", "goal", "told as a success"),
    ("forgets what was said", "one tool", "follow-up", "is forgotten"),
    ("does not hear the abort", "abort while a tool runs", "ends", "after it was cancelled"),
    ("asks once more after the abort", "abort while a tool runs", "case", "no request and no tool goes on"),
    ("leaves calls open", "abort while a tool runs", "follow-up", "R134"),
]


async def probe(mistake: str, scenario: str) -> Finding:
    grace = 0.1 if mistake == "does not hear the abort" else 10.0  # only that one is waited for to the end
    return await probe_scenario(plain_loop(mistake), scenario, WIRE_SCENARIOS[scenario], grace=grace, most_requests=30)


@pytest.mark.parametrize(("mistake", "scenario", "name", "why"), MISTAKES)
async def test_a_mistake_is_found(mistake: str, scenario: str, name: Property, why: str) -> None:
    found = await probe(mistake, scenario)
    assert why in found.faults[name]


@pytest.mark.parametrize(("scenario", "name"), sorted({(scenario, name) for _, scenario, name, _ in MISTAKES}))
async def test_without_the_mistake_it_holds(scenario: str, name: Property) -> None:
    found = await probe("", scenario)
    if (scenario, name) == ("max_tokens after a whole call", "calls"):
        assert "goal" in found.faults  # the plain loop does not recover, but it runs nothing
    if (scenario, name) == ("abort while a tool runs", "follow-up"):
        assert "finished work" in found.faults[name]  # it drops the turn: valid, and forgetful
    else:
        assert name not in found.faults


async def test_what_a_loop_does_not_offer_is_no_fault() -> None:
    async def drive(base_url: str, prompt: str, tools: Sequence[ToolFunction]) -> Outcome:
        done = await plain_loop()(base_url, prompt, tools)
        return Outcome(done.text, done.ended, ok=done.ok)

    found = await probe_scenario(drive, "one tool", WIRE_SCENARIOS["one tool"])
    assert found.judgements["follow-up"].verdict == "not offered"
    assert not found.faults


async def test_what_a_loop_raises_is_told() -> None:
    async def drive(base_url: str, prompt: str, tools: Sequence[ToolFunction]) -> Outcome:
        raise LookupError("There is no model.")

    report = await probe_loop(drive, scenarios={name: WIRE_SCENARIOS[name] for name in ("one tool", "refusal")})
    assert [finding.ended for finding in report.findings] == ["LookupError", "LookupError"]
    assert report.faults == ["one tool, goal: LookupError: There is no model."]
    with pytest.raises(AssertionError, match="one tool, goal: LookupError"):
        report.check()


async def test_a_loop_that_hangs_is_cancelled() -> None:
    cancelled: list[str] = []

    async def drive(base_url: str, prompt: str, tools: Sequence[ToolFunction]) -> Outcome:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.append(prompt)
        raise AssertionError

    found = await probe_scenario(drive, "one tool", WIRE_SCENARIOS["one tool"], patience=0.01)
    assert found.faults["ends"] == "too slow, after 0 requests"
    assert len(cancelled) == 1


async def test_a_run_that_ends_before_the_abort_is_told_so() -> None:
    async def drive(base_url: str, prompt: str, tools: Sequence[ToolFunction]) -> Outcome:
        return Outcome("", ok=False)

    name = "abort while a tool runs"
    found = await probe_scenario(drive, name, WIRE_SCENARIOS[name])
    assert found.faults["ends"] == "it ended before it could be aborted"


async def test_the_report_is_a_table_with_what_does_not_hold_below() -> None:
    scenarios = {name: WIRE_SCENARIOS[name] for name in ("one tool", "529 once")}
    report = await probe_loop(plain_loop(), scenarios=scenarios)
    head, _, first, second, *below = str(report).splitlines()
    assert head == f"| scenario | {' | '.join(PROPERTIES)} | ended with | requests |"
    assert first == "| one tool | yes | yes | yes | yes | yes |  | yes | end_turn | 2 |"
    assert second == "| 529 once | yes |  | yes |  | NO |  | none | OverloadedError | 1 |"
    assert below[1].startswith("- 529 once, goal: OverloadedError: Error code: 529")


async def test_a_scenario_of_ones_own() -> None:
    from fsm_agent.testing import Reply, tool_use

    mine = WireScenario([Reply(tool_use("lookup", {"key": "x"})), Reply("All done.")], calls=[("lookup", "y")])
    report = await probe_loop(plain_loop(), scenarios={"mine": mine})
    assert report.faults == ["mine, calls: lookup(key='x') ran, which no whole reply asked for"]
