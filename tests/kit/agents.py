"""Agents that the kit is tried on: a sound one with four tools, and one with a state of its own."""

from __future__ import annotations

from fsm_agent import AgentMachine, tool
from fsm_agent.loop.conversation import Conversation
from fsm_agent.loop.events import Event, User
from fsm_agent.machine import Row
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
