"""What is sent: bounded results, and a history that never breaks an invariant without our hearing of it."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

import pytest

from fsm_agent import AGENT_LOOP, AgentMachine, Deps, LoopLimits, tool
from fsm_agent.loop.events import Event
from fsm_agent.machine import Row
from fsm_agent.session.validator import InvariantError
from fsm_agent.testing import Reply, ScriptedModel, tool_use
from tests.loop.scenarios import BOX, CODE, MODEL, OUTPUT, RUN_CODE, echo


async def test_a_tool_may_have_a_smaller_cap_of_its_own() -> None:
    @tool(max_result_chars=500)
    async def talk() -> str:
        """Say much."""
        return "word " * 1_000

    model = ScriptedModel([Reply(tool_use("talk"), tool_use("echo", {"x": "y" * 3_000})), Reply("done")])
    machine = AgentMachine(
        MODEL,
        tools=[talk, echo],
        deps=Deps(call_model=model),
        limits=LoopLimits(tool_result_max_chars=1_000),
        strict=True,
    )
    result = await machine.run("go")
    own, general = (block["content"] for block in result.messages[2]["content"])
    assert len(own) <= 500 < len(general) <= 1_000
    assert "Cut: this is the beginning of a result of 5000 characters" in own


async def test_all_results_of_a_message_together_are_bounded() -> None:
    calls = [tool_use("echo", {"x": str(i) * 900}) for i in range(9)]
    model = ScriptedModel([Reply(*calls), Reply("done")])
    limits = LoopLimits(tool_result_max_chars=1_000, message_results_max_chars=3_000)
    machine = AgentMachine(MODEL, tools=[echo], deps=Deps(call_model=model), limits=limits, strict=True)
    result = await machine.run("go")
    assert sum(len(block["content"]) for block in result.messages[2]["content"]) <= 3_000


def breaks(conversation: Any, row: Row) -> Iterable[Event]:
    """An action of a user's own that puts a result without a call into the history."""
    orphan = {"type": "tool_result", "tool_use_id": "nobody", "content": "?"}
    conversation.history.append({"role": "user", "content": [orphan]})
    return []


BROKEN = AGENT_LOOP.with_changes(
    actions=["break"],
    replace_rows=[
        Row(
            "preprocess",
            "context_ready",
            "calling_model",
            given={"context": "ready"},
            do=("apply_context", "break"),
        )
    ],
)


def broken_machine(model: ScriptedModel, *, strict: bool) -> AgentMachine:
    return AgentMachine(MODEL, definition=BROKEN, actions={"break": breaks}, deps=Deps(call_model=model), strict=strict)


async def test_a_broken_history_is_told_loudly_in_tests() -> None:
    model = ScriptedModel([Reply("never")])
    with pytest.raises(InvariantError, match="I1"):
        await broken_machine(model, strict=True).run("go")
    assert model.call_count == 0


async def test_a_broken_history_is_repaired_and_logged_in_production(caplog: pytest.LogCaptureFixture) -> None:
    model = ScriptedModel([Reply("hello")])
    with caplog.at_level(logging.ERROR, logger="fsm_agent"):
        result = await broken_machine(model, strict=False).run("go")
    assert result.text == "hello"
    assert not model.refusals
    assert "I1" in caplog.records[0].fsm["violations"]  # type: ignore[attr-defined]


async def test_a_fallback_inside_a_tool_loop_goes_on_without_thinking_until_the_turn_is_over() -> None:
    from fsm_agent.testing import ApiError, Repeat, thinking

    first, second = "claude-sonnet-4-5", "claude-haiku-4-5"
    model = ScriptedModel(
        [
            Reply(thinking("hm"), tool_use("echo", {"x": "a"})),
            Repeat(ApiError(529, "overloaded_error"), 4),
            Reply(tool_use("echo", {"x": "b"})),
            Reply("done"),
        ]
    )

    async def at_once(seconds: float) -> None:
        return None

    machine = AgentMachine(
        first,
        fallback_models=[second],
        tools=[echo],
        thinking={"type": "enabled", "budget_tokens": 1_024},
        deps=Deps(call_model=model, sleep=at_once),
        strict=True,
    )
    result = await machine.run("go")
    assert result.reason == "completed", (result, model.refusals)
    assert [(call["model"], "thinking" in call) for call in model.calls] == [(first, True)] * 5 + [(second, False)] * 2
    assert result.messages[1]["content"][0]["type"] == "thinking"
    model.assert_complete()


def test_a_thinking_budget_must_be_below_the_output_limit() -> None:
    with pytest.raises(ValueError, match=r"raise LoopLimits"):
        AgentMachine(MODEL, thinking={"type": "enabled", "budget_tokens": 10_000})


async def test_code_of_the_service_that_calls_a_tool_of_ours_gets_its_result_in_its_container() -> None:
    model = ScriptedModel(
        [Reply(CODE, tool_use("echo", {"x": "1"}), extra=BOX), Reply(OUTPUT, "It is 1."), Reply("Bye.")]
    )
    machine = AgentMachine(MODEL, tools=[echo, RUN_CODE], deps=Deps(call_model=model), strict=True)
    first = await machine.run("go")
    assert model.calls[1]["messages"][1]["content"][0] == CODE
    assert [call.get("container") for call in model.calls] == [None, "container_1"]
    assert first.messages[-1]["content"][0] == OUTPUT
    second = await machine.run("and now?", history=first)
    assert second.reason == "completed"
    assert model.calls[2]["messages"][:4] == first.messages


async def test_a_call_of_the_services_own_tool_that_comes_again_takes_the_place_of_the_one_that_waits() -> None:
    half = Reply("Half.", CODE, stop="pause_turn")
    model = ScriptedModel([half, Reply("One.", tool_use("echo", {"x": "1"})), half, Reply(OUTPUT, "Done.")])
    machine = AgentMachine(MODEL, tools=[echo, RUN_CODE], deps=Deps(call_model=model), strict=True)
    result = await machine.run("go")
    assert (result.reason, result.detail) == ("completed", "")
    assert str(result.messages).count("server_tool_use") == 1
    assert str(model.calls[1]["messages"]).count("server_tool_use") == 1


async def test_a_result_for_a_call_that_nobody_made_is_left_out() -> None:
    model = ScriptedModel([Reply(OUTPUT, "It is 1."), Reply("Bye.")])
    machine = AgentMachine(MODEL, tools=[RUN_CODE], deps=Deps(call_model=model), strict=True)
    result = await machine.run("go")
    assert result.messages[-1]["content"] == [{"type": "text", "text": "It is 1."}]
