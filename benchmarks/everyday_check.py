"""What it takes to prove the shipped machine."""

from __future__ import annotations

import time
from collections.abc import Iterator
from statistics import median

from benchmarks.fresh import fresh
from benchmarks.rows import Row

__all__ = ["rows"]

TIMES = 3


def rows() -> Iterator[Row]:
    for what, factor, bound in (
        ("the everyday check: default limits, and the certificate for all limits", 1, 2.0),
        ("the same with all limits a hundred times as high", 100, None),
    ):
        seconds = median(fresh(checking, factor=factor)["seconds"] for _ in range(TIMES))
        yield Row(what, f"{seconds:.2f} s of CPU", seconds, bound, "s")


def checking(factor: int) -> dict[str, float]:
    from fsm_agent.machine import AGENT_LOOP, LoopLimits
    from fsm_agent.verify import check

    bounds = {name: value * factor for name, value in LoopLimits().resolved().items() if value is not None}
    started = time.process_time()
    report = check(AGENT_LOOP, bounds)
    assert report.ok, list(report.faults())
    return {"seconds": time.process_time() - started}
