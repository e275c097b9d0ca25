"""Client CPU per tool turn, against a bare loop on the SDK; and of a very long stream."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from statistics import median

from benchmarks.canned_server import canned_server
from benchmarks.fresh import fresh
from benchmarks.loops import bare_conversation, client_for, machine_conversation, machine_for
from benchmarks.rows import Row

__all__ = ["rows", "stream_rows"]

WARM_UP_TURNS = 3
SHORT, LONG = 200, 2_000
SHORT_TIMES = 5
DELTAS = 200_000


def rows() -> Iterator[Row]:
    with canned_server() as url:
        bare, ours = _side_by_side(url, SHORT, SHORT_TIMES)
        yield _row(SHORT, bare, ours, 0.8)
        long_bare, long_ours = _side_by_side(url, LONG, 1)
        yield _row(LONG, long_bare, long_ours, 0.25)
        yield Row(f"growth from {SHORT} to {LONG:,} turns", f"bare loop {long_bare / bare:.1f} x", long_ours / ours)


def stream_rows() -> Iterator[Row]:
    with canned_server() as url:
        bare = fresh(bare_cpu, url=url, path=f"deltas/{DELTAS}", turns=0)["seconds"]
        ours = fresh(machine_cpu, url=url, path=f"deltas/{DELTAS}", turns=0)["seconds"]
    figures = f"{ours / DELTAS * 1e6:.1f} against {bare / DELTAS * 1e6:.1f} µs of CPU a delta"
    yield Row(f"a stream of {DELTAS:,} deltas, each read", figures, ours / bare)


def _side_by_side(url: str, turns: int, times: int) -> tuple[float, float]:
    """Milliseconds of CPU per turn of both, medians; the two take turns."""
    bare: list[float] = []
    ours: list[float] = []
    for _ in range(times):
        bare.append(fresh(bare_cpu, url=url, path=f"turns/{turns}", turns=turns)["seconds"])
        ours.append(fresh(machine_cpu, url=url, path=f"turns/{turns}", turns=turns)["seconds"])
    return median(bare) * 1_000 / turns, median(ours) * 1_000 / turns


def _row(turns: int, bare: float, ours: float, bound: float) -> Row:
    figures = f"{ours:.2f} against {bare:.2f} ms of CPU"
    return Row(f"a tool turn, conversation of {turns:,} turns, against a bare loop", figures, ours / bare, bound)


def bare_cpu(url: str, path: str, turns: int) -> dict[str, float]:
    return asyncio.run(_bare_cpu(url, path, turns))


def machine_cpu(url: str, path: str, turns: int) -> dict[str, float]:
    return asyncio.run(_machine_cpu(url, path, turns))


async def _bare_cpu(url: str, path: str, turns: int) -> dict[str, float]:
    async with client_for(f"{url}/turns/{WARM_UP_TURNS}") as client:
        await bare_conversation(client)
    async with client_for(f"{url}/{path}") as client:
        started = time.process_time()
        assert await bare_conversation(client) == turns
        return {"seconds": time.process_time() - started}


async def _machine_cpu(url: str, path: str, turns: int) -> dict[str, float]:
    async with client_for(f"{url}/turns/{WARM_UP_TURNS}") as client:
        await machine_conversation(machine_for(WARM_UP_TURNS, client=client))
    async with client_for(f"{url}/{path}") as client:
        machine = machine_for(turns, client=client)
        started = time.process_time()
        assert await machine_conversation(machine) == turns
        return {"seconds": time.process_time() - started}
