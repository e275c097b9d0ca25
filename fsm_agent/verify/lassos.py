"""Endless runs, for machines whose certificate is not complete.

An endless run goes round, from some time on, by rows that the certificate could not take away. So a cycle is looked for
among those rows, first with all counters hidden; it is then played on the machine's own configurations until one of
them comes back. Where a hidden counter stops it, that counter becomes visible, and the search begins again.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from fsm_agent.verify.certificate import Certificate, Key
from fsm_agent.verify.configurations import Configurations
from fsm_agent.verify.exhaustive import Exhaustive
from fsm_agent.verify.explore import cycle
from fsm_agent.verify.layout import Layout
from fsm_agent.verify.search import Abstraction, Found, Goal, Search, TooLargeError, Undecided, Visible
from fsm_agent.verify.system import Ask, Choice, Happening, Move
from fsm_agent.verify.witness import Event, Lasso, witness

LAPS = 10_000
"""Times that a cycle is gone round while counters still change; they stay at their bounds long before."""


@dataclass(frozen=True, slots=True)
class Blocked:
    """Names that stopped a cycle from being gone round on the machine."""

    names: frozenset[str]


Edge = tuple[int, Happening, int]


def endless(search: Search, certificate: Certificate) -> Lasso | Undecided | None:
    """A run that never ends, by rows that the certificate leaves; None if there is none under these limits."""
    if isinstance(search, Exhaustive):
        return cycle(search.exploration, frozenset(certificate.left))
    if certificate.free:
        found = _endless(search, frozenset(certificate.free))
        if isinstance(found, Lasso):
            return found
    return _endless(search, frozenset(certificate.left))


def _endless(search: Search, rows: frozenset[Key]) -> Lasso | Undecided | None:
    layout = search.configurations.layout
    visible: dict[str, int] = {}
    while True:
        shown: Visible = frozenset(visible.items())
        try:
            abstraction = search.abstraction(shown)
        except TooLargeError as error:
            return Undecided(f"An endless run was neither found nor excluded: {error}.")
        loop = shortest_cycle(abstraction, rows)
        if loop is None:
            return None
        outcome = _played(search, abstraction, loop)
        if not isinstance(outcome, Blocked):
            return outcome
        hidden = {name for name in layout.fields if name not in visible and layout.domain(name) > 1}
        names = outcome.names & hidden or hidden
        if not names:
            return Undecided("An endless run was neither found nor excluded: no cycle of the abstraction goes round.")
        visible[min(sorted(names), key=layout.domain)] = 0


def shortest_cycle(abstraction: Abstraction, rows: frozenset[Key]) -> list[Edge] | None:
    """The shortest cycle of an abstraction by these rows; it begins with a row that fires."""
    after: dict[int, list[tuple[Happening, int]]] = {}
    for node in abstraction.nodes:
        after[node] = [
            (happening, there)
            for happening in abstraction.happenings(node)
            if isinstance(happening, Ask) or (isinstance(happening, Move) and happening.row.key in rows)
            for there in abstraction.after(happening, node)
        ]
    best: list[Edge] | None = None
    for node, edges in sorted(after.items()):
        for happening, there in edges:
            if isinstance(happening, Move):
                rest = _way(after, there, node, None if best is None else len(best) - 2)
                if rest is not None:
                    best = [(node, happening, there), *rest]
    return best


def _way(after: dict[int, list[tuple[Happening, int]]], start: int, end: int, most: int | None) -> list[Edge] | None:
    """A shortest way from start to end, no longer than `most` edges."""
    came_from: dict[int, Edge | None] = {start: None}
    depth = {start: 0}
    waiting = deque([start])
    while waiting:
        here = waiting.popleft()
        if here == end:
            way: list[Edge] = []
            edge = came_from[here]
            while edge is not None:
                way.append(edge)
                edge = came_from[edge[0]]
            return way[::-1]
        if most is not None and depth[here] >= most:
            continue
        for happening, there in after[here]:
            if there not in came_from:
                came_from[there], depth[there] = (here, happening, there), depth[here] + 1
                waiting.append(there)
    return None


def _played(search: Search, abstraction: Abstraction, loop: list[Edge]) -> Lasso | Blocked | Undecided:
    """Go to the first row of the cycle on the machine, then round and round until a configuration comes back."""
    configurations = search.configurations
    first = loop[0]

    def fits(number: int, packed: int, layout: Layout) -> bool:
        return layout is configurations.layout and abstraction.of(number << configurations.bits | packed) == first[0]

    start = Goal("the cycle", frozenset([(first[0] >> configurations.bits, first[1])]), fits, abstraction.visible)
    answer = search.find(start)
    if isinstance(answer, Undecided):
        return answer
    if not isinstance(answer, Found):
        asked = (search.configurations.reads[node >> search.configurations.bits] for node, _, _ in loop)
        return Blocked(search.configurations.layout.names_in(*asked))
    here = answer.at
    laps: list[list[Event]] = []
    at: dict[int, int] = {}
    for lap in range(LAPS):
        if here in at:
            return _lasso(configurations, answer, laps, at[here])
        at[here] = lap
        events: list[Event] = []
        for edge in loop:
            step = _step(configurations, abstraction, here, edge)
            if isinstance(step, Blocked):
                return step
            here, event = step
            events.append(event)
        laps.append(events)
    return Undecided(f"An endless run was neither found nor excluded: no configuration came back in {LAPS:,} laps.")


def _step(
    configurations: Configurations, abstraction: Abstraction, here: int, edge: Edge
) -> tuple[int, Event] | Blocked:
    node, wanted, there = edge
    happening = configurations.happening(here)
    if happening != wanted:
        return Blocked(_hidden(configurations, abstraction, here))
    situation = there >> configurations.bits
    for after in configurations.after(happening, here):
        if after >> configurations.bits == situation:
            return after, configurations.event(here, after)
    return Blocked(_hidden(configurations, abstraction, node))


def _hidden(configurations: Configurations, abstraction: Abstraction, here: int) -> frozenset[str]:
    """The hidden names that were asked about on the way to what happens here."""
    number, control = here >> configurations.bits, here & configurations.control_mask
    state = configurations.system.situations[number].state
    node, names = configurations.system.nodes[number], frozenset[str]()
    while isinstance(node, Choice):
        names |= node.atom.reads - abstraction.visible
        node = node.yes if configurations.layout.answer(node.atom, control, state) else node.no
    return names


def _lasso(configurations: Configurations, answer: Found, laps: list[list[Event]], back: int) -> Lasso:
    """Turned so that it begins where a state is entered."""
    before = [*answer.events, *(event for lap in laps[:back] for event in lap)]
    loop = [event for lap in laps[back:] for event in lap]
    # The cycle begins with the firing of a row: the stem takes that row along, and the loop ends with it.
    stem, loop = [*before, loop[0]], [*loop[1:], loop[0]]
    steps = witness(configurations.system.definition.initial, stem).steps
    start = steps[-1].dest
    assert start is not None
    return Lasso(steps, witness(start, loop).steps)
