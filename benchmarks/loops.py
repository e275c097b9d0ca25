"""The two loops that are compared: a bare one on the SDK, and a machine. Both run the same tool and read each event."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from benchmarks.canned_server import MODEL, RESULT_CHARS

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

    from fsm_agent import AgentMachine, Deps

__all__ = ["bare_conversation", "client_for", "look_up", "machine_conversation", "machine_for"]

SYSTEM = "You look things up. " * 50
WINDOW = 100_000_000
"""Tokens: nothing is compacted, as the bare loop compacts nothing."""


async def look_up(key: str, depth: int) -> str:
    """Look an entry up."""
    return f"{key} at depth {depth}: ".ljust(RESULT_CHARS, "x")


def client_for(url: str) -> AsyncAnthropic:
    import anthropic

    return anthropic.AsyncAnthropic(base_url=url, api_key="none", max_retries=0)


async def bare_conversation(client: AsyncAnthropic) -> int:
    """What people write by hand: `messages.create(stream=True)` over a list of dicts. Returns the tool turns."""
    schema = {
        "type": "object",
        "properties": {"key": {"type": "string"}, "depth": {"type": "integer"}},
        "required": ["key", "depth"],
    }
    tools: Any = [{"name": "look_up", "description": "Look an entry up.", "input_schema": schema}]
    messages: list[Any] = [{"role": "user", "content": "Go."}]
    turns = 0
    while True:
        content, reason = await _bare_reply(client, messages, tools)
        messages.append({"role": "assistant", "content": content})
        if reason != "tool_use":
            return turns
        results = [
            {"type": "tool_result", "tool_use_id": block["id"], "content": await look_up(**block["input"])}
            for block in content
            if block["type"] == "tool_use"
        ]
        messages.append({"role": "user", "content": results})
        turns += 1


async def _bare_reply(client: AsyncAnthropic, messages: list[Any], tools: Any) -> tuple[list[Any], str | None]:
    stream = await client.messages.create(
        model=MODEL, max_tokens=8_192, system=SYSTEM, messages=messages, tools=tools, stream=True
    )
    content: list[dict[str, Any]] = []
    pieces: list[str] = []
    reason: str | None = None
    async for event in stream:
        if event.type == "content_block_start":
            content.append(event.content_block.model_dump(exclude_none=True))
            pieces = []
        elif event.type == "content_block_delta":
            if event.delta.type == "text_delta":
                pieces.append(event.delta.text)
            elif event.delta.type == "input_json_delta":
                pieces.append(event.delta.partial_json)
        elif event.type == "content_block_stop":
            if content[-1]["type"] == "tool_use":
                content[-1]["input"] = json.loads("".join(pieces))
            else:
                content[-1]["text"] = "".join(pieces)
        elif event.type == "message_delta":
            reason = event.delta.stop_reason
    return content, reason


def machine_for(turns: int, *, client: AsyncAnthropic | None = None, deps: Deps | None = None) -> AgentMachine:
    from fsm_agent import AgentMachine, LoopLimits, tool

    limits = LoopLimits(max_turns=turns + 1, context_window=WINDOW)
    return AgentMachine(MODEL, client=client, tools=[tool(look_up)], system=SYSTEM, limits=limits, deps=deps)


async def machine_conversation(machine: AgentMachine) -> int:
    """The same by a machine, each event read. Returns the tool turns."""
    run = machine.run("Go.")
    async for _ in run:
        pass
    result = run.result
    assert result.reason == "completed", result.detail
    return result.requests - 1
