"""Stop reason and content decide together what a reply is."""

from typing import Any, get_args

import pytest
from anthropic.types import StopReason
from anthropic.types.beta import BetaStopReason

from fsm_agent.machine.vocabulary import ResponseOutcome as R
from fsm_agent.model.classify import classify
from fsm_agent.model.faults import EOF, PROTOCOL, STALL, StreamFault
from fsm_agent.model.outcomes import STOP_REASONS, outcome_of, outcome_of_lost
from tests.model.streams import begin, call, end, fed, server_call, server_result, start, stop, text, thinking, whole


def test_every_stop_reason_of_the_sdk_has_its_outcome_and_there_is_no_other():
    assert set(STOP_REASONS) == {*get_args(StopReason), *get_args(BetaStopReason)}


@pytest.mark.parametrize(
    ("reason", "outcome"),
    [
        ("end_turn", R.END_TURN),
        ("stop_sequence", R.END_TURN),
        ("max_tokens", R.MAX_TOKENS),
        ("pause_turn", R.PAUSE_TURN),
        ("compaction", R.PAUSE_TURN),
        ("refusal", R.REFUSAL),
        ("model_context_window_exceeded", R.PROMPT_TOO_LONG),
        ("tool_use", R.MALFORMED_TOOL_USE),
        ("something_new", R.UNKNOWN),
    ],
)
def test_a_text_with_each_stop_reason(reason: str, outcome: R):
    assert outcome_of(fed(whole(text("Hi."), reason=reason))) is outcome


@pytest.mark.parametrize("reason", ["tool_use", "end_turn", "stop_sequence", "pause_turn", "compaction"])
def test_a_call_is_to_be_answered_whatever_normal_reason_ends_it(reason: str):
    assert outcome_of(fed(whole(call("{}"), reason=reason))) is R.TOOL_USE


@pytest.mark.parametrize(
    ("reason", "outcome"),
    [
        ("max_tokens", R.MAX_TOKENS),
        ("refusal", R.REFUSAL),
        ("model_context_window_exceeded", R.PROMPT_TOO_LONG),
        ("something_new", R.UNKNOWN),
    ],
)
def test_a_complete_call_of_a_message_that_did_not_end_well_is_no_tool_use(reason: str, outcome: R):
    assert outcome_of(fed(whole(text("x"), call('{"a":1}', 1), reason=reason))) is outcome


def test_a_call_that_the_output_limit_cut_is_a_truncation_though_its_json_parses():
    events = [start(), *call('{"path": "a.txt"}')[:-1], stop("max_tokens")]
    reply = fed(events)
    assert outcome_of(reply) is R.MAX_TOKENS
    assert reply.tool_calls == []


@pytest.mark.parametrize(
    "blocks",
    [
        [],
        [text("")],
        [text(" \n")],
        [thinking("hm")],
        [server_call(0), server_result(1)],
    ],
)
def test_an_end_without_anything_to_see_is_empty(blocks: list[Any]):
    assert outcome_of(fed(whole(*blocks))) is R.EMPTY


def test_a_file_is_something_to_see():
    upload = [begin(0, {"type": "container_upload", "file_id": "file_1"}), end(0)]
    assert outcome_of(fed(whole(upload))) is R.END_TURN


def test_a_pause_with_nothing_to_send_back_is_empty():
    assert outcome_of(fed(whole(thinking("hm"), reason="pause_turn"))) is R.EMPTY


def test_a_call_with_unreadable_input_is_still_a_tool_use():
    assert outcome_of(fed(whole(call('{"a'), reason="tool_use"))) is R.TOOL_USE


# ---- streams that were lost

LOST = [
    StreamFault(EOF, "end"),
    StreamFault(STALL, "silence"),
    ConnectionResetError("reset"),
    TimeoutError("late"),
]


@pytest.mark.parametrize("fault", LOST, ids=repr)
def test_a_stream_lost_after_a_complete_text_is_cut(fault: Exception):
    assert outcome_of_lost(fed([start(), *text("Hi.")]), classify(fault)) is R.CUT
    half_a_call = [start(), *text("Hi."), *call('{"a', 1)[:2]]
    assert outcome_of_lost(fed(half_a_call), classify(fault)) is R.CUT


@pytest.mark.parametrize("fault", LOST, ids=repr)
@pytest.mark.parametrize(
    "events",
    [
        [],
        [start()],
        [start(), *text("Hel")[:2]],
        [start(), *text(" ")],
        [start(), *thinking("hm")],
        [start(), *text("Hi."), *call("{}", 1)],
    ],
)
def test_a_stream_lost_with_nothing_worth_keeping_is_repeated(fault: Exception, events: list[Any]):
    assert outcome_of_lost(fed(events), classify(fault)) is R.RETRYABLE


@pytest.mark.parametrize(
    ("failure", "outcome"),
    [
        (StreamFault(PROTOCOL, "odd"), R.RETRYABLE),
        ({"type": "error", "error": {"type": "api_error", "message": "x"}}, R.RETRYABLE),
        ({"type": "error", "error": {"type": "overloaded_error", "message": "x"}}, R.OVERLOADED),
        ({"type": "error", "error": {"type": "invalid_request_error", "message": "x"}}, R.FATAL),
    ],
)
def test_an_error_after_a_complete_text_is_what_the_error_is(failure: Any, outcome: R):
    assert outcome_of_lost(fed([start(), *text("Hi.")]), classify(failure)) is outcome
