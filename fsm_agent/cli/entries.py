"""The lines of the display: a mark, and text beside it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text

from fsm_agent.cli.printable import printable
from fsm_agent.model.json_types import as_object, as_text, is_array

SHOWN_ERROR_LINES: Final = 4
SPINNER: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


@dataclass(frozen=True, slots=True)
class Marks:
    """The marks of the display; plain letters where the terminal has no more than those."""

    text: str = "●"
    done: str = "✓"
    failed: str = "✗"
    repaired: str = "↻"
    edited: str = "≡"
    arrow: str = " → "
    dot: str = " · "
    spinner: str = SPINNER


PLAIN_MARKS: Final = Marks("*", "+", "x", "~", "=", " > ", " - ", "|/-\\")


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the display: a mark, and text that is wrapped beside it."""

    mark: str
    text: Text
    style: str = ""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        indent = cell_len(self.mark) + 1
        for i, line in enumerate(self.text.wrap(console, max(options.max_width - indent, 10)) or [Text()]):
            line.rstrip()
            head = Text(self.mark if i == 0 else " " * (indent - 1), self.style)
            whole = Text.assemble(head, " ", line)
            whole.rstrip()
            yield whole


def last_lines(content: object) -> Iterable[RenderableType]:
    """The end of an error, where most programs say what was wrong."""
    if is_array(content):
        content = "\n".join(as_text((as_object(block) or {}).get("text")) for block in content)
    lines = [line for line in printable(as_text(content)).split("\n") if line.strip()]
    for line in lines[-SHOWN_ERROR_LINES:]:
        yield Entry("   ", Text(line.rstrip(), "red dim"))


def cropped(entry: Entry, width: int) -> RenderableType:
    """The entry in one line: the live part must not grow and shrink with every figure in it."""
    line = Text.assemble((entry.mark, entry.style), " ", entry.text)
    line.truncate(max(width - 1, 10), overflow="ellipsis")
    line.no_wrap = True
    return line
