"""Users extend the declaration, and run the result: a state in which a person approves the tool calls."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from fsm_agent import AGENT_LOOP, AgentMachine, ConfigurationError, Deps, LoopLimits, Outcome, Visit, tool
from fsm_agent.machine import Below, Counter, EffectSpec, Increment, Row, StateSpec
from fsm_agent.testing.script import Reply, tool_use
from fsm_agent.testing.scripted import ScriptedModel


class ApprovalLimits(LoopLimits):
    """The bounds of the loop, and one more."""

    max_denials: int = 2
    """Times that a person may refuse the calls of the model, per run."""


APPROVAL = AGENT_LOOP.with_changes(
    name="agent_loop_with_approval",
    limits=ApprovalLimits,
    states=[StateSpec("awaiting_approval", inherits=("response",), note="a person looks at the calls")],
    effects=[EffectSpec("approval", "awaiting_approval", ("approved", "denied", "aborted"))],
    counters=[Counter("denials", "max_denials")],
    actions=["refuse_with_feedback"],
    replace_rows=[
        Row(
            "calling_model",
            "tools_requested",
            "awaiting_approval",
            given={"response": "tool_use"},
            do="keep_reply",
        )
    ],
    rows=[
        Row(
            "awaiting_approval",
            "abort",
            "terminal",
            given={"approval": "aborted"},
            do=("refuse_with_feedback", "note_interruption"),
            reason="aborted_tools",
        ),
        Row("awaiting_approval", "approve", "executing_tools", given={"approval": "approved"}),
        Row(
            "awaiting_approval",
            "deny",
            "preprocess",
            given={"approval": "denied"},
            when=(Below("denials"), Below("turn")),
            update=(Increment("denials"), Increment("turn")),
            do="refuse_with_feedback",
        ),
        Row(
            "awaiting_approval",
            "denial_limit",
            "terminal",
            given={"approval": "denied"},
            do="refuse_with_feedback",
            reason="denied",
        ),
    ],
)


@tool
async def remove(path: str) -> str:
    """Remove a file."""
    return f"removed {path}"


def refuse_with_feedback(conversation, row):
    blocks = [
        {"type": "tool_result", "tool_use_id": call.id, "content": "The user said no.", "is_error": True}
        for call in conversation.calls
    ]
    conversation.history.append({"role": "user", "content": blocks})
    return []


def machine(answers: Sequence[str], script: Sequence[Reply], **more: object) -> tuple[AgentMachine, ScriptedModel]:
    left = list(answers)

    async def approval(visit: Visit) -> Outcome:
        assert [call.name for call in visit.calls] == ["remove"]
        return Outcome(left.pop(0), "asked the user")

    model = ScriptedModel(script)
    options: dict[str, object] = {
        "tools": [remove],
        "definition": APPROVAL,
        "effects": {"approval": approval},
        "actions": {"refuse_with_feedback": refuse_with_feedback},
        "deps": Deps(call_model=model),
        "strict": True,
        **more,
    }
    return AgentMachine("claude-sonnet-4-5", **options), model  # type: ignore[arg-type]


CALL = Reply(tool_use("remove", {"path": "a"}))


async def test_an_approved_call_runs() -> None:
    agent, model = machine(["approved"], [CALL, Reply("done")])
    result = await agent.run("go")
    assert result.trace == (
        "context_ready",
        "tools_requested",
        "approve",
        "next_turn",
        "context_ready",
        "response_ended",
        "complete",
    )
    assert result.messages[2]["content"][0]["content"] == "removed a"
    model.assert_complete()


async def test_a_denied_call_does_not_run_and_the_model_hears_of_it() -> None:
    agent, model = machine(["denied"], [CALL, Reply("I will not.")])
    result = await agent.run("go")
    assert result.text == "I will not."
    assert model.calls[1]["messages"][2]["content"][0]["is_error"] is True


async def test_the_new_counter_is_bounded_by_the_new_limit() -> None:
    agent, _ = machine(["denied"] * 3, [CALL] * 3)
    result = await agent.run("go")
    assert result.reason == "denied"
    assert result.requests == 3
    assert result.detail == "asked the user"


async def test_another_limit_is_a_setting() -> None:
    agent, _ = machine(["denied"] * 2, [CALL] * 2, limits=ApprovalLimits(max_denials=1))
    assert (await agent.run("go")).requests == 2


def test_limits_of_another_kind_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="needs ApprovalLimits"):
        machine([], [], limits=LoopLimits())


def test_an_effect_that_nothing_performs_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"declares the effect 'approval', and nothing performs it"):
        machine([], [], effects={})


def test_an_action_that_nothing_does_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"declares the action 'refuse_with_feedback', and nothing does it"):
        machine([], [], actions={})
