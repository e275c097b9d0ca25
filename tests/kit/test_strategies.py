"""The strategies: what they generate fits, reaches deep, and a sound agent withstands it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from fsm_agent import AGENT_LOOP, AgentMachine, tool
from fsm_agent.testing import HookAct, Reply, Scenario, check_scenario, scenarios
from fsm_agent.testing.coverage import Coverage
from fsm_agent.testing.strategies import misfits, seeds, tool_calls, valid_calls, values_of
from tests.kit.agents import acting_agent, approving_agent, rich_agent, sound_agent
from tests.kit.schemas import Order, order_tool


@given(call=valid_calls([order_tool]))
def test_valid_calls_pass_the_tools_own_validation(call: dict):
    assert order_tool.arguments(call["input"])["order"]


@given(value=misfits(order_tool.input_schema))
def test_misfits_are_objects_still(value: dict):
    assert isinstance(value, dict)


def test_misfits_do_not_fit():
    refused = []

    @settings(max_examples=100, database=None)
    @given(value=misfits(order_tool.input_schema))
    def try_one(value: dict) -> None:
        try:
            order_tool.arguments(value)
        except Exception:
            refused.append(value)

    try_one()
    assert len(refused) > 20


@given(value=values_of(TypeAdapter(Order).json_schema()))
def test_recursive_schemas_with_references_patterns_and_formats_are_met(value: dict):
    try:
        TypeAdapter(Order).validate_python(value)
    except ValidationError as error:
        pytest.fail(f"{value} does not fit: {error}")


def test_a_strategy_of_your_own_is_taken_for_a_tools_input():
    @tool
    async def pay(amount: float) -> str:
        """Pay."""
        return "paid"

    @settings(max_examples=20, database=None)
    @given(call=valid_calls([pay], inputs={"pay": st.just({"amount": 5.0})}))
    def try_one(call: dict) -> None:
        assert call["input"] == {"amount": 5.0}

    try_one()
    with pytest.raises(ValueError, match=r"There are inputs for spend; the tools are pay\."):
        tool_calls([pay], inputs={"spend": st.none()})


@settings(max_examples=300)
@given(scenario=scenarios(sound_agent))
def test_a_sound_agent_withstands_whatever_happens(scenario: Scenario):
    check_scenario(sound_agent, scenario)


@given(scenario=scenarios(rich_agent))
def test_a_rich_agent_withstands_it_too(scenario: Scenario):
    check_scenario(rich_agent, scenario)


@given(scenario=scenarios(approving_agent, stand_ins="all"))
def test_a_machine_with_a_state_of_its_own_withstands_it_too(scenario: Scenario):
    check_scenario(approving_agent, scenario)


def test_the_witnesses_lead_to_nearly_every_row():
    coverage = Coverage()
    for scenario in seeds(AGENT_LOOP):
        coverage.add(AGENT_LOOP, check_scenario(acting_agent, scenario).events)
    report = coverage.reports()[0]
    # The agent has no output type.
    assert report.rows.missing == ("recovering.output_retry", "recovering.output_invalid")


@pytest.mark.parametrize(
    ("agent", "least"),
    # The sound agent has neither an output type nor a function for its system prompt: three rows are impossible.
    [pytest.param(sound_agent, 43, id="sound"), pytest.param(rich_agent, 44, id="rich")],
)
def test_the_search_leaves_few_rows_unseen(agent: Callable[[], AgentMachine], least: int):
    coverage = Coverage()

    @settings(max_examples=400, database=None, deadline=None, phases=[Phase.generate], derandomize=True)
    @given(scenario=scenarios(agent))
    def look(scenario: Scenario) -> None:
        coverage.add(AGENT_LOOP, check_scenario(agent, scenario).events)

    look()
    report = coverage.reports()[0]
    assert report.rows.seen >= least, report.rows.missing
    assert report.transitions.missing == ()


def test_no_example_has_to_import_the_sdk():
    program = (
        "import sys; from fsm_agent import AgentMachine; from fsm_agent.testing import scenarios\n"
        "before = 'anthropic' in sys.modules; scenarios(AgentMachine('claude-sonnet-5-5'))\n"
        "print(before, 'anthropic' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


def test_the_simplest_scenario_is_empty():
    assert find(scenarios(sound_agent), lambda scenario: True, settings=settings(database=None)) == Scenario()


def test_a_function_for_the_system_prompt_may_fail():
    played = check_scenario(rich_agent, Scenario(system=[HookAct("raise")]))
    assert played.result.reason == "turn_setup_failed"
    verdict = Reply('{"fits": true, "marks": []}', usage={"output_tokens": 3_000})
    assert check_scenario(rich_agent, Scenario([verdict], system=[HookAct()])).result.reason == "completed"
    nonsense = check_scenario(rich_agent, Scenario([verdict], system=[HookAct("nonsense")]))
    assert nonsense.result.reason == "turn_setup_failed"
