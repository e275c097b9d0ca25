"""Reading, writing and editing text files."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import Field

from fsm_agent.tools.builtin.workspace import Workspace
from fsm_agent.tools.declare import Tool, tool
from fsm_agent.tools.faults import ToolError

BYTES_MAX: Final = 10_000_000
"""Larger files are not read whole: `search` and commands such as `sed` look into them."""
LINES_DEFAULT: Final = 2_000
LINE_MAX: Final = 2_000
_PLACES_SHOWN: Final = 5


def file_tools(workspace: Workspace) -> list[Tool[..., Any]]:
    """`read_file`, `write_file` and `edit_file` in the workspace."""

    @tool(read_only=True)
    def read_file(
        path: str,
        offset: Annotated[int, Field(ge=1)] = 1,
        limit: Annotated[int, Field(ge=1, le=100_000)] = LINES_DEFAULT,
    ) -> str:
        """Read a text file. Each line is shown with its number and a tab before it.

        Args:
            path: The file, from the working directory.
            offset: Number of the first line to read.
            limit: How many lines to read.
        """
        return _numbered(_read(workspace, path), path, offset, limit)

    @tool(idempotent=True)
    def write_file(path: str, content: str) -> str:
        """Write a whole text file, new or in the place of one that is there. Missing directories are made.

        To change a part of a file use edit_file.

        Args:
            path: The file, from the working directory.
            content: All that the file shall hold.
        """
        target = workspace.resolve(path)
        existed = target.exists()
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content.encode("utf-8", errors="replace"))
        except OSError as error:
            raise _refusal(path, error) from error
        return f"{'Replaced' if existed else 'Wrote'} {path} ({content.count(chr(10))} lines)."

    @tool
    def edit_file(path: str, old: Annotated[str, Field(min_length=1)], new: str, replace_all: bool = False) -> str:
        """Replace a piece of a text file by another.

        Args:
            path: The file, from the working directory.
            old: The piece as it stands in the file, whitespace included, without line numbers. It must be there
                exactly once, or replace_all be true: take enough of the lines around it.
            new: What shall stand there instead.
            replace_all: Replace each occurrence.
        """
        text = _read(workspace, path)
        old, new = _with_line_ends_of(text, old), _with_line_ends_of(text, new)
        lines = _lines_of(text, old)
        _check_edit(path, text, old, new, lines, replace_all=replace_all)
        try:
            workspace.resolve(path).write_bytes(text.replace(old, new).encode("utf-8"))
        except OSError as error:
            raise _refusal(path, error) from error
        return f"Edited {path} at line {_places(lines)}."

    return [read_file, write_file, edit_file]


def _read(workspace: Workspace, path: str) -> str:
    target = workspace.resolve(path)
    try:
        status = target.stat()
        if stat.S_ISDIR(status.st_mode):
            raise ToolError(f"{path} is a directory; list_files shows what is in it.")
        if not stat.S_ISREG(status.st_mode):  # a pipe or a device could block for ever
            raise ToolError(f"{path} is no regular file.")
        if status.st_size > BYTES_MAX:
            raise ToolError(
                f"{path} has {status.st_size} bytes, more than the {BYTES_MAX} that are read; search in it."
            )
        data = target.read_bytes()
    except FileNotFoundError as error:
        raise ToolError(f"There is no file {path}.{_alike(target)}") from error
    except OSError as error:
        raise _refusal(path, error) from error
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ToolError(f"{path} is no UTF-8 text ({len(data)} bytes).") from error
    if "\0" in text:
        raise ToolError(f"{path} is binary ({len(data)} bytes).")
    return text


def _alike(target: Path) -> str:
    """A hint at a file of nearly that name beside it."""
    import difflib

    if not target.parent.is_dir():
        return " Its directory does not exist either."
    close = difflib.get_close_matches(target.name, [each.name for each in target.parent.iterdir()], n=1)
    return f" Do you mean {close[0]}, beside it?" if close else ""


def _refusal(path: str, error: OSError) -> ToolError:
    return ToolError(f"{path}: {error.strerror or type(error).__name__}.")


def _numbered(text: str, path: str, offset: int, limit: int) -> str:
    if not text:
        return f"{path} is empty."
    lines = [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]
    if offset > len(lines):
        raise ToolError(f"{path} has {len(lines)} lines; there is no line {offset}.")
    shown = lines[offset - 1 : offset - 1 + limit]
    numbered = "\n".join(f"{number:>6}\t{_cut(line)}" for number, line in enumerate(shown, offset))
    last = offset - 1 + len(shown)
    if last < len(lines):
        numbered += f"\n[lines {offset} to {last} of {len(lines)}; go on with offset {last + 1}]"
    return numbered


def _cut(line: str) -> str:
    return line if len(line) <= LINE_MAX else f"{line[:LINE_MAX]} [{len(line) - LINE_MAX} more characters]"


def _with_line_ends_of(text: str, piece: str) -> str:
    """The model writes \\n; a file with \\r\\n keeps its own."""
    if "\r\n" in text and "\r\n" not in piece:
        return piece.replace("\n", "\r\n")
    return piece


def _lines_of(text: str, old: str) -> list[int]:
    """The numbers of the lines at which the piece begins."""
    lines: list[int] = []
    line, searched = 1, 0
    place = text.find(old)
    while place >= 0:
        line += text.count("\n", searched, place)
        searched = place
        lines.append(line)
        place = text.find(old, place + len(old))
    return lines


def _check_edit(path: str, text: str, old: str, new: str, lines: list[int], *, replace_all: bool) -> None:
    if old == new:
        raise ToolError("`old` and `new` are the same; nothing was changed.")
    if not lines:
        raise ToolError(
            f"`old` does not occur in {path}.{_nearly(text, old)} Read the file again; nothing was changed."
        )
    if len(lines) > 1 and not replace_all:
        raise ToolError(
            f"`old` occurs {len(lines)} times in {path}, at lines {_places(lines)}: give more of the lines around it, "
            "or set replace_all. Nothing was changed."
        )


def _nearly(text: str, old: str) -> str:
    """A hint if the first line of the piece is there but for its whitespace."""
    wanted = [line.split() for line in old.split("\n") if line.strip()][:1]
    for number, line in enumerate(text.split("\n"), 1):
        if wanted and line.split() == wanted[0]:
            return f" Line {number} is like its first line, but not with the same whitespace or what follows."
    return ""


def _places(lines: list[int]) -> str:
    shown = ", ".join(str(line) for line in lines[:_PLACES_SHOWN])
    return shown + (f" and {len(lines) - _PLACES_SHOWN} more" if len(lines) > _PLACES_SHOWN else "")
