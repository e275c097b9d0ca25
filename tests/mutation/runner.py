"""`python -m tests.mutation.runner [-v] [-j N] [PART]`: judges the deliberate bugs in N worker processes.

Each verdict is printed as it comes. `PART` chooses the bugs whose name holds it; `-v` tells how a check failed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeAlias

from tests.mutation.mutants import MUTANTS

ROOT = Path(__file__).parents[2]
NOTHING = ""
"""In the place of a mutant: the library as it is, which nothing may kill."""
KINDS = ("scenario", "fault", "edge", "broken reply", "abort", "cancel", "close", "drop", "own test")
"""What kills, in the order in which it is tried."""
NO_CHECK = "no end, or no import"
"""A mutant that no check killed, and with which the kit came to no end."""
Tell: TypeAlias = Callable[[str, str], None]


def judged(
    names: Iterable[str], *, workers: int | None = None, tell: Tell = lambda _name, _verdict: None
) -> dict[str, str]:
    """What killed each mutant, or '' for one that survived. `tell` is called with each as soon as it is known."""
    wanted = list(names)
    count = max(1, min(workers or os.cpu_count() or 1, len(wanted)))
    verdicts: dict[str, str] = {}
    lock = threading.Lock()

    def noted(name: str, verdict: str) -> None:
        with lock:
            verdicts[name] = verdict
            tell(name, verdict)

    with ThreadPoolExecutor(count) as pool:
        list(pool.map(lambda start: _by_one_worker(wanted[start::count], noted), range(count)))
    return {name: verdicts[name] for name in wanted}


def _by_one_worker(names: Sequence[str], tell: Tell) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}
    with tempfile.TemporaryFile("w+") as asked, tempfile.TemporaryFile("w+") as complaints:
        asked.writelines(f"{name}\n" for name in names)
        asked.seek(0)
        command = [sys.executable, "-m", "tests.mutation.worker"]
        with subprocess.Popen(
            command, stdin=asked, stdout=subprocess.PIPE, stderr=complaints, text=True, cwd=ROOT, env=environment
        ) as worker:
            assert worker.stdout is not None
            for line in worker.stdout:
                tell(*json.loads(line))
        if worker.returncode != 0:
            complaints.seek(0)
            raise RuntimeError(f"The worker of the mutation run failed:\n{complaints.read()[-2_000:]}")


def kind_of(verdict: str) -> str:
    """What kind of check killed."""
    return next((kind for kind in KINDS if verdict.startswith(f"{kind}: ")), NO_CHECK)


def summary(verdicts: Mapping[str, str]) -> list[str]:
    """The last lines of a run: what survived, what killed, how many."""
    killed = {name: kind_of(verdict) for name, verdict in verdicts.items() if verdict}
    kinds = Counter(killed.values())
    return [
        *(f"SURVIVED {name}" for name in verdicts if name not in killed),
        "Killed by: " + ", ".join(f"{kind} {kinds[kind]}" for kind in (*KINDS, NO_CHECK) if kinds[kind]),
        f"{len(killed)} of {len(verdicts)} killed: {100 * len(killed) / max(1, len(verdicts)):.1f} %",
    ]


def main() -> int:
    """Judge, and print the verdicts."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation.runner", description="Judge the deliberate bugs.")
    parser.add_argument("part", nargs="?", default="", help="only those whose name holds this")
    parser.add_argument("-v", "--verbose", action="store_true", help="print which check killed, and how it failed")
    parser.add_argument("-j", "--jobs", type=int, help="worker processes; left out: one for each processor")
    given = parser.parse_args()

    def tell(name: str, verdict: str) -> None:
        if name == NOTHING:
            return
        by = verdict if given.verbose else kind_of(verdict)
        print(f"killed   {name} ({by})" if verdict else f"SURVIVED {name}", flush=True)

    chosen = [name for name in MUTANTS if given.part in name]
    verdicts = judged([NOTHING, *chosen], workers=given.jobs, tell=tell)
    sound = verdicts.pop(NOTHING)
    if sound:
        print(f"The library without a bug is killed too, so no verdict counts: {sound}")
        return 1
    print("\n".join(summary(verdicts)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
