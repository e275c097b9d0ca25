"""Runs for large limits: found for small ones, and the round that counts repeated more often.

A run that counts to ten thousand is ten thousand rounds of the same. So the limit is made small, the run found, and its
repeated rounds multiplied; the machine under its own limits then has to follow it, or it is no run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fsm_agent.machine import Definition, Increment, Row
from fsm_agent.verify.configurations import Configurations
from fsm_agent.verify.decisions import atoms_of
from fsm_agent.verify.layout import Layout
from fsm_agent.verify.system import Ask, Move
from fsm_agent.verify.witness import Event

SMALL, STEP = 30, 10


@dataclass(frozen=True, slots=True)
class Shrunk:
    """A counter whose limit is made small."""

    counter: str
    limit: str
    bound: int
    small: int


def shrunk(definition: Definition, layout: Layout) -> list[Shrunk]:
    """The counters with many values, and smaller limits for them, in the same order of size."""
    found: list[tuple[str, str, int]] = []
    for counter in definition.counters:
        bounds = layout.bounds.get(counter.name, set[int]())
        if isinstance(counter.limit, str) and len(bounds) == 1 and layout.fields[counter.name].top is not None:
            [bound] = bounds
            if bound > 2 * SMALL and _only_reader(definition, counter.name, counter.limit):
                found.append((counter.name, counter.limit, bound))
    sizes = {size: SMALL + STEP * i for i, size in enumerate(sorted({bound for _, _, bound in found}))}
    return [Shrunk(name, limit, bound, sizes[bound]) for name, limit, bound in found]


def _only_reader(definition: Definition, counter: str, limit: str) -> bool:
    atoms = [*atoms_of(guard for row in definition.rows for guard in row.when)]
    return all(atom.reads == frozenset((counter,)) for atom in atoms if limit in atom.limits)


def pumped(events: Sequence[Event], counters: Sequence[Shrunk]) -> list[Event]:
    """The run with its rounds repeated, so that each counter comes as near to its own limit as to the small one."""
    visits = _visits(events)
    for counter in counters:
        visits = _stretched(visits, counter.counter, counter.bound - counter.small)
    return [event for visit in visits for event in visit]


def _visits(events: Sequence[Event]) -> list[tuple[Event, ...]]:
    visits: list[tuple[Event, ...]] = []
    visit: list[Event] = []
    for event in events:
        visit.append(event)
        if isinstance(event, Row):
            visits.append(tuple(visit))
            visit = []
    return [*visits, tuple(visit)]


def _stretched(visits: list[tuple[Event, ...]], name: str, missing: int, longest: int = 12) -> list[tuple[Event, ...]]:
    """The longest stretch of equal rounds that raise a counter, with more of them."""
    best: tuple[int, int, int] | None = None
    for period in range(1, longest + 1):
        at = 0
        while at + 2 * period <= len(visits):
            times = 1
            while visits[at + period * times : at + period * (times + 1)] == visits[at : at + period]:
                times += 1
            up = sum(_raises(event, name) for visit in visits[at : at + period] for event in visit)
            if times > 1 and up and missing % up == 0 and (best is None or times * period > best[2]):
                best = at, period, times * period
            at += 1 if times == 1 else period * (times - 1)
    if best is None:
        return visits
    at, period, _ = best
    up = sum(_raises(event, name) for visit in visits[at : at + period] for event in visit)
    return visits[:at] + visits[at : at + period] * (missing // up) + visits[at:]


def _raises(event: Event, name: str) -> int:
    if not isinstance(event, Row):
        return 0
    return sum(isinstance(update, Increment) and update.name == name for update in event.update)


def followed(configurations: Configurations, events: Sequence[Event]) -> int | None:
    """The configuration at the end of a run, or None if the machine does not follow it."""
    here = configurations.initial
    for event in events:
        happening = configurations.happening(here)
        if isinstance(happening, Move):
            if happening.row != event:
                return None
            [here] = configurations.after(happening, here)
        elif isinstance(happening, Ask) and not isinstance(event, Row) and event[0] == happening.effect:
            names = [name for name, _ in happening.branches]
            if event[1] not in names:
                return None
            here = configurations.after(happening, here)[names.index(event[1])]
        else:
            return None
    return here
