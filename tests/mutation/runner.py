"""Judges mutants in worker processes, a few at a time, and writes down what became of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[2]
NOTHING = ""
"""In the place of a mutant: the library as it is, which nothing may kill."""


def judged(names: Iterable[str], *, workers: int | None = None) -> dict[str, str]:
    """What killed each mutant, or '' for one that survived."""
    wanted = list(names)
    count = max(1, min(workers or os.cpu_count() or 1, len(wanted)))
    with ThreadPoolExecutor(count) as pool:
        parts = list(pool.map(_by_one_worker, [wanted[start::count] for start in range(count)]))
    verdicts = {name: verdict for part in parts for name, verdict in part.items()}
    return {name: verdicts[name] for name in wanted}


def _by_one_worker(names: Sequence[str]) -> dict[str, str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.mutation.worker"],
        input="".join(f"{name}\n" for name in names),
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=environment,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"The worker of the mutation run failed:\n{done.stderr[-2_000:]}")
    return dict(json.loads(line) for line in done.stdout.splitlines())


def main() -> int:
    """Judge all mutants (or those whose name holds the first argument) and print the verdicts."""
    from tests.mutation.mutants import MUTANTS

    part = sys.argv[1] if len(sys.argv) > 1 else ""
    verdicts = judged([NOTHING, *(name for name in MUTANTS if part in name)])
    sound = verdicts.pop(NOTHING)
    for name, verdict in verdicts.items():
        print(f"{'killed  ' if verdict else 'SURVIVED'} {name}: {verdict}")
    survived = [name for name, verdict in verdicts.items() if not verdict]
    print(f"{len(verdicts) - len(survived)} of {len(verdicts)} killed.")
    if sound:
        print(f"The library without a bug is killed too: {sound}")
    return 1 if sound else 0


if __name__ == "__main__":
    sys.exit(main())
