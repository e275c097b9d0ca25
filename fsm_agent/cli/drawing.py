"""`fsm-agent draw`: the picture of a declared machine."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path

from fsm_agent import diagram
from fsm_agent.cli.errors import UsageError
from fsm_agent.cli.tracing import read_trace
from fsm_agent.machine import Definition


class PictureFormat(StrEnum):
    """What `draw` can write."""

    DOT = "dot"
    SVG = "svg"
    MERMAID = "mermaid"
    PNG = "png"


def draw(
    definition: Definition, form: PictureFormat, *, overview: bool, trace: Path | None, output: Path | None
) -> None:
    """Write the picture to a file, or to standard output. Raises `UsageError` where that cannot be done."""
    path = read_trace(trace) if trace is not None else None
    try:
        picture = _picture(definition, form, overview=overview, trace=path)
    except (diagram.GraphvizError, diagram.TraceError) as error:
        raise UsageError(str(error)) from error
    if output is None:
        if form is PictureFormat.PNG and sys.stdout.isatty():
            raise UsageError("A PNG image is no text for a terminal; write it to a file with -o FILE.")
        sys.stdout.buffer.write(picture)
        sys.stdout.buffer.flush()
        return
    try:
        output.write_bytes(picture)
    except OSError as error:
        raise UsageError(f"The picture could not be written: {error}.") from error


def _picture(definition: Definition, form: PictureFormat, *, overview: bool, trace: list[str] | None) -> bytes:
    match form:
        case PictureFormat.DOT:
            return diagram.dot(definition, overview=overview, trace=trace).encode()
        case PictureFormat.MERMAID:
            return diagram.mermaid(definition, overview=overview, trace=trace).encode()
        case PictureFormat.SVG:
            return diagram.svg(definition, overview=overview, trace=trace).encode()
        case PictureFormat.PNG:
            return diagram.png(definition, overview=overview, trace=trace)
