"""The overview: one box per state, one arrow per kind of move between two of them, the reasons as lists."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from fsm_agent.diagram.dot import quoted
from fsm_agent.diagram.overlay import Overlay
from fsm_agent.diagram.rows import Kind, kind_of
from fsm_agent.diagram.style import FONT, HEAD, INK, LOOKS, MISSED, QUIET, UNTAKEN, look_of, look_of_all
from fsm_agent.machine import Definition, Row


def groups(definition: Definition) -> dict[tuple[str, str, Kind], list[Row]]:
    """Rows that go on, by source, destination and kind, in the order of the declaration."""
    found: dict[tuple[str, str, Kind], list[Row]] = {}
    for row in definition.rows:
        if not definition.state(row.dest).final:
            found.setdefault((row.source, row.dest, kind_of(definition, row)), []).append(row)
    return found


def ends(definition: Definition) -> dict[str, list[Row]]:
    """Rows that end the run, by source."""
    found: dict[str, list[Row]] = {}
    for row in definition.rows:
        if definition.state(row.dest).final:
            found.setdefault(row.source, []).append(row)
    return found


class OverviewDot:
    """Draws one definition in few strokes."""

    def __init__(self, definition: Definition, overlay: Overlay | None) -> None:
        self.definition = definition
        self.overlay = overlay

    def text(self) -> str:
        return "\n".join(["digraph " + quoted(f"{self.definition.name} overview") + " {", *self._lines(), "}", ""])

    def _lines(self) -> Iterator[str]:
        yield f'  graph [rankdir=LR, bgcolor="white", pad=0.3, nodesep=0.4, ranksep=0.5, fontname="{FONT}", '
        yield f"    fontsize=10, labelloc=b, label=<{self._key()}>];"
        yield f'  node [fontname="{FONT}", fontsize=11, shape=plain, fontcolor="{INK}"];'
        yield f'  edge [fontname="{FONT}", fontsize=10, arrowsize=0.8];'
        yield f'  "(start)" [shape=circle, style=filled, fillcolor="{HEAD}", label="", width=0.18, tooltip="initial"];'
        for state in self.definition.states:
            if not state.final:
                yield self._state(state.name, state.note)
        yield f'  "(start)" -> {quoted(self.definition.initial)} [color="{HEAD}", penwidth=1.6];'
        for (source, dest, kind), rows in groups(self.definition).items():
            yield self._edge(source, dest, kind, rows)
        for source, rows in ends(self.definition).items():
            yield from self._ends(source, rows)

    def _key(self) -> str:
        """One line that tells what the colours mean."""
        cells = "".join(
            f'<TD BGCOLOR="{look.paper}"><FONT COLOR="{look.ink}"><B>{escape(look.words)}</B></FONT></TD>'
            for look in LOOKS.values()
        )
        return f'<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="6" CELLPADDING="4"><TR>{cells}</TR></TABLE>'

    def _state(self, name: str, note: str) -> str:
        performs = ", ".join(spec.name for spec in self.definition.effects if spec.state == name)
        performs = f"performs {performs}" if performs else ""
        about = "".join(f'<BR/><FONT COLOR="{QUIET}" POINT-SIZE="10">{escape(t)}</FONT>' for t in (note, performs) if t)
        label = f'<FONT POINT-SIZE="15"><B>{escape(name)}</B></FONT>{about}'
        return (
            f'  {quoted(name)} [shape=box, style="rounded,filled", fillcolor="#f8fafc", color="{HEAD}", penwidth=1.6, '
            f'margin="0.2,0.14", label=<{label}>, tooltip={quoted(name)}];'
        )

    def _edge(self, source: str, dest: str, kind: Kind, rows: Sequence[Row]) -> str:
        lines = "".join(
            f'<TR><TD ALIGN="LEFT"><FONT COLOR="{look_of(self.definition, self.overlay, row).ink}">'
            f"{escape(self._words(row))}</FONT></TD></TR>"
            for row in rows
        )
        return (
            f"  {quoted(source)} -> {quoted(dest)} "
            f'[label=<<TABLE BORDER="0" CELLPADDING="0" CELLSPACING="0">{lines}</TABLE>>, '
            f"{look_of_all(self.definition, self.overlay, rows).pen}, "
            f"tooltip={quoted(f'{source} to {dest}: {LOOKS[kind].words}')}];"
        )

    def _ends(self, source: str, rows: Sequence[Row]) -> Iterator[str]:
        name = quoted(f"ends of {source}")
        look = look_of_all(self.definition, self.overlay, rows)
        line = look.pen if look in (UNTAKEN, MISSED) else f'color="{QUIET}", penwidth=1.3'
        head = (
            f'<TR><TD COLSPAN="2" BGCOLOR="{HEAD}"><FONT COLOR="white"><B>{escape(rows[0].dest)}</B></FONT></TD></TR>'
        )
        table = (
            f'<TABLE BORDER="2" CELLBORDER="0" CELLSPACING="0" CELLPADDING="3" COLOR="{HEAD}">'
            f"{head}{''.join(self._end(row) for row in rows)}</TABLE>"
        )
        yield f"  {name} [label=<{table}>, tooltip={quoted(f'how {source} may end the run')}];"
        yield f"  {quoted(source)} -> {name} [{line}, tooltip={quoted(f'{source} to {rows[0].dest}')}];"

    def _end(self, row: Row) -> str:
        look = look_of(self.definition, self.overlay, row)
        reason = f'<FONT COLOR="{look.ink}"><B>{escape(str(row.reason))}</B></FONT>'
        trigger = f'<FONT COLOR="{QUIET}">{escape(self._words(row))}</FONT>'
        cells = (f'<TD ALIGN="LEFT" BGCOLOR="{look.paper}">{text}</TD>' for text in (reason, trigger))
        return f"<TR>{''.join(cells)}</TR>"

    def _words(self, row: Row) -> str:
        mark = self.overlay.mark(row.key) if self.overlay else ""
        return f"{row.trigger}  ({mark})" if mark else row.trigger
