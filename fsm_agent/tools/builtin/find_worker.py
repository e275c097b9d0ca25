"""A program of its own, on the standard library alone: lists or searches the files below a directory.

Its one argument is JSON: `do` (list, search), `start`, `pattern`, for a search also `files` and `ignore_case`. Paths
are from its working directory. Links are shown, never followed.
"""

# pathlib would take longer to import than most searches take.
# ruff: noqa: PTH112, PTH118, PTH119, PTH123

import json
import os
import re
import stat
import sys
from collections.abc import Iterator

LEFT_OUT = {
    ".git", ".hg", ".svn", ".venv", "venv", ".tox", ".nox", "node_modules", "__pycache__",
    ".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis",
}  # fmt: skip
FILES_SHOWN = 500
MATCHES_SHOWN = 200
LINE_SHOWN = 300
BYTES_MAX = 50_000_000


def path_pattern(pattern: str) -> re.Pattern[str]:
    """The expression of a glob pattern: `**` any directories, `*` no slash. Without a slash: of the file's name."""
    if "/" not in pattern and pattern != "**":
        pattern = f"**/{pattern}"
    pieces = re.findall(r"\*\*/|\*\*|\*|\?|\[!?[^\]]+\]|.", pattern, re.DOTALL)
    return re.compile("".join(expression_of(piece) for piece in pieces), re.DOTALL)


def expression_of(piece: str) -> str:
    if piece == "**/":
        return "(?:[^/]+/)*"
    if piece == "**":
        return ".*"
    if piece == "*":
        return "[^/]*"
    if piece == "?":
        return "[^/]"
    if piece.startswith("[") and len(piece) > 2:
        inner = piece[1:-1].replace("\\", "\\\\").replace("[", "\\[")
        return f"[^{inner[1:]}]" if inner.startswith("!") else f"[{inner}]"
    return re.escape(piece)


def files_below(start: str) -> Iterator[str]:
    """Paths of the files below a directory, sorted within each; or the path itself if it is a file."""
    if not os.path.isdir(start):
        yield start
        return
    for directory, directories, names in os.walk(start):
        directories[:] = sorted(name for name in directories if name not in LEFT_OUT)
        for name in sorted(names):
            yield os.path.normpath(os.path.join(directory, name))


def relative_to(start: str, path: str) -> str:
    return os.path.basename(path) if start == path else os.path.relpath(path, start)


def listed(start: str, pattern: str) -> Iterator[str]:
    fits = path_pattern(pattern)
    return (path for path in files_below(start) if fits.fullmatch(relative_to(start, path)))


def matches(path: str, expression: re.Pattern[str]) -> Iterator[str]:
    try:
        status = os.lstat(path)
        if not stat.S_ISREG(status.st_mode) or status.st_size > BYTES_MAX:
            return
        with open(path, "rb") as file:
            data = file.read()
    except OSError:
        return
    if b"\0" in data[:8192]:
        return
    for number, ended in enumerate(data.decode("utf-8", "replace").split("\n"), 1):
        line = ended.removesuffix("\r")
        if expression.search(line):
            shown = line if len(line) <= LINE_SHOWN else line[:LINE_SHOWN] + " [cut]"
            yield f"{path}:{number}: {shown}"


def searched(job: dict[str, object]) -> Iterator[str]:
    expression = re.compile(str(job["pattern"]), re.IGNORECASE if job["ignore_case"] else 0)
    for path in listed(str(job["start"]), str(job["files"])):
        yield from matches(path, expression)


def printed(lines: Iterator[str], most: int, nothing: str, more: str) -> str:
    shown: list[str] = []
    for line in lines:
        if len(shown) == most:
            shown.append(more)
            break
        shown.append(line)
    return "\n".join(shown) or nothing


def main() -> None:
    job = json.loads(sys.argv[1])
    if job["do"] == "list":
        lines = listed(job["start"], job["pattern"])
        text = printed(lines, FILES_SHOWN, "No file fits.", f"[more than {FILES_SHOWN} files; narrow the pattern]")
    else:
        more = f"[more than {MATCHES_SHOWN} matches; narrow the pattern or the path]"
        text = printed(searched(job), MATCHES_SHOWN, "No line matches.", more)
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))


if __name__ == "__main__":
    main()
