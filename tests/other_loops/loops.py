"""The loops that are looked at: ours, and those of others as they come, with their defaults."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any

import anthropic

from fsm_agent import AgentMachine, Deps, tool
from fsm_agent.testing.other_loops import Drive, Outcome, ToolFunction

MODEL = "claude-haiku-4-5"
SUCCESS = {"end_turn", "stop_sequence"}


async def no_wait(seconds: float) -> None:
    await asyncio.sleep(0)


async def run_ours(base_url: str, tools: Sequence[ToolFunction], history: list[dict[str, Any]], prompt: str) -> Outcome:
    async with anthropic.AsyncAnthropic(base_url=base_url, api_key="test") as client:
        made = [tool(concurrency_safe=True)(function) for function in tools]
        machine = AgentMachine(MODEL, client=client, tools=made, deps=Deps(sleep=no_wait), strict=True)
        run = machine.run(prompt, history=history)
        try:
            await run
        except asyncio.CancelledError:
            await run.aclose()
        result = run.result
    return Outcome(
        result.text, result.reason, ok=result.ok, follow_up=partial(run_ours, base_url, tools, result.messages)
    )


@asynccontextmanager
async def ours() -> AsyncIterator[Drive]:
    async def drive(base_url: str, prompt: str, tools: Sequence[ToolFunction]) -> Outcome:
        return await run_ours(base_url, tools, [], prompt)

    yield drive


@asynccontextmanager
async def sdk_tool_runner() -> AsyncIterator[Drive]:
    """`tool_runner` of a message thread, streaming: the thread keeps the history, so there is something to go on."""
    async with AsyncExitStack() as stack:

        async def drive(base_url: str, prompt: str, tools: Sequence[ToolFunction]) -> Outcome:
            client = await stack.enter_async_context(anthropic.AsyncAnthropic(base_url=base_url, api_key="test"))
            made = [anthropic.beta_async_tool(function) for function in tools]
            return await turn(client.beta.messages.thread(max_tokens=1000, model=MODEL, tools=made), prompt)

        async def turn(thread: Any, prompt: str) -> Outcome:
            thread.append({"role": "user", "content": prompt})
            follow_up, texts, message = partial(turn, thread), list[str](), None
            try:
                async for stream in thread.tool_runner(stream=True):
                    message = await stream.get_final_message()
                    texts += [block.text for block in message.content if block.type == "text"]
            except (Exception, asyncio.CancelledError) as error:
                return Outcome("".join(texts), type(error).__name__, ok=False, follow_up=follow_up)
            ended = str(message.stop_reason if message is not None else "no reply")
            return Outcome("".join(texts), ended, ok=ended in SUCCESS, follow_up=follow_up)

        yield drive


@asynccontextmanager
async def pydantic_ai_agent() -> AsyncIterator[Drive]:
    """`Agent.run` of pydantic-ai, streaming. Needs pydantic-ai, which is no dependency of ours."""
    library: Any = importlib.import_module("pydantic_ai")
    models: Any = importlib.import_module("pydantic_ai.models.anthropic")
    providers: Any = importlib.import_module("pydantic_ai.providers.anthropic")

    async with AsyncExitStack() as stack:

        async def drive(base_url: str, prompt: str, tools: Sequence[ToolFunction]) -> Outcome:
            client = await stack.enter_async_context(anthropic.AsyncAnthropic(base_url=base_url, api_key="test"))
            model = models.AnthropicModel(MODEL, provider=providers.AnthropicProvider(anthropic_client=client))
            return await turn(library.Agent(model, tools=list(tools)), [], prompt)

        async def see(context: Any, events: Any) -> None:
            async for _ in events:
                pass

        async def turn(agent: Any, history: list[Any], prompt: str) -> Outcome:
            with library.capture_run_messages() as messages:
                try:
                    result = await agent.run(prompt, message_history=history, event_stream_handler=see)
                except (Exception, asyncio.CancelledError) as error:
                    follow_up = partial(turn, agent, list(messages))
                    return Outcome("", type(error).__name__, ok=False, follow_up=follow_up)
            return Outcome(result.output, follow_up=partial(turn, agent, result.all_messages()))

        yield drive
