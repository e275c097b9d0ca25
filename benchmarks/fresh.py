"""Runs one measurement in a Python process of its own, so that no other one has warmed or filled it."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any, cast

__all__ = ["fresh"]

Figures = dict[str, float]
MOST_SECONDS = 300


def fresh(function: Callable[..., Figures], **arguments: Any) -> Figures:
    """Call a function of a module of this folder in a new process, and return its figures.

    Raises `RuntimeError` with what the process said when it fails.
    """
    command = [sys.executable, "-m", __name__, function.__module__, function.__name__, json.dumps(arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=MOST_SECONDS, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"The measurement {function.__name__} failed:\n{done.stderr}")
    return cast("Figures", json.loads(done.stdout.splitlines()[-1]))


def _child(module: str, function: str, arguments: str) -> None:
    figures = getattr(importlib.import_module(module), function)(**json.loads(arguments))
    print(json.dumps(figures))


if __name__ == "__main__":
    _child(*sys.argv[1:])
