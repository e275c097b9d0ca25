"""Agents that the kit is tried on: a sound one with four tools, and one with a state of its own."""

from __future__ import annotations

from fsm_agent import AgentMachine, tool
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


def approving_agent() -> AgentMachine:
    return AgentMachine(
        MODEL,
        tools=[remove],
        definition=APPROVAL,
        effects={"approval": never_asked},
        actions={"refuse_with_feedback": refuse_with_feedback},
    )
