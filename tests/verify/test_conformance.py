"""A trace of a run is checked against a declaration; a divergence names the first step that no row explains."""

import json
import random

import pytest

from fsm_agent.loop.events import Transition
from fsm_agent.machine import AGENT_LOOP, Ask, Automaton, LoopLimits, Row
from fsm_agent.verify import Divergence, conform, records
from fsm_agent.verify.bounds_given import bounds_of

LIMITS = LoopLimits(max_turns=3)


def random_trace(seed: int) -> list[dict]:
    """The transition events of a run of the real `decide`, with outcomes drawn by chance."""
    chance, automaton = random.Random(seed), Automaton(AGENT_LOOP, bounds_of(AGENT_LOOP, LIMITS))
    control, trace = automaton.initial, list[dict]()
    facts: dict[str, str] = {}
    while not AGENT_LOOP.state(control.state).final:
        decision = automaton.decide(control, facts)
        if isinstance(decision, Ask):
            facts[decision.effect] = chance.choice(AGENT_LOOP.effect(decision.effect).outcomes)
            continue
        row = decision.row
        control = AGENT_LOOP.updated(control, row)
        trace.append({
            "type": "transition", "source": row.source, "trigger": row.trigger, "dest": row.dest,
            "facts": dict(facts), "control": control.as_dict(), "reason": row.reason,
        })  # fmt: skip
        facts = AGENT_LOOP.inherited(row.dest, facts)
    return trace


@pytest.mark.parametrize("seed", range(20))
def test_what_the_machine_does_conforms(seed):
    assert conform(AGENT_LOOP, random_trace(seed), LIMITS) is None


@pytest.mark.parametrize("seed", range(20))
def test_triggers_alone_conform_too(seed):
    assert conform(AGENT_LOOP, [step["trigger"] for step in random_trace(seed)], LIMITS) is None


def test_transition_events_are_a_trace():
    events = [Transition.model_validate(step) for step in random_trace(3)]
    assert conform(AGENT_LOOP, events, LIMITS) is None


@pytest.mark.parametrize("seed", range(20))
def test_a_step_left_out_is_found(seed):
    trace = random_trace(seed)
    at = len(trace) // 2
    divergence = conform(AGENT_LOOP, trace[:at] + trace[at + 1 :], LIMITS)
    if at == len(trace) - 1:
        assert divergence is None
    else:
        assert divergence is not None
        assert divergence.step in (at + 1, at + 2)


TRACE = [
    {"trigger": "context_ready", "facts": {"context": "ready"}},
    {"trigger": "response_ended", "facts": {"response": "retryable"}},
    {
        "trigger": "transport_retry",
        "facts": {"response": "retryable", "backoff": "elapsed"},
        "control": {"transport_retries": 1},
    },
]


def diverges(trace, limits=None, definition=AGENT_LOOP) -> Divergence:
    divergence = conform(definition, trace, limits)
    assert divergence is not None
    return divergence


def changed(step: int, **parts) -> list[dict]:
    return [{**record, **parts} if i == step else record for i, record in enumerate(TRACE)]


def test_the_first_step_that_no_row_explains_is_named_with_the_values_before():
    divergence = diverges(changed(2, trigger="complete"))
    assert (divergence.step, divergence.trigger) == (3, "complete")
    assert [control["turn"] for control in divergence.before] == [1]
    assert str(divergence) == (
        "Step 3, 'complete', does not follow from recovering(turn=1): with response: retryable, backoff: elapsed, "
        "the row «recovering --transport_retry--> calling_model» fires."
    )


def test_a_wrong_count_is_a_divergence():
    divergence = diverges(changed(2, control={"transport_retries": 2}))
    assert divergence.why == "the trace says transport_retries = 2 after it, and by the row it is 1."


def test_a_wrong_destination_is_a_divergence():
    divergence = diverges(changed(2, dest="preprocess"))
    assert divergence.why.startswith(
        "the trace says dest 'preprocess', and the row is «recovering --transport_retry-->"
    )


def test_an_outcome_that_was_not_asked_for_is_a_divergence():
    divergence = diverges(changed(1, facts={"response": "retryable", "hooks": "pass"}))
    assert divergence.step == 2


def test_a_trigger_of_another_state_is_a_divergence():
    assert "the state has the triggers abort" in diverges(["context_ready", "next_turn"]).why


def test_a_step_after_the_end_is_a_divergence():
    assert diverges(["abort", "context_ready"]).why == "the state has the triggers none: it is final."


def test_guards_count_under_the_limits_of_the_run():
    word = ["context_ready", "tools_requested", "next_turn"]
    assert conform(AGENT_LOOP, word, LoopLimits(max_turns=2)) is None
    divergence = diverges(word, LoopLimits(max_turns=1))
    assert divergence.why == "its guards, or the rows above it, do not let it fire there."


def test_another_declaration_than_the_one_that_ran_is_noticed():
    other = AGENT_LOOP.replace_row(
        Row("recovering", "refuse", "terminal", given={"response": "refusal"}, reason="model_error")
    )
    trace = [
        {"trigger": "context_ready"},
        {"trigger": "response_ended", "facts": {"response": "refusal"}},
        {"trigger": "model_fallback"},
        {"trigger": "context_ready"},
        {"trigger": "response_ended", "facts": {"response": "refusal"}},
        {"trigger": "refuse", "reason": "refusal"},
    ]
    assert conform(AGENT_LOOP, trace) is None
    assert diverges(trace, definition=other).step == 6


@pytest.mark.parametrize(
    "line",
    [
        {"type": "transition", "trigger": "block", "facts": {"context": "too_large"}},
        {
            "event": "transition",
            "row": "preprocess --block--> terminal: blocking_limit",
            "facts": {"context": "too_large"},
        },
        {"message": "transition", "level": "debug", "fsm": {"row": "preprocess --block--> terminal: blocking_limit"}},
    ],
    ids=["event of a run", "structlog line", "log record with fields under fsm"],
)
def test_lines_of_json_are_read(line):
    lines = ["", "not json", '{"type": "assistant"}', "[1]", json.dumps(line)]
    [record] = records(lines)
    assert conform(AGENT_LOOP, [record]) is None
    assert diverges([record, record]).step == 2
