"""The detailed diagram: each state a table of its rows in document order, each row an arrow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape

from fsm_agent.diagram.overlay import Overlay
from fsm_agent.diagram.rows import Kind, ResetGroups, facts_text, guard_lines, kind_of, updates_text
from fsm_agent.diagram.style import (
    BORDER,
    FONT,
    HEAD,
    HEAD_QUIET,
    INK,
    LOOKS,
    QUIET,
    UNTAKEN,
    Look,
    look_of,
    look_of_all,
)
from fsm_agent.machine import Counter, Definition, Row, StateSpec

ROW_SYNTAX = [
    "trigger | effect: outcome, [guard] | counters and flags, actions",
    "Rows are offered from top to bottom; the first that fits fires.",
]


def quoted(text: str) -> str:
    """A DOT string."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


class DetailedDot:
    """Draws one definition. The order is that of the declaration, so the text is the same each time."""

    def __init__(self, definition: Definition, overlay: Overlay | None) -> None:
        self.definition = definition
        self.overlay = overlay
        self.groups = ResetGroups.of(definition)
        self.depth = _depths(definition)
        self.turning = {row.source for row in definition.rows if self.depth[row.dest] < self.depth[row.source]}

    def text(self) -> str:
        return "\n".join(["digraph " + quoted(self.definition.name) + " {", *self._lines(), "}", ""])

    def _lines(self) -> Iterator[str]:
        yield f'  graph [rankdir=LR, bgcolor="white", pad=0.3, nodesep=0.14, ranksep=0.8, fontname="{FONT}"];'
        yield f'  node [fontname="{FONT}", fontsize=10, shape=plain, fontcolor="{INK}"];'
        yield f'  edge [fontname="{FONT}", fontsize=9, arrowsize=0.7];'
        yield f'  "(start)" [shape=circle, style=filled, fillcolor="{HEAD}", label="", width=0.18, tooltip="initial"];'
        for state in self.definition.states:
            if not state.final:
                yield f"  {quoted(state.name)} [label=<{self._table(state)}>, tooltip={quoted(state.name)}];"
        for reason in self.definition.reasons:
            yield self._reason(reason)
        yield f'  "(legend)" [label=<{self._legend()}>, tooltip="legend"];'
        yield from self._columns()
        yield f'  {quoted(self.definition.initial)} -> "(legend)" [style=invis];'
        yield f'  "(start)" -> {quoted(self.definition.initial)}:head:w [color="{HEAD}", penwidth=1.6];'
        yield from self._edges()

    def _columns(self) -> Iterator[str]:
        columns: dict[int, list[str]] = {}
        for state in self.definition.states:
            if not state.final:
                columns.setdefault(self.depth[state.name], []).append(quoted(state.name))
        columns.setdefault(0, []).append('"(legend)"')
        for names in columns.values():
            yield f"  {{ rank=same; {'; '.join(names)}; }}"

    # ---- nodes

    def _table(self, state: StateSpec) -> str:
        effects = ", ".join(spec.name for spec in self.definition.effects if spec.state == state.name)
        about = [state.note] if state.note else []
        about += [f"performs {effects}"] if effects else []
        rows = "".join(self._row(row) for row in self.definition.rows_from(state.name))
        return (
            f'<TABLE BORDER="0" CELLBORDER="1" CELLSPACING="0" CELLPADDING="4" COLOR="{BORDER}">'
            f'<TR><TD PORT="head" COLSPAN="{4 if self.overlay else 3}" BGCOLOR="{HEAD}" ALIGN="LEFT" BALIGN="LEFT">'
            f'<FONT COLOR="white" POINT-SIZE="14"><B>{escape(state.name)}</B></FONT>'
            + "".join(f'<BR/><FONT COLOR="{HEAD_QUIET}">{escape(line)}</FONT>' for line in about)
            + f"</TD></TR>{rows}</TABLE>"
        )

    def _row(self, row: Row) -> str:
        look = self._look(row)
        ink, quiet = (UNTAKEN.ink, UNTAKEN.ink) if look is UNTAKEN else (INK, QUIET)
        place = self._place(row)
        facts = facts_text(self.definition, row)
        guards = [text for guard in row.when for text in guard_lines(self.definition, guard)]
        actions = [action.replace("_", " ") for action in row.do]
        cells = [
            _cell(look.paper, f"w{place}", (look.ink, [row.trigger], True)),
            _cell(look.paper, "", (ink, facts, False), (look.ink, guards, False)),
            _cell(look.paper, f"e{place}", (ink, updates_text(row, self.groups), False), (quiet, actions, False)),
        ]
        if self.overlay:
            cells.insert(1, _cell(look.paper, "", (look.ink, [self.overlay.mark(row.key)], True)))
        return f"<TR>{''.join(cells)}</TR>"

    def _reason(self, reason: str) -> str:
        look = look_of_all(self.definition, self.overlay, [row for row in self.definition.rows if row.reason == reason])
        return (
            f'  {_reason_node(reason)} [shape=box, style="rounded,filled", peripheries=2, label={quoted(reason)}, '
            f'color="{look.ink}", fillcolor="{look.paper}", fontcolor="{look.ink}", fontsize=11, '
            f'margin="0.12,0.05", height=0.28, tooltip={quoted("terminal reason " + reason)}];'
        )

    def _legend(self) -> str:
        lines = [_section("How to read a row", ROW_SYNTAX)]
        lines += [_cell(look.paper, "", (look.ink, [look.words], True)) for look in LOOKS.values()]
        lines.append(_section("Reset together", [f"{letter}: {names}" for letter, names in self.groups.legend()]))
        lines.append(_section("Counters and their max", [self._bound(counter) for counter in self.definition.counters]))
        lines.append(_section("Flags", [flag.name for flag in self.definition.flags]))
        table = "".join(f"<TR>{line}</TR>" for line in lines if line)
        return f'<TABLE BORDER="1" CELLBORDER="0" CELLSPACING="0" CELLPADDING="4" COLOR="{BORDER}">{table}</TABLE>'

    def _bound(self, counter: Counter) -> str:
        """`turn \N{LESS-THAN OR EQUAL TO} max_turns = 200`; without the number where the limit has no default."""
        field = self.definition.limits.model_fields.get(str(counter.limit))
        default = f" = {field.default}" if field and isinstance(field.default, int) else ""
        return f"{counter.name} \N{LESS-THAN OR EQUAL TO} {counter.limit}{default}"

    # ---- edges

    def _edges(self) -> Iterator[str]:
        bundles: dict[tuple[str, str, Kind], list[Row]] = {}
        for row in self.definition.rows:
            if self.definition.state(row.dest).final:
                yield self._edge(row, _reason_node(row.reason) + ":w")
            elif self.depth[row.dest] > self.depth[row.source]:
                yield self._edge(row, quoted(row.dest) + ":head:w")
            else:
                bundles.setdefault((row.source, row.dest, kind_of(self.definition, row)), []).append(row)
        for (source, dest, kind), rows in bundles.items():
            if source == dest:
                yield from (self._loop(row) for row in rows)
            else:
                yield from self._bundle(source, dest, kind, rows)

    def _edge(self, row: Row, head: str) -> str:
        place, look = self._place(row), self._look(row)
        # Weights: the way forward is drawn straight, and an abort never pulls its neighbours out of place.
        weight = 0 if kind_of(self.definition, row) is Kind.ABORT else 1 if row.reason else 4
        # Room for the points in which the rows that lead back from there join.
        length = 3 if row.dest in self.turning else 1
        return (
            f"  {quoted(row.source)}:e{place}:e -> {head} "
            f"[weight={weight}, minlen={length}, {look.pen}, tooltip={quoted(str(row))}];"
        )

    def _loop(self, row: Row) -> str:
        name = quoted(row.source)
        return f"  {name}:e{self._place(row)}:e -> {name}:head:e [{self._look(row).pen}, tooltip={quoted(str(row))}];"

    def _bundle(self, source: str, dest: str, kind: Kind, rows: Sequence[Row]) -> Iterator[str]:
        """Rows that lead back: they join in a point, and one arrow leads on. Drawn backwards, to keep the columns."""
        look = look_of_all(self.definition, self.overlay, rows)
        point = quoted(f"{source} {kind} {dest}")
        label = f"{source} to {dest}: {LOOKS[kind].words}"
        yield f'  {point} [shape=point, width=0.07, color="{look.ink}", tooltip={quoted(look.words)}];'
        # A pale arrow's head would cover those of the others.
        head = "none" if look is UNTAKEN else "back"
        yield f"  {quoted(dest)}:head:e -> {point} [dir={head}, weight=0, {look.pen}, tooltip={quoted(label)}];"
        for row in rows:
            yield (
                f"  {point} -> {quoted(source)}:w{self._place(row)}:w [dir=none, weight=2, {self._look(row).pen}, "
                f"tooltip={quoted(str(row))}];"
            )

    def _place(self, row: Row) -> int:
        return self.definition.rows_from(row.source).index(row)

    def _look(self, row: Row) -> Look:
        return look_of(self.definition, self.overlay, row)


def _reason_node(reason: str | None) -> str:
    return quoted(f"reason {reason}")


def _cell(paper: str, port: str, *parts: tuple[str, Sequence[str], bool]) -> str:
    """A table cell of lines; each part has its ink, its lines, and whether they are bold."""
    lines = "".join(
        f'<FONT COLOR="{ink}">{"<B>" if bold else ""}{escape(line)}{"</B>" if bold else ""}</FONT><BR ALIGN="LEFT"/>'
        for ink, texts, bold in parts
        for line in texts
        if line
    )
    name = f' PORT="{port}"' if port else ""
    return f'<TD{name} BGCOLOR="{paper}" ALIGN="LEFT" BALIGN="LEFT">{lines}</TD>'


def _section(title: str, lines: Sequence[str]) -> str:
    """A part of the legend, or '' if there is nothing to tell."""
    return _cell("white", "", (INK, [title], True), (QUIET, lines, False)) if lines else ""


def _depths(definition: Definition) -> Mapping[str, int]:
    """Moves from the initial state; states that cannot be reached come last."""
    depths = {definition.initial: 0}
    waiting = [definition.initial]
    while waiting:
        source = waiting.pop(0)
        for row in definition.rows_from(source):
            if row.dest not in depths:
                depths[row.dest] = depths[source] + 1
                waiting.append(row.dest)
    return {state.name: depths.get(state.name, len(definition.states)) for state in definition.states}
