"""The table: `python -m benchmarks [GROUP ...]`. Exits with 1 if a bound does not hold."""

from __future__ import annotations

import argparse
import platform
import sys
import time
from collections.abc import Callable, Iterator, Mapping

from benchmarks import (
    abort_time,
    cpu_per_turn,
    engine_share,
    everyday_check,
    import_time,
    not_built,
    scripted_runs,
    tool_start,
    waiting_runs,
)
from benchmarks.rows import HEAD, Row, lines

GROUPS: Mapping[str, Callable[[], Iterator[Row]]] = {
    "turns": cpu_per_turn.rows,
    "stream": cpu_per_turn.stream_rows,
    "engine": engine_share.rows,
    "import": import_time.rows,
    "memory": waiting_runs.rows,
    "tools": tool_start.rows,
    "abort": abort_time.rows,
    "scripts": scripted_runs.rows,
    "scenarios": scripted_runs.scenario_rows,
    "check": everyday_check.rows,
    "unbuilt": not_built.rows,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure what the library costs.")
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=f"any of {', '.join(GROUPS)}; left out: all")
    names = parser.parse_args().groups or list(GROUPS)
    unknown = [name for name in names if name not in GROUPS]
    if unknown:
        parser.error(f"There is no group {', '.join(unknown)}; there are {', '.join(GROUPS)}.")
    started = time.perf_counter()
    print(f"Python {platform.python_version()}, {platform.machine()}. CPU is that of the client's process.\n\n{HEAD}")
    broken = 0
    for name in names:
        for row in GROUPS[name]():
            print("\n".join(lines(row)), flush=True)
            broken += row.holds is False
    print(f"\n{broken} bounds do not hold. {time.perf_counter() - started:.0f} s.")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
