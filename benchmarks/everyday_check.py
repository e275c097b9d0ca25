"""What it takes to prove the shipped machine."""

from __future__ import annotations

import time
from collections.abc import Iterator
from statistics import median

from benchmarks.fresh import fresh
from benchmarks.rows import Row

__all__ = ["rows"]

TIMES = 3
MANY_TURNS = 10_000


def rows() -> Iterator[Row]:
    for what, changes, bound in (
        ("the everyday check: default limits, and the certificate for all limits", {}, 2.0),
        (f"the same for {MANY_TURNS:,} turns", {"max_turns": MANY_TURNS}, None),
    ):
        figures = [fresh(checking, **changes) for _ in range(TIMES)]
        seconds = median(f["seconds"] for f in figures)
        told = f"{seconds:.2f} s of CPU, {figures[0]['configurations']:,.0f} configurations"
        yield Row(what, told, seconds, bound, "s")


def checking(max_turns: int | None = None) -> dict[str, float]:
    from fsm_agent.machine import AGENT_LOOP, LoopLimits
    from fsm_agent.verify import check

    limits = LoopLimits() if max_turns is None else LoopLimits(max_turns=max_turns)
    started = time.process_time()
    report = check(AGENT_LOOP, limits)
    seconds = time.process_time() - started
    assert report.ok, list(report.faults())
    return {"seconds": seconds, "configurations": report.configurations}
