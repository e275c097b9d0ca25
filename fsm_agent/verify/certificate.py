"""Termination for all limits: a lexicographic ranking, found by peeling.

In a strongly connected part of the machine, look for a counter that some row raises only while it is below its limit
and that no row of the part takes back (or a flag that is set only while it is not). Such a row cannot fire for ever
without leaving the part, so it lies on no endless run: take it away, and look at the parts that are left. If nothing
cyclic is left, no run is endless, whatever the limits are. The counters in the order in which they were used are the
ranking: with each move inside a part, the room left below the first one shrinks, or stays while the next one shrinks,
and so on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from fsm_agent.machine import Below, Flag, Increment, Row, Set
from fsm_agent.verify.decisions import Literal
from fsm_agent.verify.system import Move, System, happenings

Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Peel:
    """One component of the ranking: what bounds these rows among these states."""

    name: str
    limit: str | int | None
    """The limit below which the rows raise the counter; None for a flag."""
    rows: tuple[Key, ...]
    states: tuple[str, ...]

    @property
    def is_flag(self) -> bool:
        return self.limit is None

    def __str__(self) -> str:
        triggers = ", ".join(trigger for _, trigger in self.rows)
        s = "s" if len(self.rows) == 1 else ""
        states = ", ".join(self.states)
        if self.is_flag:
            return f"among {states}: {triggers} set{s} {self.name} while it is not set, and nothing there resets it"
        return f"among {states}: {triggers} raise{s} {self.name} below {self.limit}, and nothing there lowers it"


@dataclass(frozen=True, slots=True)
class Certificate:
    """The proof that every run ends for all limits, or the rows for which it could not be given."""

    peels: tuple[Peel, ...]
    left: tuple[Key, ...]
    """Rows that may still go round for ever."""
    free: tuple[Key, ...] = ()
    """Those of them that raise no counter below a bound and set no flag that is not set."""

    @property
    def complete(self) -> bool:
        return not self.left

    @property
    def order(self) -> tuple[str, ...]:
        """The counters and flags of the ranking, the strongest first."""
        return tuple(dict.fromkeys(peel.name for peel in self.peels))

    def words(self) -> list[str]:
        lines = [f"{number}. {peel}" for number, peel in enumerate(self.peels, 1)]
        if self.complete:
            lines.append("Nothing that goes round is left: every run ends, whatever the limits are.")
        else:
            rows = ", ".join(f"{source} --{trigger}-->" for source, trigger in self.left)
            lines.append(f"Nothing bounds these rows, which can follow each other for ever: {rows}.")
        return lines


Edge = tuple[int, Row | None, int]
"""From, the row that fires (None: an effect ends), to."""


def certify(system: System, unbounded: Iterable[str] = ()) -> Certificate:
    """Rank the rows of a system. Limits in `unbounded` are None: they bound nothing."""
    edges = [(a, h.row if isinstance(h, Move) else None, b) for a, h, b in system.edges()]
    guards = _sure_guards(system)
    without_bound = frozenset(unbounded)
    peels: list[Peel] = []
    left: dict[Key, None] = {}
    waiting = _parts(edges)
    while waiting:
        part = waiting.pop(0)
        peel = _peel(system, part, guards, without_bound)
        if peel is None:
            left.update((row.key, None) for _, row, _ in part if row is not None)
        else:
            peels.append(peel)
            taken = set(peel.rows)
            waiting = _parts([edge for edge in part if edge[1] is None or edge[1].key not in taken]) + waiting
    names = tuple(system.definition.initial_control())
    rows = {row.key: row for _, row, _ in edges if row is not None and row.key in left}
    free = [
        key
        for key in left
        if not any(any(True for _ in _bounds(rows[key], n, guards[key], without_bound)) for n in names)
    ]
    return Certificate(tuple(peels), tuple(left), tuple(free))


def _sure_guards(system: System) -> dict[Key, frozenset[Literal]]:
    """For each row, the answers without which it never fires."""
    sure: dict[Key, frozenset[Literal]] = {}
    for situation, node in zip(system.situations, system.nodes, strict=True):
        for path, happening in happenings(node):
            if isinstance(happening, Move):
                key, answers = happening.row.key, situation.known | frozenset(path)
                sure[key] = sure[key] & answers if key in sure else answers
    return sure


def _peel(
    system: System, part: Sequence[Edge], guards: Mapping[Key, frozenset[Literal]], unbounded: frozenset[str]
) -> Peel | None:
    """The counter or flag that takes the most rows out of a part."""
    rows = {row.key: row for _, row, _ in part if row is not None}
    states = tuple(dict.fromkeys(system.situations[a].state for a, _, _ in sorted(part, key=lambda edge: edge[0])))
    candidates: list[Peel] = []
    for name in system.definition.initial_control():
        if any(_lowers(row, name) for row in rows.values()):
            continue
        raising = [(key, limit) for key, row in rows.items() for limit in _bounds(row, name, guards[key], unbounded)]
        if raising:
            limits = list(dict.fromkeys(limit for _, limit in raising))
            candidates.append(Peel(name, limits[0], tuple(dict.fromkeys(key for key, _ in raising)), states))
    return max(candidates, key=lambda peel: len(peel.rows), default=None)


def _lowers(row: Row, name: str) -> bool:
    return any(update.name == name and not isinstance(update, (Increment, Set)) for update in row.update)


def _bounds(row: Row, name: str, sure: frozenset[Literal], unbounded: frozenset[str]) -> Iterable[str | int | None]:
    """The limits below which a row raises a counter; None once if it sets a flag that is not set."""
    for update in row.update:
        if update.name != name:
            continue
        if isinstance(update, Set) and (Flag(name), False) in sure:
            yield None
        if isinstance(update, Increment):
            for atom, answer in sorted(sure, key=str):
                if isinstance(atom, Below) and atom.counter == name and answer and atom.limit not in unbounded:
                    yield atom.limit
                    return


def _parts(edges: Sequence[Edge]) -> list[list[Edge]]:
    """The strongly connected parts that hold an edge, in the order of their first situation."""
    part_of = _components(edges)
    parts: dict[int, list[Edge]] = {}
    for edge in edges:
        if part_of[edge[0]] == part_of[edge[2]]:
            parts.setdefault(part_of[edge[0]], []).append(edge)
    return sorted(parts.values(), key=lambda part: min(edge[0] for edge in part))


def _components(edges: Sequence[Edge]) -> dict[int, int]:
    """Tarjan's algorithm, without recursion."""
    after: dict[int, list[int]] = {}
    for a, _, b in edges:
        after.setdefault(a, []).append(b)
        after.setdefault(b, [])
    number: dict[int, int] = {}
    low: dict[int, int] = {}
    component: dict[int, int] = {}
    trail: list[int] = []
    for start, first in after.items():
        if start in number:
            continue
        number[start] = low[start] = len(number)
        trail.append(start)
        stack = [(start, iter(first))]
        while stack:
            here, rest = stack[-1]
            there = next(rest, None)
            if there is None:
                stack.pop()
                if stack:
                    low[stack[-1][0]] = min(low[stack[-1][0]], low[here])
                if low[here] == number[here]:
                    while True:
                        member = trail.pop()
                        component[member] = here
                        if member == here:
                            break
            elif there not in number:
                number[there] = low[there] = len(number)
                trail.append(there)
                stack.append((there, iter(after[there])))
            elif there not in component:
                low[here] = min(low[here], number[there])
    return component
