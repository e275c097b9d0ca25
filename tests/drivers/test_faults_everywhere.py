"""Every event of every reply replaced in turn by end of file, reset, error, silence and garbage."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, cast

import anthropic
import pytest

from fsm_agent import Deps
from fsm_agent.machine import TerminalReason
from fsm_agent.session.validator import violations
from fsm_agent.testing import (
    Chunking,
    Fault,
    FaultKind,
    MessagesServer,
    Repeat,
    Reply,
    ScriptedModel,
    Stream,
    count_events,
    with_fault,
)
from fsm_agent.testing.simulation import simulate
from tests.loop.scenarios import SCENARIOS, Scenario

KINDS: tuple[FaultKind, ...] = ("eof", "reset", "error", "silence", "garbage")
RICH = [
    "a plain answer",
    "one tool",
    "the turn limit",
    "truncated, then continued",
    "an overflow that draining mends",
    "a stop hook that objects once",
    "a token budget that is not used",
    "overload, then another model",
    "a refusal, then another model",
    "a cut stream that is resumed",
    "a pause",
    "a tool use that is none",
    "nothing visible",
    "an output that does not fit",
    "a hook that stops after a tool",
]
GOOD = Reply("done", usage={"output_tokens": 700})


def broken(scenario: Scenario) -> Iterator[tuple[int, Fault, list[Any]]]:
    """The script with one fault in it, and good replies after its end, for the repetitions that follow."""
    for place, item in enumerate(scenario.script):
        inner = item.item if isinstance(item, Repeat) else item
        if not isinstance(inner, (Reply, Stream)):
            continue
        for event in range(count_events(inner, Chunking())):
            for kind in KINDS:
                fault = Fault(event, kind)
                script = [*scenario.script]
                script[place : place + 1] = [with_fault(inner, fault), item]
                yield place, fault, [*script, Repeat(GOOD, "always")]


def check(result: Any, events: list[Any], scenario: Scenario) -> None:
    assert result.reason in set(TerminalReason)
    assert [event.type for event in events].count("terminal") == 1
    assert events[-1].type == "terminal"
    assert not violations(result.messages), result.messages
    kept = {event.message_id for event in events if event.type == "assistant"}
    gone = {event.message_id for event in events if event.type == "tombstone"}
    shown = {event.message_id for event in events if event.type == "stream_event"}
    assert not kept & gone
    assert shown <= kept | gone
    deltas = "".join(event.text for event in events if event.type == "stream_event" and event.message_id in kept)
    stored = "".join(
        block["text"]
        for event in events
        if event.type == "assistant"
        for block in event.message["content"]
        if block["type"] == "text"
    )
    assert deltas.split() == stored.split()
    starts = [event.tool_use_id for event in events if event.type == "progress" and event.kind == "tool_started"]
    ends = [event.tool_use_id for event in events if event.type == "progress" and event.kind == "tool_finished"]
    assert sorted(starts) == sorted(ends)
    # An error that a repetition repaired is not shown; one that none did is shown once.
    errors = [event for event in events if event.type == "system" and event.subtype == "error"]
    assert len(errors) <= (0 if result.ok else 1)


def in_process(scenario: Scenario, script: list[Any]) -> None:
    async def program() -> None:
        model = ScriptedModel(script)
        events: list[Any] = []
        run = await scenario.play(scenario.build(deps=Deps(call_model=model)), see=events.append)
        check(run.result, events, scenario)
        assert model.open_streams == 0
        assert not model.refusals

    simulate(program)


@pytest.mark.parametrize("name", RICH)
def test_a_reply_that_breaks_at_any_event(name: str) -> None:
    scenario = SCENARIOS[name]
    for place, fault, script in broken(scenario):
        try:
            in_process(scenario, script)
        except BaseException as error:
            error.add_note(f"{fault} in item {place} of {name!r}")
            raise


WIRE = cast("list[tuple[str, FaultKind]]", [(name, kind) for name in ("one tool", "a pause") for kind in KINDS])


@pytest.mark.parametrize(("name", "kind"), WIRE)
async def test_a_reply_that_breaks_on_the_wire(name: str, kind: FaultKind) -> None:
    scenario = SCENARIOS[name]

    async def soon(seconds: float) -> None:
        await asyncio.sleep(0)

    for place, fault, script in broken(scenario):
        if fault.kind != kind:
            continue
        async with (
            MessagesServer(script) as server,
            anthropic.AsyncAnthropic(base_url=server.url, api_key="test") as client,
        ):
            events: list[Any] = []
            limits = {**scenario.limits, "stream_idle_timeout": 0.05}
            quick = Scenario(**{**scenario.__dict__, "limits": limits})
            run = await quick.play(quick.build(client=client, deps=Deps(sleep=soon)), see=events.append)
            check(run.result, events, scenario)
            assert run.result.reason == "completed", (place, fault, run.result)
