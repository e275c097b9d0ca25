"""How soon a tool starts while the reply still streams, and what that saves."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Iterator
from statistics import median
from typing import Any

from benchmarks.canned_server import MODEL, text_events, tool_events
from benchmarks.rows import Row

__all__ = ["rows"]

TIMES = 15
STREAM_SECONDS = 0.06
"""What the reply takes after the block of the call is complete."""
TOOL_SECONDS = 0.05


def rows() -> Iterator[Row]:
    starts, walls = zip(*(asyncio.run(_turn()) for _ in range(TIMES)), strict=True)
    figures = f"median {median(starts) * 1_000:.2f}, worst {max(starts) * 1_000:.2f} ms, {TIMES} times"
    yield Row("a tool starts after its block is complete", figures, median(starts) * 1_000, 5, "ms")
    longest, total = max(STREAM_SECONDS, TOOL_SECONDS), STREAM_SECONDS + TOOL_SECONDS
    figures = f"{median(walls) * 1_000:.0f} ms; stream {STREAM_SECONDS * 1_000:.0f}, tool {TOOL_SECONDS * 1_000:.0f}"
    yield Row(
        f"wall time of a turn, against the longer of stream and tool (one after the other: {total / longest:.2f})",
        figures,
        median(walls) / longest,
        1.1,
    )


async def _turn() -> tuple[float, float]:
    """Seconds from the end of the block to the start of the tool, and to the end of the turn."""
    from fsm_agent import AgentMachine, Deps, tool

    complete = began = ended = 0.0

    @tool(read_only=True)
    async def look_up(key: str, depth: int) -> str:  # noqa: ARG001
        """Look an entry up."""
        nonlocal began
        began = time.perf_counter()
        await asyncio.sleep(TOOL_SECONDS)
        return "found"

    replies = iter([tool_events(1), text_events()])

    async def call_model(_: Any) -> AsyncGenerator[dict[str, Any], None]:
        nonlocal complete, ended
        ended = time.perf_counter()  # the second request begins when the first turn has ended
        for event in next(replies):
            if event["type"] == "message_delta" and event["delta"]["stop_reason"] == "tool_use":
                await asyncio.sleep(STREAM_SECONDS)
            if event["type"] == "content_block_stop" and event["index"] == 1:
                complete = time.perf_counter()
            yield event

    await AgentMachine(MODEL, tools=[look_up], deps=Deps(call_model=call_model)).run("Go.")
    return began - complete, ended - complete
