"""Which request gets which item of a script."""

from typing import Any, cast

import pytest

from fsm_agent.context.compaction import INSTRUCTION
from fsm_agent.testing import ApiError, RawResponse, Repeat, Reply, Stream, When, request_kind, tool_use
from fsm_agent.testing.cursor import Cursor


def served(script, *requests):
    """The items that requests of (kind, size) get."""
    cursor = Cursor(script)
    return [cursor.take({"model": "m"}, kind, size) for kind, size in requests]


TURN, SUMMARY = ("turn", 10), ("summary", 10)


def test_items_are_served_in_order_and_then_there_is_none():
    first, second = Reply("a"), Reply("b")
    assert served([first, second], TURN, TURN, TURN) == [first, second, None]


def test_repeat_serves_an_item_so_often_or_for_ever():
    item, last = Reply("a"), Reply("b")
    assert served([Repeat(item, 2), last], *[TURN] * 4) == [item, item, last, None]
    assert served([Repeat(item, "always"), last], *[TURN] * 4) == [item] * 4


def test_when_keeps_an_item_for_its_kind_of_request():
    summary, turn = Reply("s", when="summary"), Reply("t")
    assert served([summary, turn], TURN, SUMMARY) == [turn, summary]
    assert served([summary], TURN) == [None]


def test_when_may_ask_for_model_size_and_anything_else():
    assert served([Reply("a", when=When(model="x"))], TURN) == [None]
    large = Reply("a", when=When(larger_than=50))
    assert served([large], TURN, ("turn", 51)) == [None, large]
    half = Reply("a", when=When(larger_than_share=0.5))
    assert served([Repeat(half, 3)], ("turn", 100), ("turn", 50), ("turn", 51)) == [half, None, half]
    tested = Reply("a", when=lambda body: body["model"] == "m")
    assert served([tested], TURN) == [tested]


def test_a_function_is_a_script_too():
    assert served(lambda body: Reply(body["model"]), TURN)[0] == Reply("m")


def test_what_was_not_served_is_told():
    cursor = Cursor([Repeat(Reply("a"), 3), Repeat(Reply("b"), "always"), ApiError(500, "api_error")])
    cursor.take({}, "turn", 0)
    assert cursor.missing() == ["2 x Reply(text 'a', stop='end_turn')", "1 x ApiError(500, 'api_error')"]
    assert "Reply(text 'b'" in cursor.describe()


def test_a_reply_that_calls_a_tool_stops_for_it():
    assert Reply(tool_use("t")).stop_reason == "tool_use"
    assert Reply(tool_use("t"), stop="max_tokens").stop_reason == "max_tokens"
    assert Reply("a").stop_reason == "end_turn"


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: ApiError(200, "x"), "an error has a status from 400 to 599"),
        (lambda: Repeat(Reply("a"), 0), "give a number from 1"),
        (lambda: Reply("a", when=cast(Any, "summry")), "is no request kind"),
        (lambda: Reply({"text": "a"}), "has no type"),
    ],
)
def test_a_wrong_item_is_refused_with_a_sentence(make, sentence):
    with pytest.raises((ValueError, TypeError), match=sentence):
        make()


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"system": "Write a summary."}, "summary"),
        ({"system": [{"type": "text", "text": "You summarize conversations."}]}, "summary"),
        ({"tools": [{"name": "t"}], "system": "Write a summary."}, "turn"),
        ({"tools": [{"name": "t"}], "tool_choice": {"type": "none"}, "system": "Write a summary."}, "summary"),
        ({"tools": [{"name": "t"}], "messages": [{"role": "user", "content": INSTRUCTION}]}, "summary"),
        ({"tools": [{"name": "t"}], "messages": [{"role": "user", "content": "<summary>All done.</summary>"}]}, "turn"),
        ({}, "turn"),
    ],
)
def test_the_kind_of_a_request_is_read_from_its_words(fields, kind):
    assert request_kind({"messages": [{"role": "user", "content": "hi"}], **fields}) == kind


def test_raw_responses_know_an_event_stream():
    assert RawResponse(headers={"Content-Type": "text/event-stream"}).is_event_stream
    assert not RawResponse().is_event_stream
    assert Stream([]).steps == ()
