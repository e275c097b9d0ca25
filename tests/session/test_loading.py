"""Histories from outside: read, mended where a crash left them broken, or refused in a whole sentence."""

import json
from typing import Any, get_args, get_type_hints

import pytest
from anthropic.types import (
    Message as SdkMessage,
)
from anthropic.types import (
    RedactedThinkingBlockParam,
    TextBlockParam,
    ThinkingBlockParam,
    ToolResultBlockParam,
    ToolUseBlockParam,
)
from hypothesis import given
from hypothesis import strategies as st

from fsm_agent.session.history import History, HistoryError
from fsm_agent.session.loading import KNOWN_KEYS
from fsm_agent.session.repair import BEGINNING_LOST, OUTCOME_UNKNOWN, repaired
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


def loaded(*messages):
    history = History.load(list(messages))
    assert violations(history.messages) == []
    return history


def unknown(call_id):
    return result(call_id, OUTCOME_UNKNOWN, is_error=True)


# ---- what is accepted as it is


def test_a_prompt_is_a_history_of_one_message():
    assert History.load("Hello").messages == [user("Hello")]


@given(histories())
def test_a_valid_history_is_loaded_without_a_repair_and_sends_the_same_bytes(messages):
    before = History(messages)
    after = History.load(before.messages, paused=True)
    assert after.repairs == []
    for model in (None, *MODELS):
        assert after.encode(model) == before.encode(model)


@given(histories())
def test_the_history_saved_as_json_sends_the_same_request(messages):
    before = History(messages)
    after = History.load(json.loads(json.dumps(before.messages)))
    assert after.encode() == before.encode()


def test_what_was_given_may_be_changed_afterwards():
    given_messages = [user("go"), assistant(text("yes"))]
    history = History.load(given_messages)
    given_messages[1]["content"][0]["text"] = "no"
    assert history.messages[1] == assistant(text("yes"))


def test_the_models_of_an_earlier_run_are_remembered():
    history = History.load([user("go"), assistant("x", model="old"), user("on"), assistant("y")], model="new")
    assert [entry.model for entry in history] == [None, "old", None, "new"]


def test_a_reply_of_the_sdk_is_read_as_it_is():
    reply = SdkMessage.model_validate(
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "claude-sonnet-5-5",
            "content": [{"type": "text", "text": "hi"}, {**call("a"), "caller": None}],
            "stop_reason": "tool_use",
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }
    )
    for message in (reply, {"role": "assistant", "content": reply.content}):
        history = loaded(user("go"), message, user(result("a")))
        assert history.messages[1] == assistant(text("hi"), call("a"))
    assert loaded(user("go"), reply, user(result("a")))[1].model == "claude-sonnet-5-5"


def test_a_paused_reply_is_kept_only_where_it_is_sent_next():
    messages = [user("go"), assistant(text("I search."), server_use("srvtoolu_1"))]
    assert History.load(messages, paused=True).messages == messages
    assert History.load(messages).messages == [user("go"), assistant(text("I search."))]


# ---- what is mended

MENDED: dict[str, Any] = {
    "a call without a result, at the end": (
        [user("go"), assistant(call("a"), call("b"))],
        [user("go"), assistant(call("a"), call("b")), user(unknown("a"), unknown("b"))],
    ),
    "a call without a result, then a prompt": (
        [user("go"), assistant(call("a")), user("hello?")],
        [user("go"), assistant(call("a")), user(unknown("a"), text("hello?"))],
    ),
    "one result of two": (
        [user("go"), assistant(call("a"), call("b")), user(result("b"))],
        [user("go"), assistant(call("a"), call("b")), user(unknown("a"), result("b"))],
    ),
    "a call without a result, then a reply": (
        [user("go"), assistant(call("a")), assistant("done")],
        [user("go"), assistant(call("a"), text("done")), user(unknown("a"))],
    ),
    "results in another order": (
        [user("go"), assistant(call("a"), call("b")), user(result("b", "2"), result("a", "1"))],
        [user("go"), assistant(call("a"), call("b")), user(result("a", "1"), result("b", "2"))],
    ),
    "text before the result": (
        [user("go"), assistant(call("a")), user(text("see"), result("a"))],
        [user("go"), assistant(call("a")), user(result("a"), text("see"))],
    ),
    "results over two messages": (
        [user("go"), assistant(call("a"), call("b")), user(result("a")), user(result("b"), text("and"))],
        [user("go"), assistant(call("a"), call("b")), user(result("a"), result("b")), user(text("and"))],
    ),
    "one message for each block": (
        [user("go"), assistant(text("x")), assistant(call("a")), assistant(call("b")), user(result("a"), result("b"))],
        [user("go"), assistant(text("x")), assistant(call("a"), call("b")), user(result("a"), result("b"))],
    ),
    "a result without a call": (
        [user("go"), user(result("z"), text("hi")), assistant("x"), user(result("y"))],
        [user("go"), user(text("hi")), assistant("x")],
    ),
    "a second result": (
        [user("go"), assistant(call("a")), user(result("a", "1"), result("a", "2"))],
        [user("go"), assistant(call("a")), user(result("a", "1"))],
    ),
    "an id twice": (
        [user("go"), assistant(call("a"), call("a")), user(result("a", "1"), result("a", "2"))],
        [user("go"), assistant(call("a"), call("a_2")), user(result("a", "1"), result("a_2", "2"))],
    ),
    "an id of an earlier turn": (
        [user("go"), *(assistant(call("a")), user(result("a"))) * 2],
        [user("go"), assistant(call("a")), user(result("a")), assistant(call("a_2")), user(result("a_2"))],
    ),
    "an id that is not allowed": (
        [user("go"), assistant(call("call:1")), user(result("call:1"))],
        [user("go"), assistant(call("call_1")), user(result("call_1"))],
    ),
    "empty messages": (
        [user("go"), assistant(), user(" "), assistant(text("")), user("on")],
        [user("go"), user("on")],
    ),
    "thinking without a signature": (
        [user("go"), assistant({"type": "thinking", "thinking": "hm"}, text("yes")), user("on")],
        [user("go"), assistant(text("yes")), user("on")],
    ),
    "nothing but unsigned thinking": (
        [user("go"), assistant(thinking(signature="")), user("on")],
        [user("go"), user("on")],
    ),
    "the assistant first": (
        [assistant("hello"), user("go")],
        [user(BEGINNING_LOST), assistant("hello"), user("go")],
    ),
    "a call of the API's tool alone": (
        [user("go"), assistant(server_use("srvtoolu_1"), text("x")), user("on")],
        [user("go"), assistant(text("x")), user("on")],
    ),
    "a result of the API's tool alone": (
        [user("go"), assistant(server_result("srvtoolu_1"), text("x")), user("on")],
        [user("go"), assistant(text("x")), user("on")],
    ),
    "blocks of the other role": (
        [user(text("go"), call("a")), assistant(text("x"), result("a")), user("on")],
        [user(text("go")), assistant(text("x")), user("on")],
    ),
    "an input as text": (
        [user("go"), assistant({**call("a"), "input": '{"x": 1}'}), user(result("a"))],
        [user("go"), assistant(call("a", x=1)), user(result("a"))],
    ),
    "an input that can not be read": (
        [user("go"), assistant({**call("a"), "input": "{x"}), user(result("a"))],
        [user("go"), assistant(call("a", unreadable_input="{x")), user(result("a"))],
    ),
    "an error with an image": (
        [user("go"), assistant(call("a")), user(result("a", [image()], is_error=True))],
        [user("go"), assistant(call("a")), user(result("a", [image()]))],
    ),
    "keys that the API does not take": (
        [{**user("go"), "id": "msg_1"}, assistant({**call("a"), "index": 0}), user(result("a"))],
        [user("go"), assistant(call("a")), user(result("a"))],
    ),
}


@pytest.mark.parametrize(("given_messages", "expected"), MENDED.values(), ids=MENDED)
def test_a_broken_history_is_mended_and_says_so(given_messages, expected):
    history = loaded(*given_messages)
    assert history.messages == expected
    assert history.repairs
    assert all(note.startswith("messages[") and note.endswith(".") for note in history.repairs)
    assert History.load(history.messages).repairs == []


def test_lone_surrogates_are_replaced():
    assert loaded(user("a\ud800")).messages == [user("a\ufffd")]


@given(histories(), st.data())
def test_whatever_is_lost_of_a_history_the_rest_is_mended(messages, data):
    """A crash, a bad line, a merge of two writers: messages and blocks are missing, doubled or in another place."""
    damaged = list(messages)
    for _ in range(data.draw(st.integers(1, 4))):
        if not damaged:
            break
        place = data.draw(st.integers(0, len(damaged) - 1))
        kind = data.draw(st.sampled_from(["drop", "double", "swap", "block", "move", "role"]))
        if kind == "drop":
            del damaged[place]
        elif kind == "double":
            damaged.insert(place, damaged[place])
        elif kind == "swap":
            damaged[place - 1], damaged[place] = damaged[place], damaged[place - 1]
        elif kind == "move":
            damaged.insert(data.draw(st.integers(0, len(damaged) - 1)), damaged.pop(place))
        elif isinstance(damaged[place]["content"], list) and damaged[place]["content"]:
            blocks = list(damaged[place]["content"])
            if kind == "block":
                del blocks[data.draw(st.integers(0, len(blocks) - 1))]
                damaged[place] = {**damaged[place], "content": blocks}
            else:
                damaged[place] = {"role": data.draw(st.sampled_from(["user", "assistant"])), "content": blocks[::-1]}
    mended, notes = repaired(damaged)
    assert violations(mended) == []
    assert bool(notes) == (mended != damaged)
    if mended and mended[-1]["role"] == "user":
        assert refusal(mended) is None
    assert repaired(mended) == (mended, [])
    finished, _ = repaired(damaged, paused=False)
    assert violations([*finished, user("next")]) == []


@given(histories())
def test_a_valid_history_is_left_alone(messages):
    mended, notes = repaired(messages)
    assert notes == []
    assert all(new is old for new, old in zip(mended, messages, strict=True))


# ---- what is refused

REFUSED: dict[str, Any] = {
    "a number": (3, "it is of type int. Give a list of messages, or a prompt as a string."),
    "one message": ({"role": "user", "content": "x"}, "it is of type dict. Give a list"),
    "a string in the list": (["x"], r"messages\[0\] is of type str. A message is a dict with `role` and `content`."),
    "no role": ([{"content": "x"}], r"messages\[0\] has no role. Its role must be `user` or `assistant`."),
    "a role of another API": (
        [user("go"), {"role": "tool", "content": "x"}],
        r"messages\[1\] has the role 'tool'. Give the result as a `tool_result` block in a message of role `user`.",
    ),
    "no content": ([{"role": "user"}], r"messages\[0\] has no content. The content is a string or a list"),
    "content that is a number": ([{"role": "user", "content": 3}], r"messages\[0\] has content of type int."),
    "a string as a block": ([{"role": "user", "content": ["x"]}], r"messages\[0\].content\[0\] is of type str."),
    "a block without a type": ([{"role": "user", "content": [{}]}], r"messages\[0\].content\[0\] has no `type`."),
    "a text without text": ([user({"type": "text"})], "is a `text` block without a proper `text`"),
    "a call without an id": (
        [assistant({"type": "tool_use", "name": "x"})],
        "is a `tool_use` block without a proper `id`",
    ),
    "a result of no call": ([user({"type": "tool_result"})], "without a proper `tool_use_id`"),
    "a result that is a number": ([user(result("a", 3))], "is a `tool_result` whose content is of type int"),
    "an object": (
        [user(text("x"), {"type": "text", "text": object()})],
        r"messages\[0\] holds something else than JSON",
    ),
    "a blank prompt": (" \n", "The prompt is blank; write what the model should do."),
}


@pytest.mark.parametrize(("given_history", "message"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_history_is_refused_with_its_place(given_history, message):
    with pytest.raises(HistoryError, match=message):
        History.load(given_history)


def test_a_history_nested_too_deeply_is_refused():
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(HistoryError, match="nested too deeply"):
        History.load([user({"type": "tool_result", "tool_use_id": "a", "content": deep})])


@pytest.mark.parametrize(
    "params",
    [TextBlockParam, ThinkingBlockParam, RedactedThinkingBlockParam, ToolUseBlockParam, ToolResultBlockParam],
)
def test_the_known_keys_are_those_of_the_sdk(params):
    hints = get_type_hints(params)
    (kind,) = get_args(hints["type"])
    assert KNOWN_KEYS[kind] == set(hints)
