"""A machine and a coarser one that it should refine."""

import pytest

from fsm_agent.machine import AGENT_LOOP
from fsm_agent.machine.coarse import AGENT_PHASES, Coarse, CoarseStep, Phase
from fsm_agent.verify import refine
from tests.verify.sketch import SKETCH

TURNS = Coarse(
    "turns",
    "asking",
    (
        CoarseStep("asking", "act", "acting", by=("called",)),
        CoarseStep("acting", "report", "asking", by=("next_turn",)),
        CoarseStep("asking", "end", "done", ends=True),
        CoarseStep("acting", "stop", "done", ends=True),
    ),
)


def test_each_step_is_a_step_or_a_stay_and_each_coarse_step_is_taken():
    refinement = refine(SKETCH, TURNS)
    assert refinement.ok
    assert refinement.taken["acting --report--> asking"].word == ("called", "next_turn")


def test_a_step_that_the_coarse_machine_does_not_have_is_shown():
    blind = Coarse("blind", "asking", tuple(step for step in TURNS.steps if step.trigger != "stop"))
    [problem] = refine(SKETCH, blind).problems
    assert problem == (
        "In 'acting' the row «tools --abort--> over: aborted» is no step, but it is asking --end--> done elsewhere. "
        "Shortest run: response: tool_use → called; tools: aborted → abort"
    )


def test_a_coarse_step_that_no_run_takes_is_named():
    dreaming = Coarse("dreaming", "asking", (*TURNS.steps, CoarseStep("done", "again", "asking", by=("next_turn",))))
    assert refine(SKETCH, dreaming).problems == ("No run takes the coarse step done --again--> asking.",)


def test_two_meanings_of_one_row_are_refused():
    double = Coarse("double", "asking", (*TURNS.steps, CoarseStep("asking", "act_too", "acting", by=("called",))))
    assert any("would be two steps" in problem for problem in refine(SKETCH, double).problems)


def test_the_phase_follows_the_rows_of_a_run():
    phase, seen = AGENT_PHASES.initial, []
    for key in [
        ("preprocess", "context_ready"),
        ("calling_model", "tools_requested"),
        ("executing_tools", "next_turn"),
        ("preprocess", "context_ready"),
        ("calling_model", "response_ended"),
        ("recovering", "complete"),
    ]:
        phase = AGENT_PHASES.follow(phase, AGENT_LOOP.row(*key))
        seen.append(phase)
    assert seen == [
        Phase.IDLE,
        Phase.AWAITING_TOOL_RESULTS,
        Phase.CONTINUING,
        Phase.CONTINUING,
        Phase.CONTINUING,
        Phase.IDLE,
    ]


def test_a_row_out_of_phase_is_an_error():
    with pytest.raises(
        ValueError, match=r"In 'idle' the row .* is no step, but it is awaiting_tool_results --results-->"
    ):
        AGENT_PHASES.follow(Phase.IDLE, AGENT_LOOP.row("executing_tools", "next_turn"))
