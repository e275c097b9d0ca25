"""`fsm-agent serve-model`: the scripted Messages API on loopback."""

from __future__ import annotations

import sys
from pathlib import Path

from fsm_agent.cli.errors import UsageError
from fsm_agent.testing.serve import serve


def serve_model(script: Path, port: int) -> None:
    """Serve until interrupted. The first line of output names the URL. Raises `UsageError` where it cannot start."""
    try:
        serve(script, port, say=_say)
    except (OSError, ValueError) as error:
        # No such file, no script, or the port is taken: each says so itself.
        raise UsageError(f"The model cannot be served: {error}") from error


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()  # whoever started us may wait for this line at the end of a pipe
