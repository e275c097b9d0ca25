"""The directory that the built-in tools work in, and the check that no path leads out of it."""

from __future__ import annotations

from pathlib import Path

from fsm_agent.tools.faults import ToolConfigError, ToolError


class Workspace:
    """A directory; paths given by the model are read from it.

    >>> Workspace(".").resolve("../../etc/passwd")
    Traceback (most recent call last):
    fsm_agent.tools.faults.ToolError: The path '../../etc/passwd' leads out of the working directory.
    """

    def __init__(self, root: str | Path) -> None:
        """Raises `ToolConfigError` if `root` is no directory."""
        self.root = Path(root).resolve()
        if not self.root.is_dir():
            raise ToolConfigError(f"The working directory {str(root)!r} of the tools is no directory.")

    def resolve(self, path: str) -> Path:
        """The file that a path means, links followed. Raises `ToolError` if it is outside.

        Who can make links while a tool runs could still lead it out: the model can, with `run_command`, which may go
        anywhere anyway.
        """
        try:
            resolved = (self.root / path).resolve()
        except (ValueError, OSError, RuntimeError) as error:  # NUL bytes, a loop of links, too long
            raise ToolError(f"The path {path[:200]!r} cannot be read: {error}.") from error
        if not resolved.is_relative_to(self.root):
            raise ToolError(f"The path {path[:200]!r} leads out of the working directory.")
        return resolved

    def shown(self, path: Path) -> str:
        """The path as the model knows it: from the working directory on."""
        return path.relative_to(self.root).as_posix()
