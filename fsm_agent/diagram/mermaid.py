"""The diagram as Mermaid text, which GitHub and many editors draw by themselves."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from fsm_agent.diagram.overlay import Overlay
from fsm_agent.diagram.overview import ends, groups
from fsm_agent.diagram.rows import guard_text, kind_of
from fsm_agent.diagram.style import LOOKS
from fsm_agent.machine import Definition, Reset, Row

# Mermaid gives these words a meaning of their own where a state's name could stand.
RESERVED = frozenset(("as", "class", "classdef", "click", "default", "direction", "end", "note", "state", "style"))
BREAK = "<br/>"
# What stands for characters of Mermaid's own syntax: labels of its state diagrams know no escapes.
INSTEAD = {" < ": " below ", "<": "(", ">": ")", ";": ",", "#": "No. ", '"': "'", ":": " ", "\n": " "}


class MermaidText:
    """Writes one definition as a `stateDiagram-v2`: the overview, or every row with its guards and updates."""

    def __init__(self, definition: Definition, overlay: Overlay | None, *, overview: bool) -> None:
        self.definition = definition
        self.overlay = overlay
        self.overview = overview
        self.states = [state.name for state in definition.states if not state.final]
        self.finals = [state.name for state in definition.states if state.final]
        lists = [f"{source} ends" for source in ends(definition)]
        self.ids = _identifiers([*self.states, *self.finals, *definition.reasons, *lists])

    def text(self) -> str:
        return "\n".join([*self._head(), *(f"    {line}" for line in self._lines())]) + "\n"

    def _head(self) -> Iterator[str]:
        form = " overview" if self.overview else ""
        yield from ("---", f"title: {self.definition.name}{form}", "---", "stateDiagram-v2")

    def _lines(self) -> Iterator[str]:
        yield "direction LR"
        for name in self.states:
            yield f'state "{_plain(name)}" as {self.ids[name]}'
        yield f"[*] --> {self.ids[self.definition.initial]}"
        for (source, dest, _), rows in groups(self.definition).items():
            yield f"{self.ids[source]} --> {self.ids[dest]} : {self._label(rows)}"
        for final in self.finals:
            yield from (self._final_lists(final) if self.overview else self._final_reasons(final))
            yield f"{self.ids[final]} --> [*]"

    def _final_lists(self, final: str) -> Iterator[str]:
        """Inside the final state: for each source, the list of its reasons."""
        lists = {source: [row for row in rows if row.dest == final] for source, rows in ends(self.definition).items()}
        yield f'state "{_plain(final)}" as {self.ids[final]} {{'
        for source, rows in lists.items():
            lines = BREAK.join(_plain(f"{row.reason} ({self._marked(row, row.trigger)})") for row in rows)
            yield f'    state "{lines}" as {self.ids[f"{source} ends"]}'
        yield "}"
        for source in lists:
            yield f"{self.ids[source]} --> {self.ids[f'{source} ends']}"

    def _final_reasons(self, final: str) -> Iterator[str]:
        """Inside the final state: one state per reason, coloured."""
        into = [row for row in self.definition.rows if row.dest == final]
        reasons = {str(row.reason): kind_of(self.definition, row) for row in reversed(into)}
        yield f'state "{_plain(final)}" as {self.ids[final]} {{'
        for reason in reversed(reasons):
            yield f'    state "{_plain(reason)}" as {self.ids[reason]}'
        yield "}"
        pairs: dict[tuple[str, str], list[Row]] = {}
        for row in into:
            pairs.setdefault((row.source, str(row.reason)), []).append(row)
        for (source, reason), rows in pairs.items():
            yield f"{self.ids[source]} --> {self.ids[reason]} : {self._label(rows)}"
        for kind in dict.fromkeys(reversed(reasons.values())):
            members = ",".join(self.ids[reason] for reason in reversed(reasons) if reasons[reason] is kind)
            yield f"classDef {kind} fill:{LOOKS[kind].paper},stroke:{LOOKS[kind].ink},color:{LOOKS[kind].ink}"
            yield f"class {members} {kind}"

    def _label(self, rows: Sequence[Row]) -> str:
        bullet = "\N{BULLET} " if len(rows) > 1 and not self.overview else ""
        return BREAK.join(bullet + _plain(self._row(row)) for row in rows)

    def _row(self, row: Row) -> str:
        if self.overview:
            return self._marked(row, row.trigger)
        guards = " and ".join(guard_text(self.definition, guard, inner=len(row.when) > 1) for guard in row.when)
        changes = ", ".join(str(update) for update in row.update if not isinstance(update, Reset))
        parts = [row.trigger, f"[{guards}]" if guards else "", f"/ {changes}" if changes else ""]
        return self._marked(row, " ".join(part for part in parts if part))

    def _marked(self, row: Row, text: str) -> str:
        mark = self.overlay.mark(row.key) if self.overlay else ""
        return f"{text} \N{EM DASH} {mark}" if mark else text


def _plain(text: str) -> str:
    for syntax, word in INSTEAD.items():
        text = text.replace(syntax, word)
    return text


def _identifiers(names: Iterable[str]) -> dict[str, str]:
    """A name that Mermaid takes for each state: its own where that is possible."""
    found: dict[str, str] = {}
    for name in names:
        identifier = re.sub(r"\W", "_", name, flags=re.ASCII)
        while not identifier or identifier.lower() in RESERVED or identifier in found.values():
            identifier += "_"
        found[name] = identifier
    return found
