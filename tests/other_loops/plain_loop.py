"""A plain loop that does what it must, and the mistakes that such loops make."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import anthropic

from fsm_agent.testing.other_loops import Drive, Outcome, ToolFunction

MODEL = "claude-haiku-4-5"
DEFINITIONS: Any = [
    {"name": name, "input_schema": {"type": "object", "properties": {"key": {"type": "string"}}, "required": ["key"]}}
    for name in ("lookup", "read", "fails", "hangs")
]


class PlainLoop:
    """One conversation of the loop, with one mistake."""

    def __init__(self, mistake: str, base_url: str, tools: Sequence[ToolFunction]) -> None:
        self.mistake = mistake
        self.base_url = base_url
        self.tools: Mapping[str, ToolFunction] = {tool.__name__: tool for tool in tools}
        self.messages: list[Any] = []

    async def run(self, prompt: str) -> Outcome:
        if self.mistake == "forgets what was said":
            self.messages.clear()
        self.messages.append({"role": "user", "content": prompt})
        ended = partial(Outcome, follow_up=self.run)
        async with anthropic.AsyncAnthropic(base_url=self.base_url, api_key="test", max_retries=0) as client:
            try:
                while (reply := await self.turn(client)) is None:
                    pass
            except asyncio.CancelledError:
                await self.aborted(client)
                return ended("", "cancelled", ok=False)
        ok = reply.stop_reason == "end_turn" or self.mistake == "calls everything a success"
        text = "".join(block.text for block in reply.content if block.type == "text")
        return ended(text, str(reply.stop_reason), ok=ok)

    async def ask(self, client: anthropic.AsyncAnthropic) -> Any:
        while True:
            try:
                return await client.messages.create(
                    model=MODEL, max_tokens=1000, tools=DEFINITIONS, messages=list(self.messages)
                )
            except anthropic.APIStatusError:
                if self.mistake != "never gives up":
                    raise

    async def turn(self, client: anthropic.AsyncAnthropic) -> Any:
        """The reply, if it is the last one; otherwise `None`, after its tools."""
        reply = await self.ask(client)
        content = [block.model_dump(exclude_none=True) for block in reply.content]
        if self.mistake == "drops thinking":
            content = [block for block in content if block["type"] != "thinking"]
        self.messages.append({"role": "assistant", "content": content})
        calls = [block for block in content if block["type"] == "tool_use"]
        if not calls or (reply.stop_reason != "tool_use" and self.mistake != "runs calls of a cut reply"):
            return reply
        results = [await self.result(call) for call in calls]
        if self.mistake == "answers in another order":
            results.reverse()
        if self.mistake == "loses a result":
            results.pop()
        self.messages.append({"role": "user", "content": results})
        return None

    async def result(self, call: dict[str, Any]) -> dict[str, Any]:
        result = {"type": "tool_result", "tool_use_id": call["id"]}
        try:
            return {**result, "content": await self.work(self.tools[call["name"]], call["input"])}
        except Exception as error:
            marked = {} if self.mistake == "marks no error" else {"is_error": True}
            return {**result, "content": f"{type(error).__name__}: {error}", **marked}

    async def work(self, tool: ToolFunction, given: dict[str, Any]) -> str:
        if self.mistake == "runs a tool twice":
            await tool(**given)
        try:
            return await tool(**given)
        except asyncio.CancelledError:
            if self.mistake != "does not hear the abort":
                raise
            return await tool(**given)

    async def aborted(self, client: anthropic.AsyncAnthropic) -> None:
        """Drop the turn that is not answered: what is left is valid, though the finished work is lost."""
        if self.mistake == "leaves calls open":
            return
        if self.messages[-1]["role"] == "assistant":
            self.messages.pop()
        if self.mistake == "asks once more after the abort":
            await self.ask(client)


def plain_loop(mistake: str = "") -> Drive:
    """The loop, with one mistake or none."""

    async def drive(base_url: str, prompt: str, tools: Sequence[ToolFunction]) -> Outcome:
        return await PlainLoop(mistake, base_url, tools).run(prompt)

    return drive
