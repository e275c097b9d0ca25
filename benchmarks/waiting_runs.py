"""Memory of a run that waits for a tool, and a thousand of them in one process."""

from __future__ import annotations

import asyncio
import gc
import os
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.canned_server import MODEL
from benchmarks.engine_share import canned_model
from benchmarks.fresh import fresh
from benchmarks.rows import Row

__all__ = ["rows"]

RUNS = 1_000
WARM_UP_RUNS = 50


def rows() -> Iterator[Row]:
    figures = fresh(waiting)
    told = f"{figures['kib']:.0f} KiB each for {RUNS:,} of them, their short histories included"
    yield Row("memory of a run that waits for a tool", told, figures["kib"], 64, "KiB")
    told = f"{figures['seconds']:.2f} s of CPU from start to end"
    yield Row(f"{RUNS:,} runs at once that end well", told, figures["completed"], RUNS, "runs", "at least")


def waiting() -> dict[str, float]:
    return asyncio.run(_waiting())


async def _waiting() -> dict[str, float]:
    from fsm_agent import AgentMachine, Deps, tool

    arrived, released = asyncio.Semaphore(0), asyncio.Event()

    async def look_up(key: str, depth: int) -> str:  # noqa: ARG001
        """Wait."""
        arrived.release()
        await released.wait()
        return "found"

    def begin(runs: int) -> list[asyncio.Task[str]]:
        # A model for each: what it says next is its own.
        async def one() -> str:
            machine = AgentMachine(MODEL, tools=tools, deps=Deps(call_model=canned_model(1)))
            return (await machine.run("Go.")).reason

        return [asyncio.create_task(one()) for _ in range(runs)]

    tools = [tool(look_up)]
    warm_up = begin(WARM_UP_RUNS)
    for _ in warm_up:
        await arrived.acquire()
    before, started = _resident_kib(), time.process_time()
    runs = begin(RUNS)
    for _ in runs:
        await arrived.acquire()
    after = _resident_kib()
    released.set()
    reasons = await asyncio.gather(*runs, *warm_up)
    seconds = time.process_time() - started
    completed = reasons.count("completed") - WARM_UP_RUNS
    return {"kib": (after - before) / RUNS, "completed": completed, "seconds": seconds}


def _resident_kib() -> float:
    gc.collect()
    statm = Path("/proc/self/statm")
    if not statm.exists():
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_024  # macOS: the peak, in bytes
    return int(statm.read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1_024
