"""Turning DOT text into an image: by the `dot` program, or else by the pygraphviz package."""

from __future__ import annotations

import importlib
import shutil
import subprocess
from typing import Any, Final, Literal

ImageFormat = Literal["svg", "png"]
SECONDS: Final = 60
"""Time after which drawing is given up. The shipped loop takes a quarter of a second."""


class GraphvizError(RuntimeError):
    """No Graphviz is there, or it failed. The message says what to install."""


def render(dot: str, image: ImageFormat) -> bytes:
    """The image of a DOT text, as a file of that format holds it.

    Raises `GraphvizError` where neither the `dot` program nor pygraphviz is installed.
    """
    if program := shutil.which("dot"):
        return _by_program(program, dot, image)
    return _by_package(dot, image)


def _by_program(program: str, dot: str, image: ImageFormat) -> bytes:
    try:
        done = subprocess.run(
            [program, f"-T{image}"], input=dot.encode(), capture_output=True, check=False, timeout=SECONDS
        )
    except subprocess.TimeoutExpired:
        raise GraphvizError(f"Graphviz did not end within {SECONDS} s; draw the overview instead.") from None
    if done.returncode or not done.stdout:
        said = done.stderr.decode(errors="replace").strip() or "nothing"
        raise GraphvizError(f"Graphviz ended with exit code {done.returncode} and said: {said}")
    return done.stdout


def _by_package(dot: str, image: ImageFormat) -> bytes:
    try:
        pygraphviz: Any = importlib.import_module("pygraphviz")
    except ImportError:
        raise GraphvizError(
            f"Drawing {image.upper()} needs Graphviz: install its `dot` program (Debian: apt-get install graphviz) "
            "or `pip install 'fsm_agent[diagrams]'`, or write DOT or Mermaid text, which need neither."
        ) from None
    drawn = pygraphviz.AGraph(string=dot).draw(format=image, prog="dot")
    if not isinstance(drawn, bytes):
        raise GraphvizError("pygraphviz drew nothing; install the `dot` program of Graphviz instead.")
    return drawn
