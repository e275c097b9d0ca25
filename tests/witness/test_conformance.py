"""Whether a run did what the machine says, told from its trace alone: events, JSON lines, log records."""

import json
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import pytest
import structlog

from fsm_agent import AGENT_LOOP, AgentMachine, Definition, Deps
from fsm_agent.log import LOGGER_NAME
from fsm_agent.testing.script import Reply, tool_use
from fsm_agent.testing.scripted import ScriptedModel
from fsm_agent.verify import conform, records
from tests.loop.scenarios import SCENARIOS
from tests.loop.test_extension import APPROVAL, machine
from tests.loop.test_rows import no_wait


async def played(name: str) -> tuple[AgentMachine, list[Any]]:
    """The events of a scenario, run in process."""
    scenario = SCENARIOS[name]
    events: list[Any] = []
    agent = scenario.build(deps=Deps(call_model=ScriptedModel(scenario.script), sleep=no_wait))
    await scenario.play(agent, see=events.append)
    return agent, events


def steps_of(events: list[Any]) -> list[dict[str, Any]]:
    return [event.model_dump() for event in events if event.type == "transition"]


def bounds(agent: AgentMachine) -> dict[str, Any]:
    return dict(agent.automaton.limits)


@pytest.mark.parametrize("name", SCENARIOS)
async def test_the_trace_of_each_scenario_follows_from_the_table(name: str) -> None:
    agent, events = await played(name)
    moves = [event for event in events if event.type == "transition"]
    assert moves
    assert conform(AGENT_LOOP, moves, bounds(agent)) is None
    lines = [event.model_dump_json() for event in events]
    read = list(records(lines))
    assert [record["trigger"] for record in read] == [move.trigger for move in moves]
    assert conform(AGENT_LOOP, read, bounds(agent)) is None
    assert conform(AGENT_LOOP, [move.trigger for move in moves], bounds(agent)) is None


@pytest.mark.parametrize("name", SCENARIOS)
async def test_a_step_that_is_left_out_is_missed(name: str) -> None:
    agent, events = await played(name)
    steps = steps_of(events)
    for gone in range(len(steps) - 1):
        found = conform(AGENT_LOOP, steps[:gone] + steps[gone + 1 :], bounds(agent))
        assert found is not None
        assert found.step > gone, "no step before the gap is blamed"


@pytest.mark.parametrize("name", SCENARIOS)
async def test_a_counter_that_was_tampered_with_is_found_where_it_stands(name: str) -> None:
    agent, events = await played(name)
    for at in range(len(steps_of(events))):
        steps = steps_of(events)
        steps[at]["control"]["turn"] += 1
        found = conform(AGENT_LOOP, steps, bounds(agent))
        assert found is not None
        assert found.step == at + 1
        assert found.why.startswith("the trace says turn = ")


async def trace_of_one_tool() -> list[dict[str, Any]]:
    _, events = await played("one tool")
    return steps_of(events)


async def test_a_divergence_names_the_first_step_and_the_values_before() -> None:
    steps = await trace_of_one_tool()
    steps[5]["trigger"] = "output_limit"
    found = conform(AGENT_LOOP, steps[:6])
    assert found is not None
    assert (found.step, found.trigger) == (6, "output_limit")
    assert str(found) == (
        "Step 6, 'output_limit', does not follow from recovering(turn=2): with response: end_turn, output: valid, "
        "hooks: pass, budget: used, the row «recovering --complete--> terminal: completed» fires."
    )


@pytest.mark.parametrize(
    ("tamper", "step", "why"),
    [
        ({"trigger": "turn_limit"}, 3, r"tools: done, the row «executing_tools --next_turn--> preprocess» fires"),
        ({"dest": "calling_model"}, 3, r"says dest 'calling_model', and the row is «executing_tools --next_turn--> p"),
        ({"reason": "completed"}, 3, r"says reason 'completed', and the row is"),
        ({"facts": {"response": "end_turn", "tools": "done"}}, 3, r"response: end_turn"),
        ({"facts": {"response": "tool_use"}}, 3, r"the effect 'tools' is asked for first"),
    ],
)
async def test_what_a_step_says_is_held_against_the_row(tamper: dict[str, Any], step: int, why: str) -> None:
    steps = await trace_of_one_tool()
    steps[2].update(tamper)
    found = conform(AGENT_LOOP, steps)
    assert found is not None
    assert found.step == step
    assert str(found.before[0]) == "executing_tools(turn=1)"
    assert re.search(why, str(found)), str(found)


async def test_nothing_follows_the_end() -> None:
    steps = await trace_of_one_tool()
    found = conform(AGENT_LOOP, [*steps, steps[0]])
    assert found is not None
    assert found.step == len(steps) + 1
    assert found.why == "the state has the triggers none: it is final."


async def test_a_limit_that_was_exceeded_is_found() -> None:
    agent, events = await played("the turn limit")
    assert bounds(agent)["max_turns"] == 2
    found = conform(AGENT_LOOP, steps_of(events), {**bounds(agent), "max_turns": 1})
    assert found is not None
    assert found.trigger == "next_turn"


async def test_a_run_of_another_machine_does_not_conform() -> None:
    agent, _ = machine(["approved"], [Reply(tool_use("remove", {"path": "a"})), Reply("done")])
    moves = [event async for event in agent.run("go") if event.type == "transition"]
    assert conform(APPROVAL, moves) is None
    found = conform(AGENT_LOOP, moves)
    assert found is not None
    assert (found.step, found.why.partition(",")[0]) == (2, "the trace says dest 'awaiting_approval'")


# ---- log records


@contextmanager
def json_log(level: int = logging.DEBUG) -> Iterator[list[str]]:
    """The library's log as a program writes it with structlog: one JSON object a line."""
    lines: list[str] = []

    class Lines(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(self.format(record))

    handler = Lines()
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.JSONRenderer(),
            ],
            foreign_pre_chain=[structlog.stdlib.add_log_level, structlog.stdlib.ExtraAdder()],
        )
    )
    logger = logging.getLogger(LOGGER_NAME)
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(level)
    try:
        yield lines
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)


@cache
def without_nudge() -> Definition:
    return AGENT_LOOP.without_row("recovering", "empty_response_nudge")


@pytest.mark.parametrize("name", SCENARIOS)
async def test_the_log_is_as_good_a_trace_as_the_events(name: str) -> None:
    with json_log() as lines:
        agent, events = await played(name)
    read = list(records(lines))
    keys = ("source", "trigger", "dest", "facts", "control", "reason")
    assert [{key: record[key] for key in keys} for record in read] == [
        {key: step[key] for key in keys} for step in steps_of(events)
    ]
    assert conform(AGENT_LOOP, read, bounds(agent)) is None


async def test_runs_in_one_log_are_told_apart_by_their_name() -> None:
    with json_log() as lines:
        await played("one tool")
        await played("nothing visible")
    read = list(records(lines))
    names = list(dict.fromkeys(record["run"] for record in read))
    assert len(names) == 2
    assert [conform(AGENT_LOOP, [r for r in read if r["run"] == name]) for name in names] == [None, None]
    second = conform(without_nudge(), [r for r in read if r["run"] == names[1]])
    assert second is not None
    assert (second.step, second.trigger) == (3, "empty_response_nudge")


async def test_lines_that_are_no_transitions_are_passed_over() -> None:
    with json_log() as lines:
        await played("a plain answer")
    noise = ["", "not json", "[1]", json.dumps({"event": "other", "trigger": "abort"}), json.dumps("transition")]
    mixed = [line for pair in zip(lines, [*noise, *noise], strict=False) for line in pair]
    assert conform(AGENT_LOOP, records(mixed)) is None
    assert len(list(records(mixed))) == 3


async def test_a_level_that_is_off_logs_nothing() -> None:
    with json_log(logging.INFO) as lines:
        await played("a plain answer")
    assert lines == []
