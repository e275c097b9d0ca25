"""A loop in thirty lines that does what it must, and the mistakes that such loops make."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

import anthropic

from fsm_agent.testing.other_loops import Drive, Outcome, ToolFunction

MODEL = "claude-sonnet-4-5"
DEFINITIONS: Any = [
    {"name": name, "input_schema": {"type": "object", "properties": {"key": {"type": "string"}}, "required": ["key"]}}
    for name in ("lookup", "read", "fails", "hangs")
]


def plain_loop(mistake: str = "", *, times: int = 1) -> Drive:
    """The loop, with one mistake. `times` is how often it ignores that it is cancelled, where that is the mistake."""

    async def drive(base_url: str, prompt: str, tools: Sequence[ToolFunction]) -> Outcome:
        return await run(base_url, {tool.__name__: tool for tool in tools}, [], prompt)

    async def ask(client: anthropic.AsyncAnthropic, messages: list[Any]) -> Any:
        while True:
            try:
                return await client.messages.create(
                    model=MODEL, max_tokens=1000, tools=DEFINITIONS, messages=list(messages)
                )
            except anthropic.APIStatusError:
                if mistake != "never gives up":
                    raise

    async def run(base_url: str, tools: dict[str, ToolFunction], history: list[Any], prompt: str) -> Outcome:
        messages = [*history, {"role": "user", "content": prompt}]
        follow_up = partial(run, base_url, tools, [] if mistake == "forgets what was said" else messages)
        async with anthropic.AsyncAnthropic(base_url=base_url, api_key="test", max_retries=0) as client:
            try:
                while True:
                    reply = await ask(client, messages)
                    runs = reply.stop_reason == "tool_use" or mistake == "runs calls of a cut reply"
                    content = [block.model_dump(exclude_none=True) for block in reply.content]
                    if mistake == "drops thinking":
                        content = [block for block in content if block["type"] != "thinking"]
                    calls = [block for block in content if block["type"] == "tool_use"] if runs else []
                    messages.append({"role": "assistant", "content": content})
                    if not calls:
                        ok = reply.stop_reason == "end_turn" or mistake == "calls everything a success"
                        text = "".join(block.get("text", "") for block in content)
                        return Outcome(text, str(reply.stop_reason), ok=ok, follow_up=follow_up)
                    results = [await answer(tools, call) for call in calls]
                    if mistake == "answers in another order":
                        results.reverse()
                    if mistake == "loses a result":
                        results.pop()
                    messages.append({"role": "user", "content": results or "Go on."})
            except asyncio.CancelledError:
                if mistake == "asks once more after the abort":
                    await ask(client, messages[:1])
                open_calls = messages[-1]["role"] == "assistant"
                if open_calls:
                    messages.pop()
                    if mistake == "leaves calls open":
                        messages.append({"role": "assistant", "content": content})
                return Outcome("", "cancelled", ok=False, follow_up=follow_up)

    async def answer(tools: dict[str, ToolFunction], call: dict[str, Any]) -> dict[str, Any]:
        result = {"type": "tool_result", "tool_use_id": call["id"]}
        try:
            if mistake == "runs a tool twice":
                await tools[call["name"]](**call["input"])
            return {**result, "content": await work(tools[call["name"]], call["input"])}
        except Exception as error:
            marked = {} if mistake == "marks no error" else {"is_error": True}
            return {**result, "content": f"{type(error).__name__}: {error}", **marked}

    async def work(tool: ToolFunction, given: dict[str, Any]) -> str:
        for _ in range(times if mistake == "does not hear the abort" else 0):
            try:
                return await tool(**given)
            except asyncio.CancelledError:
                continue
        return await tool(**given)

    return drive
