"""Script items become wire events with the shapes of the real API."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsm_agent.testing import Fault, Reply, Stream, count_events, text, thinking, tool_use, with_fault
from fsm_agent.testing.answers import answer_actions
from fsm_agent.testing.events import GARBAGE, Answer, Chunking, Ending, Pause, fold_message

QUIET = Chunking(text=None, json=None, pings=False)


def played(item, chunking=QUIET) -> list[Any]:
    answer = Answer("msg_1", "req_1", "claude-sonnet-5-5", new_tool_id=lambda: "toolu_new", sign=lambda t: f"sig({t})")
    return list(answer_actions(item, answer, chunking))


def deltas(actions):
    return [action["delta"] for action in actions if action["type"] == "content_block_delta"]


def test_a_text_reply_has_the_events_of_the_api():
    start, *block, delta, stop = played(Reply("hi"))
    assert start["message"]["model"] == "claude-sonnet-5-5"
    assert start["message"]["content"] == []
    assert start["message"]["stop_reason"] is None
    assert block == [
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hi"}},
        {"type": "content_block_stop", "index": 0},
    ]
    assert delta["delta"] == {"stop_reason": "end_turn", "stop_sequence": None, "stop_details": None}
    assert stop == {"type": "message_stop"}


def test_a_tool_call_streams_its_input_as_json_and_gets_an_id():
    actions = played(Reply(tool_use("read", {"path": "a"})))
    assert actions[1]["content_block"] == {"type": "tool_use", "id": "toolu_new", "name": "read", "input": {}}
    assert [delta["partial_json"] for delta in deltas(actions)] == ["", '{"path":"a"}']
    assert actions[-2]["delta"]["stop_reason"] == "tool_use"


def test_a_tool_call_without_input_streams_nothing_but_the_empty_piece():
    assert [delta["partial_json"] for delta in deltas(played(Reply(tool_use("now"))))] == [""]


def test_thinking_is_signed_for_the_model_unless_the_script_signs_it():
    actions = played(Reply(thinking("hm"), thinking("so", signature="SIG"), text("a")))
    signatures = [delta["signature"] for delta in deltas(actions) if delta["type"] == "signature_delta"]
    assert signatures == ["sig(hm)", "SIG"]


def test_a_block_that_is_not_streamed_comes_whole_in_its_start():
    hidden = {"type": "redacted_thinking", "data": "xyz"}
    actions = played(Reply(hidden, "a"))
    assert actions[1]["content_block"] == hidden
    assert actions[2] == {"type": "content_block_stop", "index": 0}


def test_a_ping_follows_the_start_of_the_first_block():
    kinds = [action["type"] for action in played(Reply("a", "b"), Chunking())]
    assert kinds[:3] == ["message_start", "content_block_start", "ping"]
    assert kinds.count("ping") == 1


def test_usage_of_the_script_wins_over_what_is_counted():
    actions = played(Reply("hi", usage={"input_tokens": 7, "output_tokens": 3, "server_tool_use": {"n": 1}}))
    assert actions[0]["message"]["usage"]["input_tokens"] == 7
    assert actions[-2]["usage"]["output_tokens"] == 3
    assert actions[-2]["usage"]["input_tokens"] == 7
    assert actions[-2]["usage"]["server_tool_use"] == {"n": 1}


blocks = st.one_of(
    st.builds(text, st.text(min_size=1)),
    st.builds(thinking, st.text()),
    st.builds(tool_use, st.just("t"), st.dictionaries(st.text(), st.text(), max_size=3)),
)


@given(st.lists(blocks, max_size=4), st.integers(1, 5), st.integers(1, 5))
def test_the_events_add_up_to_the_blocks_however_they_are_cut(made, text_size, json_size):
    message = fold_message(played(Reply(*made), Chunking(text=text_size, json=json_size)))
    for block, sent in zip(made, message["content"], strict=True):
        kept = {key: value for key, value in block.items() if value is not None}
        assert {key: sent[key] for key in kept} == kept


# ---- steps of a Stream


def test_steps_open_and_close_blocks_as_the_api_does():
    steps: list[Any] = [
        "message_start",
        {"thinking_delta": "hm"},
        {"signature_delta": None},
        {"text": "par", "repeat": 2},
        {"tool_use_open": ["t1", "write"]},
        {"partial_json": '{"a'},
        {"message_delta": "max_tokens"},
        "message_stop",
    ]
    actions = played(Stream(steps))
    kinds = [(action["type"], action.get("index")) for action in actions]
    assert kinds == [
        ("message_start", None),
        ("content_block_start", 0),
        ("content_block_delta", 0),
        ("content_block_delta", 0),
        ("content_block_stop", 0),
        ("content_block_start", 1),
        ("content_block_delta", 1),
        ("content_block_delta", 1),
        ("content_block_stop", 1),
        ("content_block_start", 2),
        ("content_block_delta", 2),
        ("content_block_stop", 2),
        ("message_delta", None),
        ("message_stop", None),
    ]
    assert actions[3]["delta"]["signature"] == "sig(hm)"
    assert actions[-2]["delta"]["stop_reason"] == "max_tokens"


def test_a_block_among_the_steps_stands_for_its_start_deltas_and_stop():
    actions = played(Stream(["message_start", tool_use("read", {"a": 1}, id="t1"), {"text": "x"}]))
    assert [action["type"] for action in actions[1:5]] == [
        "content_block_start",
        "content_block_delta",
        "content_block_delta",
        "content_block_stop",
    ]
    assert actions[5]["index"] == 1


def test_wire_events_unknown_events_and_bytes_pass_as_they_are():
    ping = {"type": "ping"}
    odd = {"type": "something_new", "x": 1}
    assert played(Stream([ping, {"event": odd}, b"raw"])) == [ping, odd, b"raw"]


def test_words_for_endings_pauses_and_garbage():
    steps: list[Any] = [
        {"sleep": 2},
        "garbage",
        {"error": "overloaded_error"},
        {"wait": "abort"},
        "eof",
        "cut",
        "reset",
    ]
    pause, garbage, error, *endings = played(Stream(steps))
    assert pause == Pause(2.0)
    assert garbage == GARBAGE
    assert error["error"] == {"details": None, "type": "overloaded_error", "message": "Overloaded"}
    assert endings == [Ending.SILENCE, Ending.EOF, Ending.CUT, Ending.RESET]


@pytest.mark.parametrize(
    ("step", "sentence"),
    [
        ("mesage_start", "'mesage_start' is no step of a Stream; the words are message_start"),
        ({"txt": "a"}, "is no step of a Stream; an object has one of the keys text, thinking_delta"),
        ({"partial_json": "{"}, "needs an open tool_use; put a tool_use_open step before it"),
    ],
)
def test_a_wrong_step_is_told_what_to_write(step, sentence):
    with pytest.raises(ValueError, match=sentence):
        played(Stream([step]))


# ---- faults


@pytest.mark.parametrize("kind", ["eof", "cut", "reset", "silence"])
@pytest.mark.parametrize("at", range(6))
def test_a_fault_replaces_one_event_and_ends_the_answer(kind, at):
    whole = played(Reply("hi"))
    assert played(with_fault(Reply("hi"), Fault(at, kind))) == [*whole[:at], Ending(kind)]


@pytest.mark.parametrize(("kind", "event"), [("error", "error"), ("garbage", None)])
def test_an_error_event_or_garbage_takes_the_place_of_the_event(kind, event):
    *before, fault, ending = played(Reply("hi", fault=Fault(2, kind)))
    assert len(before) == 2
    assert ending is Ending.EOF
    assert fault == GARBAGE if event is None else fault["type"] == event


def test_a_fault_behind_the_last_event_changes_nothing():
    assert played(Reply("hi", fault=Fault(6, "reset"))) == played(Reply("hi"))


def test_events_are_counted_for_drivers_that_try_each():
    assert count_events(Reply("hi"), QUIET) == 6
    assert count_events(Stream(["message_start", {"sleep": 1}, b"x", "eof"]), QUIET) == 2


def test_a_delay_comes_before_each_event():
    actions = played(Reply("hi"), Chunking(pings=False, delay=0.5))
    assert actions[::2] == [Pause(0.5)] * 6
