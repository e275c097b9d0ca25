"""Each row of the table, each reason to continue and each terminal reason, over the real SDK and a real socket."""

from __future__ import annotations

import asyncio
from typing import Any

import anthropic
import pytest

from fsm_agent import AGENT_LOOP, AgentMachine, Deps, TerminalReason
from fsm_agent.session.validator import violations
from fsm_agent.testing.server import MessagesServer
from tests.loop.scenarios import SCENARIOS, Scenario

CONTINUE_REASONS = {
    "next_turn",
    "max_output_tokens_escalate",
    "max_output_tokens_recovery",
    "reactive_compact_retry",
    "collapse_drain_retry",
    "stop_hook_blocking",
    "token_budget_continuation",
}


async def no_wait(seconds: float) -> None:
    """Waits are the virtual clock's business; here they only give others a turn, or hang until the abort."""
    await (asyncio.Event().wait() if seconds > 30 else asyncio.sleep(0))


async def over_the_wire(scenario: Scenario) -> tuple[Any, list[Any], MessagesServer]:
    events: list[Any] = []
    async with (
        MessagesServer(scenario.script) as server,
        anthropic.AsyncAnthropic(base_url=server.url, api_key="test") as client,
    ):
        machine = scenario.build(client=client, deps=Deps(sleep=no_wait))
        run = await scenario.play(machine, see=events.append)
        return run.result, events, server


def in_order(wanted: list[str], trace: tuple[str, ...]) -> bool:
    rest = iter(trace)
    return all(any(trigger == given for given in rest) for trigger in wanted)


@pytest.mark.parametrize("name", SCENARIOS)
async def test_scenario(name: str) -> None:
    scenario = SCENARIOS[name]
    result, events, server = await over_the_wire(scenario)
    assert result.reason == scenario.reason, result
    assert in_order(list(scenario.through), result.trace), result.trace
    assert [event.type for event in events].count("terminal") == 1
    assert events[-1].type == "terminal"
    assert events[-1].reason == result.reason
    assert not violations(result.messages)
    assert server.open_connections == 0 or all(exchange.refusal is None for exchange in server.requests)
    assert [exchange.refusal for exchange in server.requests if exchange.refusal] == []
    assert result.requests == len(server.requests)


@pytest.mark.parametrize("name", SCENARIOS)
async def test_the_next_run_on_what_it_left_is_accepted(name: str) -> None:
    result, _, _ = await over_the_wire(SCENARIOS[name])
    from fsm_agent.testing.script import Reply

    async with (
        MessagesServer([Reply("welcome back")]) as server,
        anthropic.AsyncAnthropic(base_url=server.url, api_key="test") as client,
    ):
        machine = AgentMachine("claude-sonnet-4-5", client=client, tools=SCENARIOS[name].tools, strict=True)
        again = await machine.run("and now?", history=result.messages)
    assert again.reason == TerminalReason.COMPLETED
    assert again.text == "welcome back"


async def test_every_row_and_every_reason_is_reached_by_a_scenario() -> None:
    fired: set[tuple[str, str]] = set()
    for _, events, _ in await asyncio.gather(*(over_the_wire(scenario) for scenario in SCENARIOS.values())):
        fired.update((event.source, event.trigger) for event in events if event.type == "transition")

    assert {row.key for row in AGENT_LOOP.rows} - fired == set()
    assert {trigger for _, trigger in fired} >= CONTINUE_REASONS
    assert {row.reason for row in AGENT_LOOP.rows if row.reason and row.key in fired} == set(TerminalReason)
