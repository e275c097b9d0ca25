"""Each invariant, kept and broken; and the incremental check against the full one."""

import itertools
from typing import Any

import pytest
from hypothesis import given

from fsm_agent.session.history import History
from fsm_agent.session.message import Message
from fsm_agent.session.validator import HistoryValidator, InvariantError, _Check, violations
from tests.session.histories import (
    MODELS,
    assistant,
    call,
    histories,
    image,
    result,
    server_result,
    server_use,
    text,
    thinking,
    user,
)
from tests.session.noting import noting

PROMPT = user("go")
TWO_CALLS = assistant(call("a"), call("b"))


def broken(*messages, model=None):
    return {violation.invariant for violation in violations(list(messages), model)}


VALID: dict[str, list[Any]] = {
    "a prompt": [PROMPT],
    "a call and its result": [PROMPT, assistant(call("a")), user(result("a"))],
    "text behind the results": [PROMPT, TWO_CALLS, user(result("a"), result("b"), text("and"))],
    "messages of one role in a row": [PROMPT, user("now"), assistant("one"), assistant("two")],
    "a result without content": [PROMPT, assistant(call("a")), user({"type": "tool_result", "tool_use_id": "a"})],
    "a paused reply at the end": [PROMPT, assistant(server_use("srvtoolu_1"))],
    "a paused reply that goes on": [
        PROMPT,
        assistant(server_use("srvtoolu_1")),
        assistant(server_result("srvtoolu_1")),
    ],
    "a tool of the API that waits for ours": [
        PROMPT,
        assistant(server_use("srvtoolu_1"), call("a")),
        user(result("a")),
        assistant(call("b")),
        user(result("b")),
        assistant(server_result("srvtoolu_1"), text("done")),
        user("next"),
    ],
    "thinking with an empty text": [PROMPT, assistant(thinking(""), text("yes"))],
    "an empty history": [],
}

BROKEN: dict[str, dict[str, list[Any]]] = {
    "I1": {
        "no result at the end": [PROMPT, assistant(call("a"))],
        "no result": [PROMPT, assistant(call("a")), user("hi")],
        "one result of two": [PROMPT, TWO_CALLS, user(result("a"))],
        "a result too many": [PROMPT, assistant(call("a")), user(result("a"), result("b"))],
        "two results for one call": [PROMPT, assistant(call("a")), user(result("a"), result("a"))],
        "a second result later": [PROMPT, assistant(call("a")), user(result("a")), assistant("x"), user(result("a"))],
        "a result without a call": [PROMPT, user(result("a"))],
        "text before the result": [PROMPT, assistant(call("a")), user(text("hi"), result("a"))],
        "a message between": [PROMPT, assistant(call("a")), assistant("hm"), user(result("a"))],
        "results over two messages": [PROMPT, TWO_CALLS, user(result("a")), user(result("b"))],
        "a result of the assistant": [PROMPT, assistant(call("a"), result("a")), user(result("a"))],
        "a call of the user": [user(call("a"))],
        "a tool of the API in a user message": [user(text("go"), server_use("srvtoolu_1"))],
        "an image of the assistant": [PROMPT, assistant(text("x"), image())],
        "a result of the API's tool alone": [PROMPT, assistant(server_result("srvtoolu_1"), text("x"))],
        "a call of the API's tool alone": [
            PROMPT,
            assistant(server_use("srvtoolu_1"), text("x")),
            user("a"),
            assistant("b"),
        ],
    },
    "I2": {
        "an id twice in a message": [PROMPT, assistant(call("a"), call("a")), user(result("a"), result("a"))],
        "an id twice in the history": [
            PROMPT,
            *(assistant(call("a")), user(result("a"))) * 2,
        ],
        "an id with other characters": [PROMPT, assistant(call("a.b")), user(result("a.b"))],
    },
    "I3": {
        "an empty text": [user("")],
        "a blank text": [user(" \n")],
        "a blank block beside others": [PROMPT, assistant(text("\n"), text("x"))],
        "a blank block in a result": [PROMPT, assistant(call("a")), user(result("a", [text("")]))],
        "no block": [PROMPT, assistant()],
        "no content": [{"role": "user"}],
        "an unknown role": [PROMPT, {"role": "tool", "content": "x"}],
        "the assistant first": [assistant("hello")],
    },
    "I4": {
        "no signature": [PROMPT, assistant({"type": "thinking", "thinking": "hm"}, text("x"))],
        "an empty signature": [PROMPT, assistant(thinking(signature=""), text("x"))],
        "redacted thinking without data": [PROMPT, assistant({"type": "redacted_thinking", "data": ""}, text("x"))],
        "nothing but thinking": [PROMPT, assistant(thinking())],
        "thinking at the end": [PROMPT, assistant(text("x"), thinking())],
        "thinking of the user": [user(thinking(), text("x"))],
    },
    "I5": {
        "a lone surrogate": [user("a\ud800b")],
        "a number that JSON lacks": [PROMPT, assistant(call("a", x=float("nan"))), user(result("a"))],
        "an object": [PROMPT, assistant(call("a", x={1, 2})), user(result("a"))],
        "an input that is a list": [PROMPT, assistant({**call("a"), "input": []}), user(result("a"))],
    },
}


@pytest.mark.parametrize("messages", VALID.values(), ids=VALID)
def test_a_valid_history_has_no_violation(messages):
    assert violations(messages) == []


@pytest.mark.parametrize(
    ("invariant", "messages"),
    [pytest.param(name, case, id=f"{name} {words}") for name, cases in BROKEN.items() for words, case in cases.items()],
)
def test_a_broken_history_is_told_by_its_invariant(invariant, messages):
    assert broken(*messages) == {invariant}


def test_results_are_valid_in_the_order_of_the_calls_and_in_no_other():
    names = ["a", "b", "c", "d"]
    valid = [
        order
        for order in itertools.permutations(names)
        if not broken(PROMPT, assistant(*map(call, names)), user(*map(result, order)))
    ]
    assert valid == [tuple(names)]


def test_thinking_goes_only_to_the_model_that_made_it():
    messages = [PROMPT, assistant(thinking(), text("x"), model=MODELS[0])]
    assert broken(*messages, model=MODELS[0]) == set()
    assert broken(*messages, model=MODELS[1]) == {"I4"}


def test_a_violation_names_the_message():
    (violation,) = violations([PROMPT, assistant("x"), user(result("z"))])
    assert str(violation) == "I1 in messages[2]: the results are for [z], the calls before are []"


@given(histories())
def test_the_incremental_check_says_what_the_full_one_says(messages):
    validator, history = HistoryValidator(), History()
    for count, message in enumerate(messages, 1):
        history.append(message)
        assert validator.check(history) == violations(messages[:count])


@given(histories(ends="user"))
def test_what_another_model_is_sent_is_valid_too(messages):
    history = History(messages)
    for model in (*MODELS, "another"):
        assert HistoryValidator().check(history, model) == []


def test_a_message_is_checked_once(monkeypatch):
    seen: list[Message] = []
    monkeypatch.setattr(_Check, "feed", noting(seen, _Check.feed))
    validator, history = HistoryValidator(), History.load("go")
    for number in range(50):
        history.append(assistant(call(f"c{number}"), model=MODELS[0]))
        history.append(user(result(f"c{number}")))
        assert validator.check(history, MODELS[0]) == []
    assert len(seen) == 101


def test_an_edited_history_is_checked_again():
    validator, history = HistoryValidator(), History([PROMPT, assistant(call("a")), user(result("a"))])
    assert validator.check(history) == []
    history.replace(1, 2, [])
    assert [violation.invariant for violation in validator.check(history)] == ["I1"]


def test_require_raises_an_assertion_error_that_tells_all():
    history = History([Message({"role": "user", "content": [result("a"), image()]})])
    with pytest.raises(InvariantError, match=r"^The history breaks I1 in messages\[0\]: the results are for \[a\]"):
        HistoryValidator().require(history)
