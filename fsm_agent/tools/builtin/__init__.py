"""Tools for work in one directory: read, write, edit, list and search files, and run commands.

Built here rather than on the SDK's `agent_toolset`: its search runs on the event loop (a slow pattern stops the whole
program), its shell is one process that somebody must close, and its results hold no line numbers to go on from.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fsm_agent.tools.builtin.command import command_tool
from fsm_agent.tools.builtin.files import file_tools
from fsm_agent.tools.builtin.finding import finding_tools
from fsm_agent.tools.builtin.workspace import Workspace
from fsm_agent.tools.declare import Tool

__all__ = ["Workspace", "builtin_tools", "command_tool", "file_tools", "finding_tools"]


def builtin_tools(root: str | Path, *, command_timeout: float = 120.0) -> list[Tool[..., Any]]:
    """`read_file`, `write_file`, `edit_file`, `list_files`, `search` and `run_command` in the directory `root`.

    The file tools reach nothing outside `root`, also not through symbolic links. A command is a program like any other
    and may reach whatever its user may: leave `run_command` out, or ask for permission, where that matters.

    Args:
        root: an existing directory.
        command_timeout: seconds that a command may take if the model does not ask for another time (at most 600).

    Raises:
        ToolConfigError: `root` is no directory.

    >>> [tool.name for tool in builtin_tools(".")]
    ['read_file', 'write_file', 'edit_file', 'list_files', 'search', 'run_command']
    """
    workspace = Workspace(root)
    return [*file_tools(workspace), *finding_tools(workspace), command_tool(workspace, timeout=command_timeout)]
