"""`python -m fsm_agent.diagram FOLDER` writes the diagrams of the shipped machine (`make diagrams`)."""

import sys
from pathlib import Path

from fsm_agent.diagram import GraphvizError
from fsm_agent.diagram.files import write_files
from fsm_agent.machine import AGENT_LOOP

USAGE = "Name one folder to write to: python -m fsm_agent.diagram diagrams\n"


def main(arguments: list[str]) -> int:
    """Write the files and say which changed. Exit code 2 for wrong usage, 1 where an SVG could not be drawn."""
    if len(arguments) != 1 or arguments[0].startswith("-"):
        sys.stderr.write(USAGE)
        return 2
    folder = Path(arguments[0])
    try:
        changed = write_files(AGENT_LOOP, folder)
    except GraphvizError as error:
        sys.stderr.write(f"The DOT and Mermaid files are written; the SVG files are not. {error}\n")
        return 1
    sys.stdout.write("".join(f"{path}\n" for path in changed) or f"{folder} is up to date.\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
