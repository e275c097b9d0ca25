"""What a report says about machines that are wrong in one way."""

import json
from typing import Any

import pytest

from fsm_agent.machine import (
    AGENT_LOOP,
    Below,
    Counter,
    Definition,
    DefinitionError,
    EffectSpec,
    Flag,
    FlagSpec,
    HoleError,
    Increment,
    LoopLimits,
    Predicate,
    Reset,
    Row,
    StateSpec,
)
from fsm_agent.verify import Enters, UnprovedError, check, replay
from tests.verify.published_loop import PUBLISHED_LOOP
from tests.verify.sketch import SKETCH, SketchLimits


def test_a_sound_machine_is_ok():
    report = check(SKETCH)
    assert report.ok
    assert {reason: report.witness(reason).word for reason in report.reasons} == {
        "completed": ("replied",),
        "refused": ("refuse",),
        "api_error": ("retry", "waited", "retry", "waited", "give_up"),
        "aborted": ("called", "abort"),
        "turn_limit": ("called", "next_turn", "called", "next_turn", "called", "turn_limit"),
    }
    assert report.require() is report


def test_a_witness_is_a_script_for_whoever_plays_the_effects():
    run = check(SKETCH).witness("api_error")
    assert run.outcomes_of("response") == ("failed", "failed", "failed")
    assert [step.state for step in run.steps] == ["calling", "backoff", "calling", "backoff", "calling"]
    assert run.reason == "api_error"
    assert str(run) == "(response: failed → retry; wait: elapsed → waited) x2; response: failed → give_up"
    assert [control["retries"] for control in replay(SKETCH, check(SKETCH).limits, run.steps)] == [0, 1, 1, 2, 2, 2]


def test_a_hole_is_shown_with_the_shortest_run_that_falls_through():
    report = check(SKETCH.without_row("calling", "give_up"))
    [hole] = report.holes
    assert not report.ok
    assert str(hole) == (
        "In calling with response: failed no row fires. Shortest run: "
        "(response: failed → retry; wait: elapsed → waited) x2; response: failed → nothing fires"
    )
    assert report.max_requests_per_run is None


def test_a_hole_runs_as_a_program():
    report = check(SKETCH.without_row("calling", "give_up"))
    program = report.program(report.holes[0].witness).replace(
        "definition = ...",
        "from tests.verify.sketch import SKETCH\ndefinition = SKETCH.without_row('calling', 'give_up')",
    )
    with pytest.raises(HoleError, match="no row in the state 'calling' for response: failed"):
        exec(program, {})


def test_a_retry_that_forgets_to_count_is_an_endless_run():
    forgetful = SKETCH.replace_row(
        Row("calling", "retry", "backoff", given={"response": "failed"}, when=Below("retries"))
    )
    report = check(forgetful)
    [cycle] = report.cycles
    assert not report.ok
    assert [step.trigger for step in cycle.lasso.loop] == ["waited", "retry"]
    assert [str(dead) for dead in report.dead_rows] == [
        "The row «calling --give_up--> over: api_error» never fires: retry above it takes every case of it."
    ]
    assert "No run ends for the reason 'api_error'." in str(report)
    assert ("backoff", "waited") in report.certificate.left


def test_the_published_loop_is_refused_and_its_cycle_shown():
    report = check(PUBLISHED_LOOP)
    [cycle] = report.cycles
    assert not report.ok
    assert [step.trigger for step in cycle.lasso.loop] == ["response_ended", "stop_hook_blocking", "context_ready"]
    assert ("hooks", "block") in [outcome for step in cycle.lasso.loop for outcome in step.outcomes]
    assert not report.certificate.complete


def test_an_endless_run_is_a_program_that_anyone_can_paste(capsys):
    report = check(PUBLISHED_LOOP)
    exec(report.program(report.cycles[0].lasso), {})
    assert capsys.readouterr().out == "still running: calling_model(turn=1)\n"


def test_a_bound_on_the_stop_hooks_mends_the_published_loop():
    blocking = PUBLISHED_LOOP.row("ending", "stop_hook_blocking")
    mended = PUBLISHED_LOOP.with_changes(
        counters=[Counter("stop_hook_blocks", "max_stop_hook_blocks")],
        replace_rows=[
            Row(
                "ending",
                "stop_hook_blocking",
                "preprocess",
                given={"hooks": "block"},
                when=Below("stop_hook_blocks"),
                update=[*blocking.update, Increment("stop_hook_blocks")],
            )
        ],
        rows=[Row("ending", "stop_hook_limit", "terminal", given={"hooks": "block"}, reason="stop_hook_limit")],
        before="token_budget_continuation",
    )
    report = check(mended)
    assert not report.cycles
    assert report.certificate.complete


def test_a_counter_that_is_raised_beyond_its_limit_is_reported():
    loose = SKETCH.replace_row(
        Row(
            "calling",
            "retry",
            "backoff",
            given={"response": "failed"},
            when=Below("retries", "max_turns"),
            update=Increment("retries"),
        )
    )
    report = check(loose)
    assert not report.contracts[0].holds
    assert "raises the counter 'retries' when it is not below 'max_retries'" in report.contracts[0].problem
    assert report.contracts[0].witness is not None
    assert report.contracts[0].witness.word == ("retry", "waited") * 2 + ("retry",)


def test_a_state_without_a_way_out_is_a_dead_end():
    stuck = SKETCH.with_changes(
        states=[StateSpec("left"), StateSpec("right")],
        replace_rows=[Row("calling", "refuse", "left", given={"response": "refused"})],
        rows=[Row("left", "go_right", "right"), Row("right", "go_left", "left")],
    )
    report = check(stuck)
    assert report.dead_ends == ("left", "right")
    assert [step.trigger for step in report.cycles[0].lasso.loop] in (["go_left", "go_right"], ["go_right", "go_left"])


def test_a_row_that_no_run_comes_to_is_dead():
    report = check(
        SKETCH.with_changes(
            flags=[FlagSpec("never_set")],
            rows=[Row("backoff", "jump", "over", when=Flag("never_set"), reason="completed")],
            before="waited",
        )
    )
    [dead] = report.dead_rows
    assert dead.row.trigger == "jump"
    assert "no run comes to a case that its guards and outcomes fit" in str(dead)


def test_a_row_that_a_limit_switches_off_is_no_fault():
    report = check(SKETCH, SketchLimits(max_retries=0))
    assert report.ok
    assert report.switched_off == {("calling", "retry"): "max_retries", ("backoff", "waited"): "max_retries"}


# ---- bad input


def test_a_typo_in_the_table_is_refused_before_any_check():
    with pytest.raises(DefinitionError, match="unknown outcome 'txet' of the effect 'response'"):
        SKETCH.with_rows(Row("calling", "typo", "over", given={"response": "txet"}, reason="completed"))


def test_a_guard_that_throws_is_a_sentence():
    def careless(control, limits):
        return 10 // (control["retries"] - 1) < 0

    broken = SKETCH.with_rows(
        Row(
            "backoff", "jump", "over", when=Predicate("careless", careless, frozenset(["retries"])), reason="completed"
        ),
        before="waited",
    )
    report = check(broken)
    assert not report.ok
    [problem] = report.problems
    assert problem == (
        "The guard careless raised ZeroDivisionError('integer division or modulo by zero') in "
        "backoff(turn=1, retries=1); a guard is a pure predicate on control."
    )


def test_a_guard_that_returns_no_bool_is_a_sentence():
    def number(control, limits):
        return control["retries"] or False

    broken = SKETCH.with_rows(
        Row("backoff", "jump", "over", when=Predicate("number", number, frozenset(["retries"])), reason="completed"),
        before="waited",
    )
    [problem] = check(broken).problems
    assert (
        problem
        == "The guard number returned 1 in backoff(turn=1, retries=1), which is not a bool; return True or False."
    )


COUNTING = SKETCH.with_changes(
    counters=[Counter("laps", "max_turns")],
    replace_rows=[
        Row("backoff", "waited", "calling", given={"wait": "elapsed"}, update=[Increment("laps"), Reset("retries")]),
    ],
    rows=[
        Row(
            "backoff",
            "underflow",
            "over",
            when=Predicate("negative", lambda control, limits: control["laps"] < 0, frozenset(["laps"])),
            reason="completed",
        )
    ],
    before="waited",
)


def test_a_counter_that_nothing_bounds_is_a_sentence():
    faults = "\n".join(check(COUNTING, state_cap=1_000).faults())
    assert (
        "The row «backoff --waited--> calling» raises the counter 'laps' when it is not below 'max_turns'; guard the "
        "row with Below('laps'), or put a row above it that takes that case."
    ) in faults


def test_a_counter_that_nothing_bounds_is_named_when_the_product_has_no_end():
    [fault] = check(COUNTING, exact=True, state_cap=1_000).faults()
    assert "What multiplies is the number of values of laps (no bound), turn (3), retries (3)." in fault


def test_too_many_configurations_is_a_sentence_that_names_what_multiplies():
    report = check(AGENT_LOOP, exact=True, state_cap=1_000)
    [problem] = report.problems
    assert "has more than 1,000 configurations" in problem
    assert "turn (200), budget_continuations (17), transport_retries (11)" in problem
    assert not report.ok


def test_a_contract_that_names_nothing_is_a_sentence():
    report = check(SKETCH, contracts=[Enters("completed", "replyed"), Enters("complete", "replied")])
    first, second = report.problems
    assert first == (
        "The contract «completed is entered by replyed» names the trigger 'replyed', which the machine 'sketch' does "
        "not have; correct the name, or leave the contract out."
    )
    assert "names the state or terminal reason 'complete', which the machine 'sketch' does not have" in second


def test_a_limit_that_is_missing_is_a_sentence():
    assert check(SKETCH, {"max_turns": 3}).problems == (
        "The machine 'sketch' asks about the limit 'max_retries', which is not given.",
    )


def test_a_limit_that_is_no_number_is_a_sentence():
    limits: dict[str, Any] = {"max_turns": 3, "max_retries": "two"}
    [problem] = check(SKETCH, limits).problems
    assert problem == "The limit 'max_retries' is 'two'; give a whole number, or None for no bound."


# ---- the report


def test_a_failing_assertion_explains_itself():
    report = check(SKETCH.without_row("calling", "give_up"))
    assert repr(report).startswith("Report(sketch, not ok: In calling with response: failed no row fires.")
    with pytest.raises(UnprovedError, match="NOT OK"):
        report.require()


def test_the_json_form_has_the_keys_that_programs_rely_on():
    found = json.loads(json.dumps(check(AGENT_LOOP, LoopLimits(max_turns=5)).as_json()))
    assert {
        "ok", "configurations", "edges", "reasons", "rows", "holes", "dead_rows", "cycles", "certificate", "contracts",
        "max_requests_per_turn", "max_requests_per_run", "seconds",
    } <= set(found)  # fmt: skip
    assert found["ok"] is True
    assert found["reasons"]["refusal"]["reachable"] is True
    assert found["reasons"]["refusal"]["witness"][-1] == {"state": "recovering", "outcomes": [], "trigger": "refuse"}
    assert found["certificate"]["complete"] is True
    assert found["holes"] == found["dead_rows"] == found["cycles"] == []


def test_the_text_names_everything_that_matters():
    text = str(check(SKETCH))
    for words in (
        "sketch: ok",
        "completed",
        "the ranking",
        "The worst case",
        "requests per run",
        "What was not checked",
    ):
        assert words in text or words == "the ranking"


def test_the_worst_case_of_the_sketch():
    report = check(SKETCH)
    assert report.max_requests_per_run == 3 + 3 * 2
    assert report.max_requests_per_turn == 1 + 2
    assert report.requests_per_run is not None
    assert report.requests_per_run.formula == "max_turns * (1 + max_retries)"


def test_a_lasso_in_json_is_a_stem_and_a_loop():
    [cycle] = check(PUBLISHED_LOOP).as_json()["cycles"]
    assert [step["trigger"] for step in cycle["loop"]] == ["response_ended", "stop_hook_blocking", "context_ready"]
    assert cycle["declared_by"] is None


def test_an_extended_machine_is_checked_without_further_ado():
    approving = AGENT_LOOP.with_changes(
        name="with_approval",
        states=[StateSpec("awaiting_approval", inherits=("response",))],
        effects=[EffectSpec("approval", "awaiting_approval", ("granted", "refused"))],
        replace_rows=[
            Row(
                "calling_model", "tools_requested", "awaiting_approval", given={"response": "tool_use"}, do="keep_reply"
            )
        ],
        rows=[
            Row("awaiting_approval", "approve", "executing_tools", given={"approval": "granted"}),
            Row(
                "awaiting_approval",
                "disapprove",
                "terminal",
                given={"approval": "refused"},
                do="refuse_calls",
                reason="not_approved",
            ),
        ],
    )
    report = check(approving)
    assert report.ok, str(report)
    assert report.witness("not_approved").word == ("context_ready", "tools_requested", "disapprove")
    assert "no contracts were given" in " ".join(report.notes)


def test_a_definition_made_by_hand_needs_no_counters():
    answer = Definition(
        name="answer",
        initial="asking",
        states=(StateSpec("asking"), StateSpec("over", final=True)),
        effects=(EffectSpec("response", "asking", ("text", "failed"), requests=1),),
        counters=(),
        flags=(),
        rows=(
            Row("asking", "fail", "over", given={"response": "failed"}, reason="failed"),
            Row("asking", "reply", "over", reason="done"),
        ),
    )
    report = check(answer)
    assert report.ok
    assert report.as_json()["max_requests_per_run"] == report.as_json()["max_moves_per_run"] == 1
