"""Colours and words that every form of the diagram shares."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from fsm_agent.diagram.overlay import Overlay
from fsm_agent.diagram.rows import Kind, kind_of
from fsm_agent.machine import Definition, Row


class Look(NamedTuple):
    """How a kind of row is drawn. Line styles tell the kinds apart where colours do not."""

    ink: str
    paper: str
    style: str
    width: float
    words: str

    @property
    def pen(self) -> str:
        """The DOT attributes of a line."""
        return f'color="{self.ink}", style={self.style}, penwidth={self.width}'


LOOKS: Final = {
    Kind.STEP: Look("#475569", "#f1f5f9", "solid", 1.3, "next phase"),
    Kind.TURN: Look("#1d4ed8", "#dbeafe", "solid", 2.0, "goes on: a new turn"),
    Kind.REPAIR: Look("#b45309", "#fef3c7", "dashed", 1.3, "recovery, bounded"),
    Kind.SUCCESS: Look("#15803d", "#dcfce7", "solid", 2.0, "end: completed"),
    Kind.FAILURE: Look("#b91c1c", "#fee2e2", "solid", 1.3, "end: any other reason"),
    Kind.ABORT: Look("#7e22ce", "#f3e8ff", "dotted", 1.3, "end: aborted"),
}
UNTAKEN: Final = Look("#b4bfcc", "#ffffff", "solid", 1.0, "not on the path")
"""A row beside the path of a run."""
MISSED: Final = Look("#be123c", "#ffffff", "dotted", 1.3, "never taken")
"""A row that no run has taken."""

INK: Final = "#0f172a"
QUIET: Final = "#64748b"
BORDER: Final = "#94a3b8"
HEAD: Final = "#1e293b"
HEAD_QUIET: Final = "#cbd5e1"
FONT: Final = "Helvetica,Arial,sans-serif"


def look_of(definition: Definition, overlay: Overlay | None, row: Row) -> Look:
    """The look of a row: that of its kind or, under an overlay, of a row that was not taken."""
    if overlay is None or overlay.count(row.key):
        return LOOKS[kind_of(definition, row)]
    return UNTAKEN if overlay.is_path else MISSED


def look_of_all(definition: Definition, overlay: Overlay | None, rows: Iterable[Row]) -> Look:
    """The look of something that stands for several rows: as if taken, if one of them was."""
    looks = [look_of(definition, overlay, row) for row in rows]
    return next((look for look in looks if look not in (UNTAKEN, MISSED)), looks[0])
