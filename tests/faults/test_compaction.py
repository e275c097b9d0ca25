"""Fault `compact-splits-pair`: no compaction, wherever it cuts, however often, parts a call from its result."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from fsm_agent import AgentMachine, Deps
from fsm_agent.context.compaction import compacted_messages
from fsm_agent.context.cuts import cut_before
from fsm_agent.session.history import History
from fsm_agent.session.message import Message
from fsm_agent.session.validator import violations
from fsm_agent.testing import ApiError, Reply, ScriptedModel
from tests.faults.loader import MODEL
from tests.session.histories import assistant, call, histories, result, text, user

OVERFLOW = ApiError(400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum", when="turn")
SUMMARY = Reply("SUM", when="summary")


def awkward() -> list[Message]:
    """Parallel calls, a message that mixes results with text, an earlier summary inside."""
    return [
        user("first task", purpose="prompt"),
        assistant(call("a1"), call("a2"), call("a3")),
        user(result("a1"), result("a2"), result("a3"), text("and be quick")),
        assistant(text("half done")),
        user("<conversation_summary>\nThey talked.\n</conversation_summary>", purpose="summary"),
        user("second task", purpose="prompt"),
        assistant(text("looking"), call("b1")),
        user(result("b1", "word " * 300), text("also this")),
        assistant(call("c1"), call("c2")),
        user(result("c1"), result("c2")),
        assistant(text("done")),
    ]


def compacted(messages: list[Any], index: int) -> list[Any]:
    history = History(messages)
    cut = cut_before(history, index)
    return [*compacted_messages(history, cut, "SUM"), *messages[cut:]] if cut else messages


def assert_sound(messages: list[Any]) -> None:
    assert violations(messages) == []
    assert messages[0]["role"] == "user"
    again = History.load([dict(message) for message in messages])
    assert again.repairs == []
    assert again.messages == messages


def test_compact_splits_pair_at_every_cut_and_at_every_second_cut() -> None:
    messages = awkward()
    for index in range(len(messages) + 1):
        once = compacted(messages, index)
        assert_sound(once)
        for second in range(len(once) + 1):
            assert_sound(compacted(once, second))


@given(histories(), st.data())
@settings(max_examples=40)
def test_compact_splits_pair_in_no_history(messages: list[Message], data: st.DataObject) -> None:
    for _ in range(2):
        messages = compacted(messages, data.draw(st.integers(0, len(messages))))
        assert_sound(messages)


async def test_compact_splits_pair_in_no_run_not_even_by_two_compactions() -> None:
    model = ScriptedModel([OVERFLOW, SUMMARY, Reply("one"), OVERFLOW, SUMMARY, Reply("two")])
    machine = AgentMachine(MODEL, deps=Deps(call_model=model), strict=True)
    first = await machine.run("third task", history=awkward())
    second = await machine.run("fourth task", history=first)
    assert [(first.reason, first.text), (second.reason, second.text)] == [("completed", "one"), ("completed", "two")]
    assert first.trace.count("reactive_compact_retry") == second.trace.count("reactive_compact_retry") == 1
    assert model.refusals == []
    assert_sound(second.messages)
    model.assert_complete()
