"""Listing and searching files. A pattern may take for ever, so the work is done by a child that can be ended."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import Field

from fsm_agent.tools.builtin.process import environment_of_commands, run_program
from fsm_agent.tools.builtin.workspace import Workspace
from fsm_agent.tools.context import ToolContext
from fsm_agent.tools.declare import Tool, tool
from fsm_agent.tools.faults import ToolError

TIMEOUT: Final = 30.0
"""Seconds that listing or searching may take."""
_WORKER: Final = Path(__file__).with_name("find_worker.py")


def finding_tools(workspace: Workspace) -> list[Tool[..., Any]]:
    """`list_files` and `search` in the workspace."""

    @tool(read_only=True)
    async def list_files(context: ToolContext[Any], pattern: str = "**", path: str = ".") -> str:
        """List files whose path fits a pattern, sorted. Version control, caches and virtual environments are left out.

        Args:
            pattern: `*` is anything but a slash, `**` any directories, `?` one character. Without a slash it is
                compared with the name of each file in any directory: `*.py`, `src/**/test_*.py`.
            path: The directory to start from.
        """
        job = {"do": "list", "pattern": pattern, "start": _start(workspace, path)}
        return await _worked(workspace, job, context)

    @tool(read_only=True)
    async def search(
        context: ToolContext[Any],
        pattern: Annotated[str, Field(min_length=1)],
        path: str = ".",
        files: str = "**",
        ignore_case: bool = False,
    ) -> str:
        """Search text files for a regular expression; shows path, line number and line of each match.

        Args:
            pattern: A regular expression as in Python, matched within one line.
            path: The file, or the directory to start from.
            files: Only files that fit this pattern (as in list_files).
            ignore_case: Take upper and lower case as the same.
        """
        try:
            re.compile(pattern)
        except (re.error, OverflowError, RecursionError) as error:
            raise ToolError(f"The pattern is no regular expression: {error}.") from error
        start = _start(workspace, path)
        job = {"do": "search", "pattern": pattern, "start": start, "files": files, "ignore_case": ignore_case}
        return await _worked(workspace, job, context)

    return [list_files, search]


def _start(workspace: Workspace, path: str) -> str:
    start = workspace.resolve(path)
    if not start.exists():
        raise ToolError(f"There is no file or directory {path}.")
    return workspace.shown(start)


async def _worked(workspace: Workspace, job: dict[str, Any], context: ToolContext[Any]) -> str:
    try:
        finished = await run_program(
            # Isolated, without site packages: it starts fast, and nothing in the working directory is imported.
            [sys.executable, "-I", "-S", str(_WORKER), json.dumps(job)],
            directory=workspace.root,
            environment=environment_of_commands(),
            timeout=TIMEOUT,
            grace=context.limits.abort_grace / 2,
            on_text=lambda _: None,
        )
    except (OSError, ValueError) as error:
        raise ToolError(f"The search could not be started: {error}.") from error
    if finished.timed_out:
        raise ToolError(f"It took longer than {TIMEOUT:g} seconds: take a simpler pattern, or start deeper.")
    if finished.exit_code != 0:
        raise ToolError(finished.stderr.strip()[-500:] or "The search ended without a result.")
    return finished.stdout.rstrip("\n")
