"""Agents that the kit is tried on: a sound one with four tools, a rich one, and one with a state of its own."""

from __future__ import annotations

from dataclasses import dataclass

from fsm_agent import AgentMachine, Block, Hooks, LoopLimits, StopHookInput, tool
from fsm_agent.loop.conversation import Conversation
from fsm_agent.loop.events import Event, User
from fsm_agent.machine import Row
from fsm_agent.tools.calls import ToolCall
from fsm_agent.tools.gate import Allow, Deny, Permission
from tests.loop.scenarios import FALLBACK, MODEL, echo, fetch, hang, write
from tests.loop.test_extension import APPROVAL, refuse_with_feedback, remove


def sound_agent() -> AgentMachine:
    return AgentMachine(MODEL, tools=[echo, write, fetch, hang], fallback_models=[FALLBACK])


@tool
async def act() -> str:
    """Do something. (The calls of a witness are of a tool of this name.)"""
    return "done"


def acting_agent() -> AgentMachine:
    return AgentMachine(MODEL, tools=[act], fallback_models=[FALLBACK])


@dataclass(frozen=True)
class Verdict:
    fits: bool
    marks: list[int]


@tool(idempotent=True)
async def store(place: str, value: int | None = None) -> dict[str, object]:
    """Put a value somewhere; it may be done twice."""
    return {"place": place, "value": value}


async def ask_first(call: ToolCall, used: object, context: object) -> Permission:
    return Deny("Not there.") if call.input.get("place") == "" else Allow()


async def doubts(given: StopHookInput) -> Block | None:
    return Block("Are you sure?") if "false" in given.text and not given.stop_hook_active else None


async def system_prompt() -> str:
    return "Judge what you are given."


def rich_agent() -> AgentMachine:
    """All that an agent may have, so that each row is possible for it."""
    return AgentMachine(
        MODEL,
        tools=[echo, write, fetch, hang, store],
        system=system_prompt,
        fallback_models=[FALLBACK],
        hooks=Hooks(stop=[doubts]),
        can_use_tool=ask_first,
        output_type=Verdict,
        limits=LoopLimits(token_budget=2_000, context_window=120_000, max_turns=20),
    )


async def never_asked(visit: object) -> str:
    raise AssertionError("a scenario stands in for this effect")


def refuse_and_tell(conversation: Conversation, row: Row) -> list[Event]:
    """As in the example of an extension; what enters the history is told of, as the library's own actions do."""
    refuse_with_feedback(conversation, row)
    return [User(message=dict(conversation.history.messages[-1]), purpose="refuse_with_feedback")]


def approving_agent() -> AgentMachine:
    return AgentMachine(
        MODEL,
        tools=[remove],
        definition=APPROVAL,
        effects={"approval": never_asked},
        actions={"refuse_with_feedback": refuse_and_tell},
    )
