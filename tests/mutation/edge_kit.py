"""What the edges are written with."""

from __future__ import annotations

from typing import Any

from fsm_agent import AgentMachine, Deps, RunResult
from fsm_agent.testing import ScriptedModel
from tests.loop.scenarios import MODEL, echo, hang, write


def machine_of(script: list[Any] | ScriptedModel, *tools: Any, **more: Any) -> AgentMachine:
    """A strict machine with these tools (or a few simple ones), whose model follows the script."""
    model = script if isinstance(script, ScriptedModel) else ScriptedModel(script)
    return AgentMachine(
        MODEL, tools=list(tools) or [echo, write, hang], deps=Deps(call_model=model), strict=True, **more
    )


def blocks_in(messages: Any, kind: str) -> list[dict[str, Any]]:
    """All content blocks of this type, in their order."""
    contents = (message["content"] for message in messages if not isinstance(message["content"], str))
    return [block for content in contents for block in content if block["type"] == kind]


def results_of(result: RunResult) -> list[Any]:
    """What the tools' results say, in their order."""
    return [block["content"] for block in blocks_in(result.messages, "tool_result")]
