"""The command line, `fsm-agent`. typer and rich are needed here and nowhere else (extra `cli`)."""

import sys

from fsm_agent.cli.errors import UsageError

__all__ = ["UsageError", "main"]

WRONG_USAGE = 2
INTERRUPTED = 130


def main() -> None:
    """Run `fsm-agent` with the arguments of the process, and exit."""
    try:
        from fsm_agent.cli.app import app
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        sys.stderr.write(f"The command line needs {error.name}: pip install 'fsm_agent[cli]'.\n")
        sys.exit(WRONG_USAGE)
    try:
        app(prog_name="fsm-agent")
    except UsageError as error:
        sys.stderr.write(f"fsm-agent: {error}\n")
        sys.exit(WRONG_USAGE)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
