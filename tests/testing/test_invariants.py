"""The checker of invariants: silent on a sound run, and each breach is named when a sound run is tampered with."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from fsm_agent import AgentMachine, Deps
from fsm_agent.loop.events import Assistant, Progress, StreamEvent, System, Terminal, Tombstone, Transition, User
from fsm_agent.session.history import History
from fsm_agent.testing import ApiError, Reply, ScriptedModel, Stream, tool_use
from fsm_agent.testing.invariants import ObservedRun, assert_invariants, broken_invariants
from fsm_agent.testing.observed import Exchange, ObservedModel
from fsm_agent.testing.simulation import simulate
from tests.faults.behaviours import Seen, make_tools
from tests.loop.scenarios import MODEL, SCENARIOS

SCRIPT = [
    Stream(["message_start", {"text": "half"}, "eof"], usage={"input_tokens": 7}),
    Reply("let me look", tool_use("look", id="a"), tool_use("look", id="b")),
    Reply("done"),
]


OTHER = b'{"messages":[{"role":"user","content":"come"}]}'


async def observed(script: list[Any]) -> ObservedRun:
    model = ObservedModel(ScriptedModel(script))
    tools = make_tools({"look": {}}, Seen())

    async def no_wait(_: float) -> None:
        await asyncio.sleep(0)

    machine = AgentMachine(MODEL, tools=tools, deps=Deps(call_model=model, sleep=no_wait))
    run = machine.run("go")
    events = [event async for event in run]
    return ObservedRun(machine, events, run.result, model.exchanges)


@pytest.fixture
async def sound() -> ObservedRun:
    return await observed(SCRIPT)


def without(run: ObservedRun, of: type[Any], number: int = 0, **fields: Any) -> ObservedRun:
    found = [event for event in run.all(of) if all(getattr(event, k) == v for k, v in fields.items())]
    return replace(run, events=[event for event in run.events if event is not found[number]])


def twice(run: ObservedRun, of: type[Any], **fields: Any) -> ObservedRun:
    found = next(event for event in run.all(of) if all(getattr(event, k) == v for k, v in fields.items()))
    at = list(run.events).index(found)
    return replace(run, events=[*run.events[:at], found, *run.events[at:]])


def with_error(run: ObservedRun, at: int) -> ObservedRun:
    error = System(subtype="error", message="Overloaded")
    return replace(run, events=[*run.events[:at], error, *run.events[at:]])


def with_history(run: ObservedRun, change: Callable[[list[dict[str, Any]]], object]) -> ObservedRun:
    messages = [dict(message) for message in run.result.messages]
    change(messages)
    history = History()
    history.replace(0, 0, messages)
    return replace(run, result=replace(run.result, history=history))


def with_exchange(run: ObservedRun, **fields: Any) -> ObservedRun:
    given: dict[str, Any] = {"model": MODEL, "raw": run.exchanges[0].raw, "kind": "turn", "started": 0.0, **fields}
    return replace(run, exchanges=[*run.exchanges, Exchange(**given)])


def swapped(run: ObservedRun) -> ObservedRun:
    first, second = run.all(Transition)[:2]
    swap = {id(first): second, id(second): first}
    return replace(run, events=[swap.get(id(event), event) for event in run.events])


def late(run: ObservedRun) -> ObservedRun:
    first = run.exchanges[0].started
    return replace(run, aborted_at=first, ended_at=first + 100)


TAMPERED: dict[str, tuple[str, Callable[[ObservedRun], ObservedRun]]] = {
    "a call without its result": ("I1-I5", lambda run: with_history(run, lambda m: m.pop(2))),
    "a request with a call alone": (
        "I1-I5",
        lambda run: with_exchange(
            run,
            raw=b'{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":'
            b'[{"type":"tool_use","id":"x","name":"look","input":{}}]}]}',
        ),
    ),
    "no terminal event": ("I7", lambda run: without(run, Terminal)),
    "two terminal events": ("I7", lambda run: twice(run, Terminal)),
    "a transition left out": ("I7", lambda run: without(run, Transition, 3)),
    "two transitions in the wrong order": ("I7", swapped),
    "a request that no effect explains": ("I8", lambda run: with_exchange(run, ending="end")),
    "a stream left open": ("I9", with_exchange),
    "a request that changes what was sent": (
        "prefix",
        lambda run: replace(run, exchanges=[*run.exchanges[:2], replace(run.exchanges[2], raw=OTHER)]),
    ),
    "a tool that runs on in the next request": (
        "I10",
        lambda run: replace(run, events=sorted(run.events, key=lambda e: getattr(e, "kind", "") == "tool_finished")),
    ),
    "a tool that never finished": ("I10", lambda run: without(run, Progress, kind="tool_finished")),
    "a tool that started twice": ("I10", lambda run: twice(run, Progress, kind="tool_started")),
    "a tool that finished twice": ("I10", lambda run: twice(run, Progress, kind="tool_finished")),
    "a discarded message without a tombstone": ("I10", lambda run: without(run, Tombstone)),
    "two tombstones": ("I10", lambda run: twice(run, Tombstone)),
    "a message that is not told": ("I10", lambda run: without(run, Assistant)),
    "results that are not told": ("I10", lambda run: without(run, User)),
    "a delta that is stored and not told": (
        "I10",
        lambda run: replace(
            run,
            events=[e for e in run.events if not (isinstance(e, StreamEvent) and e.text.startswith("let"))],
        ),
    ),
    "an error that was repaired": ("I11", lambda run: with_error(run, 3)),
    "an error of a run that completed": ("I11", lambda run: with_error(run, len(run.events) - 1)),
    "a response that is not counted": ("I12", lambda run: replace(run, exchanges=run.exchanges[:-1])),
    "usage counted twice": (
        "I12",
        lambda run: replace(run, result=replace(run.result, usage=run.result.usage + run.result.usage)),
    ),
    "a request after the abort, and a late end": ("I13", late),
}


async def test_a_sound_run_breaks_nothing(sound: ObservedRun) -> None:
    assert broken_invariants(sound) == []
    assert_invariants(sound)
    assert sound.net_text == "let me lookdone"


@pytest.mark.parametrize("name", TAMPERED)
async def test_a_breach_is_named(sound: ObservedRun, name: str) -> None:
    invariant, tamper = TAMPERED[name]
    broken = tamper(sound)
    assert invariant in {breach.invariant for breach in broken_invariants(broken)}
    with pytest.raises(AssertionError, match=invariant):
        assert_invariants(broken)


async def test_a_failure_that_is_not_shown_is_a_breach() -> None:
    run = await observed([ApiError(400, "invalid_request_error", "no")])
    assert broken_invariants(run) == []
    assert {b.invariant for b in broken_invariants(without(run, System, subtype="error"))} == {"I11"}
    assert {b.invariant for b in broken_invariants(twice(run, System, subtype="error"))} == {"I11"}


async def test_of_a_run_that_was_not_followed_only_what_needs_no_events_is_checked(sound: ObservedRun) -> None:
    partly = replace(sound, events=sound.events[:5], whole=False)
    assert broken_invariants(partly) == []
    assert broken_invariants(replace(partly, exchanges=sound.exchanges[:1])) != []


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_scenario_of_the_loop_holds_all_of_them(name: str) -> None:
    scenario = SCENARIOS[name]

    async def program() -> ObservedRun:
        model = ObservedModel(ScriptedModel(scenario.script))
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

    assert_invariants(simulate(program).result)
