"""`fsm-agent export`: a declared machine in the notation of another tool."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from fsm_agent.cli.errors import UsageError
from fsm_agent.machine import Definition
from fsm_agent.verify.export import FORMATS, ExportError


def export(definition: Definition, limits: Mapping[str, int | None] | None, *, form: str, output: Path | None) -> None:
    """Write it to a file, or to standard output. Raises `UsageError` where that cannot be done."""
    if form not in FORMATS:
        raise UsageError(f"There is no format {form!r}; write one of {', '.join(FORMATS)}.")
    try:
        text = FORMATS[form](definition, limits)
    except (ExportError, ValueError) as error:
        raise UsageError(str(error)) from error
    if output is None:
        sys.stdout.write(text)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"The export could not be written: {error}.") from error
