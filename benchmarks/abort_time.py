"""From `run.abort()` to the terminal event, while the model's stream says nothing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from statistics import median

from benchmarks.canned_server import canned_server
from benchmarks.loops import client_for, machine_for
from benchmarks.rows import Row

__all__ = ["rows"]

TIMES = 20
_EVENTS_BEFORE = 5
"""What the consumer has seen when it aborts: two events of the machine, three of the stream."""


def rows() -> Iterator[Row]:
    with canned_server() as url:
        times = asyncio.run(_aborts(f"{url}/silent/0"))
    figures = f"median {median(times) * 1_000:.2f}, worst {max(times) * 1_000:.2f} ms, {TIMES} times"
    yield Row("from an abort to the terminal event, over HTTP, no tool running", figures, max(times) * 1_000, 50, "ms")


async def _aborts(url: str) -> list[float]:
    async with client_for(url) as client:
        machine = machine_for(1, client=client)
        times: list[float] = []
        for _ in range(TIMES):
            run = machine.run("Go.")
            for _ in range(_EVENTS_BEFORE):
                await anext(run)
            asyncio.get_running_loop().call_later(0.002, run.abort)  # when the consumer waits for the next
            seen = time.perf_counter() + 0.002
            kinds = [event.type async for event in run]
            times.append(time.perf_counter() - seen)
            assert kinds[-1] == "terminal"
            assert run.result.reason == "aborted_streaming"
    return times
