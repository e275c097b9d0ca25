# pyright: strict
"""A program as a user would write it: `make check` looks at its types, and a test runs it."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import BaseModel

from fsm_agent import (
    AGENT_LOOP,
    AgentMachine,
    Block,
    Deps,
    Event,
    Hooks,
    LoopLimits,
    Prevent,
    Price,
    Run,
    RunResult,
    StopHookInput,
    TerminalReason,
    ToolContext,
    tool,
)
from fsm_agent.loop.events import Assistant, Progress, StreamEvent, Terminal, Transition, User
from fsm_agent.testing import Reply, ScriptedModel, tool_use
from fsm_agent.tools import Allow, Defer, Deny, Tool, ToolCall


class Weather(BaseModel):
    town: str
    degrees: int


@dataclass
class World:
    towns: dict[str, int]


@tool(read_only=True)
async def weather(ctx: ToolContext[World], town: str) -> Weather:
    """Tell the weather.

    Args:
        town: Name of the town.
    """
    ctx.progress("looking")
    return Weather(town=town, degrees=ctx.deps.towns[town])


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def allowed(call: ToolCall, which: Tool[..., object], ctx: ToolContext[World]) -> Allow | Deny | Defer:
    return Allow() if call.name == which.name == "weather" else Deny(f"Only the weather of {list(ctx.deps.towns)}.")


async def check(given: StopHookInput) -> Block | Prevent | None:
    return None if given.stop_hook_active else Block(f"Say it again, in turn {given.turn}.")


def line(event: Event) -> str:
    match event:
        case StreamEvent():
            return event.text
        case Assistant() | User():
            return str(event.message["role"])
        case Progress(tool_use_id=call, kind=kind):
            return f"{call} {kind}"
        case Transition(trigger=trigger):
            return trigger
        case Terminal(reason=reason, text=text):
            return f"{reason}: {text}"
        case _:
            return event.type


def exit_code(result: RunResult) -> int:
    if result.reason is TerminalReason.COMPLETED:
        return 0
    return 130 if result.reason == "aborted_streaming" else 1


async def main() -> tuple[int, int, list[str], object]:
    sun = Reply('{"town": "Oslo", "degrees": 21}')
    three: int = add(1, 2)
    machine = AgentMachine(
        "claude-sonnet-5-5",
        tools=[weather, add],
        system="You are terse.",
        fallback_models=["claude-haiku-4-5"],
        limits=LoopLimits(max_turns=three, max_cost_usd=1.0),
        hooks=Hooks(stop=[check]),
        can_use_tool=allowed,
        definition=AGENT_LOOP,
        tool_deps=World({"Oslo": 21}),
        output_type=Weather,
        prices={
            "claude-sonnet-5-5": Price(input=3.0, output=15.0),
            "claude-haiku-4-5": Price(input=1.0, output=5.0),
        },
        deps=Deps(call_model=ScriptedModel([Reply(tool_use("weather", {"town": "Oslo"})), sun, sun])),
    )
    lines: list[str] = []
    async with machine.run("How warm is it in Oslo?") as run:
        async for event in run:
            lines.append(line(event))
            if event.type == "terminal":
                lines.append(str(event.usage.requests))
    again: Run = machine.run([{"type": "text", "text": "And now?"}], history=run.result)
    again.abort("Never mind.")
    aborted: RunResult = await again
    return exit_code(run.result), exit_code(aborted), lines, run.result.output
