"""Small machines on a scripted model, and a look at what a run left in its history."""

from __future__ import annotations

from typing import Any

from fsm_agent import AgentMachine, Deps, LoopLimits, RunResult, tool
from fsm_agent.testing import ScriptedModel

MODEL = "claude-sonnet-5-5"
QUICK = LoopLimits(abort_grace=0.05, tool_timeout=2.0, hook_timeout=0.05, backoff_base=0.001)


@tool
async def echo(x: str = "") -> str:
    """Give the text back."""
    return x


def machine(*script: Any, **options: Any) -> tuple[AgentMachine, ScriptedModel]:
    played: Any = script[0] if len(script) == 1 and callable(script[0]) else script
    model = ScriptedModel(played)
    options = {"limits": QUICK, "tools": [echo], **options}
    return AgentMachine(MODEL, deps=Deps(call_model=model), strict=True, **options), model


def results(result: RunResult) -> list[dict[str, Any]]:
    """The tool results in the history."""
    return [
        block
        for message in result.messages
        if message["role"] == "user" and isinstance(message["content"], list)
        for block in message["content"]
        if block["type"] == "tool_result"
    ]
