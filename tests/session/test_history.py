"""A history: encoded once, joined for each request, edited without a copy."""

import copy
import json
import pickle
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsm_agent.session.history import History
from fsm_agent.session.message import Message, encoded
from fsm_agent.session.validator import violations
from tests.session.histories import (
    MODELS,
    assistant,
    call,
    histories,
    image,
    refusal,
    result,
    server_result,
    server_use,
    text,
    thinking,
    user,
)
from tests.session.noting import noting


@pytest.fixture
def encodings(monkeypatch):
    """The messages that were encoded, in order."""
    made: list[Message] = []
    monkeypatch.setattr("fsm_agent.session.history.encoded", noting(made, encoded))
    return made


def decoded(history, model=None):
    return json.loads(history.encode(model))


@given(histories())
def test_the_bytes_are_the_messages(messages):
    history = History(messages)
    assert decoded(history) == messages
    assert history.messages == messages
    assert history.encode() == json.dumps(messages, ensure_ascii=False, separators=(",", ":")).encode()


@given(histories(), st.sampled_from([None, *MODELS]))
def test_each_request_begins_with_the_bytes_of_the_one_before(messages, model):
    history, before = History(), b"["
    for message in messages:
        history.append(message)
        now = history.encode(model)
        assert now.startswith(before)
        before = now[:-1]


def test_a_message_is_encoded_once_however_often_it_is_sent(encodings):
    history = History.load("go")
    for number in range(100):
        history.append(assistant(thinking(), call(f"c{number}")), model=MODELS[0])
        history.append(user(result(f"c{number}")))
        history.encode(MODELS[0])
    assert len(encodings) == 201


def test_for_another_model_only_messages_with_thinking_are_encoded_again_and_once(encodings):
    history = History([user("go")])
    for number in range(10):
        history.append(assistant(thinking(), call(f"c{number}")), model=MODELS[0])
        history.append(user(result(f"c{number}")))
    encodings.clear()
    for _ in range(3):
        history.encode(MODELS[1])
        history.encode(MODELS[0])
    assert len(encodings) == 10


def test_thinking_is_left_out_for_another_model_and_comes_back_for_its_own():
    history = History([user("go"), assistant(thinking(), call("a"), model=MODELS[0]), user(result("a"))])
    own = history.encode(MODELS[0])
    assert decoded(history, MODELS[1])[1]["content"] == [call("a")]
    assert history.encode(MODELS[0]) == own
    assert decoded(history)[1]["content"][0] == thinking()


def test_a_message_that_is_nothing_but_foreign_thinking_is_left_out_for_another_model():
    message = assistant({"type": "redacted_thinking", "data": "x"}, thinking(), model=MODELS[0])
    history = History([user("go"), message, user("on")])
    assert decoded(history, MODELS[1]) == [user("go"), user("on")]


@given(histories(ends="user"))
def test_what_any_model_is_sent_is_accepted_by_the_rules_of_the_api(messages):
    history = History(messages)
    for model in (*MODELS, "another"):
        sent = decoded(history, model)
        assert violations(sent) == []
        assert refusal(sent) is None


@given(histories())
def test_the_estimate_of_tokens_is_a_running_sum(messages):
    history = History()
    for message in messages:
        history.append(message)
    assert history.tokens == sum(entry.tokens for entry in history) == History(messages).tokens
    history.replace(0, 1, [user("new"), user("newer")])
    assert history.tokens == sum(entry.tokens for entry in history)


def test_an_image_counts_the_same_whatever_its_size():
    small, large = (History([user(image(data))]).tokens for data in ("aaaa", "aaaa" * 100_000))
    assert small == large > 1_600


def test_open_calls_are_those_of_the_last_reply_without_a_result():
    history = History([user("go"), assistant(call("a"), call("b"))])
    assert history.open_calls() == ["a", "b"]
    history.append(user(result("a")))
    assert history.open_calls() == ["b"]
    history.append(user("a note"))
    assert history.open_calls() == ["b"]
    assert History().open_calls() == []


def test_append_leaves_out_what_can_not_be_sent():
    history = History.load("go")
    entry = history.append(assistant(thinking(signature=""), text(" "), text("yes"), thinking()))
    assert entry is not None
    assert entry.message == assistant(text("yes"))
    assert history.append(assistant(text("\n"))) is None
    assert history.append(user()) is None
    assert len(history) == 2


def test_a_lone_surrogate_is_replaced_and_a_pair_is_joined():
    history = History()
    history.append(user(text("a\ud800b"), text("\ud83d\ude00")))
    assert decoded(history) == [user(text("a\ufffdb"), text("😀"))] == history.messages


def test_a_number_that_json_lacks_is_told_by_its_name():
    history = History([user("go"), assistant(call("a", x=float("inf")))])
    assert decoded(history)[1]["content"][0]["input"] == {"x": "inf"}


def test_replace_keeps_the_bytes_of_messages_that_stay(encodings):
    history = History([user("one"), user("two"), user("three")])
    encodings.clear()
    gone = history.replace(0, 3, [history[0].message, user("new"), history[2].message])
    assert encodings == [user("new")]
    assert [entry.message["content"] for entry in gone] == ["one", "two", "three"]
    assert [message["content"] for message in decoded(history)] == ["one", "new", "three"]


@given(histories(), st.data())
def test_a_snapshot_is_what_one_comes_back_to(messages, data):
    history = History()
    at = data.draw(st.integers(0, len(messages)))
    for message in messages[:at]:
        history.append(message)
    moment, sent, tokens = history.snapshot(), history.encode(), history.tokens
    for message in messages[at:]:
        history.append(message)
    if data.draw(st.booleans()):
        history.replace(0, len(history), [user("all new")])
    later, later_sent = history.snapshot(), history.encode()
    history.restore(moment)
    assert (history.encode(), history.tokens, len(history)) == (sent, tokens, at)
    history.append(user("another way"))
    history.restore(later)
    assert history.encode() == later_sent


def test_tokens_at_reply_is_the_sum_when_the_last_reply_came():
    history = History.load("go")
    assert history.tokens_at_reply is None
    history.append(assistant(call("a")))
    counted = history.tokens
    history.append(user(result("a")))
    assert history.tokens_at_reply == counted < history.tokens


def test_a_part_shares_its_entries(encodings):
    history = History([user("one"), user("two"), user("three")])
    encodings.clear()
    part = history.part(1)
    part.append(user("four"))
    assert [message["content"] for message in part.messages] == ["two", "three", "four"]
    assert len(history) == 3
    assert encodings == [user("four")]


def test_a_message_is_a_plain_dict_that_remembers_its_model():
    message = Message({"role": "assistant", "content": "x"}, model="m", purpose="p")
    assert json.dumps(message) == '{"role": "assistant", "content": "x"}'
    for again in (copy.copy(message), copy.deepcopy(message), pickle.loads(pickle.dumps(message))):
        assert (again, again.model, again.purpose) == (message, "m", "p")


def test_repair_mends_a_history_in_place_and_says_how():
    history = History([user("go"), assistant(call("a"))])
    assert history.repair() == [
        "messages[1]: the call a (read) had no result; it got one that says that its outcome is unknown."
    ]
    assert violations(history.messages) == []
    assert history.repair() == []


def marked(name):
    return {**text(name), "cache_control": {"type": "ephemeral"}}


@given(histories(), st.sampled_from([None, *MODELS]))
def test_the_open_array_is_what_is_encoded_without_its_last_byte(messages, model):
    history = History(messages)
    assert bytes(history.encoded(model).data) + b"]" == history.encode(model)


def test_cache_marks_are_counted_as_messages_come_and_go():
    history = History([user(marked("a"), text("b"))])
    assert history.encoded().cache_marks == 1
    history.append(user(marked("c"), marked("d")))
    assert history.encoded().cache_marks == 3
    history.drop_cache_marks(2)
    assert history.encoded().cache_marks == history.encode().count(b"cache_control") == 1


_BLOCKS = st.sampled_from(["use 1", "use 2", "result 1", "result 2", "call 0", "text 0"])


@given(turns=st.lists(st.tuples(st.lists(_BLOCKS, min_size=1, max_size=3), st.booleans()), max_size=8))
def test_a_history_that_is_settled_after_each_message_never_holds_a_server_tool_alone(turns):
    history = History.load([user("go")])
    made = {"use": server_use, "result": server_result, "text": lambda _: text("x")}
    ours = count(1)
    for names, pauses in turns:
        kinds = [name.split() for name in names]
        blocks = [
            call(f"toolu_{next(ours)}") if kind == "call" else made[kind](f"srvtoolu_{number}")
            for kind, number in kinds
        ]
        entry = history.append(assistant(*blocks))
        assert entry is not None
        waits = history.settle_server_uses(paused=True)
        assert waits == bool(history.waiting_server_uses())
        if entry.calls:
            history.append(user(*map(result, entry.calls)))
            history.settle_server_uses(paused=False)
        elif not pauses:
            history.append(user("on"))
            history.settle_server_uses(paused=False)
        assert violations(history.messages) == []
