"""Runs that together go through every transition of a machine, and through every two that can follow each other."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, TypeAlias

from fsm_agent.machine import Ask, Automaton, Control, Definition, HoleError, Row
from fsm_agent.verify import Witness, replay, transition_pairs
from fsm_agent.verify.bounds_given import Bounds, bounds_of
from fsm_agent.verify.witness import Outcome, witness

__all__ = ["Cover", "Key", "Pair", "covering_witnesses", "pairs_of"]

Key: TypeAlias = tuple[str, str]
"""A row, by its source and trigger."""
Pair: TypeAlias = tuple[Key, Key]
"""Two rows that fire one after the other."""


@dataclass(frozen=True, slots=True)
class Cover:
    """Every pair of rows that some run fires one after the other, and runs that go through all of them."""

    pairs: frozenset[Pair]
    """Which pairs there are: each of these is reachable, and no other is."""
    witnesses: tuple[Witness, ...]
    """They fire every row that any run fires, and every pair."""

    @property
    def rows(self) -> frozenset[Key]:
        """The rows that the runs fire."""
        return frozenset(key for run in self.witnesses for key in _keys(run))


def covering_witnesses(definition: Definition, limits: Bounds = None, *, ending: str | None = None) -> Cover:
    """Runs that cover all transitions and all pairs of transitions that are reachable under these limits.

    For each pair the checker finds a shortest run or proves that there is none; runs whose pairs others have too are
    left out. Small limits give short runs. With `ending`, a run that is not at its end goes on to this terminal reason
    by the shortest way, where there is one. Raises `UndecidedPairError` if the checker cannot decide a pair.

    >>> from fsm_agent.machine import AGENT_LOOP, LoopLimits
    >>> cover = covering_witnesses(AGENT_LOOP, LoopLimits(max_turns=3))
    >>> (("calling_model", "tools_requested"), ("executing_tools", "next_turn")) in cover.pairs
    True
    """
    bounds = bounds_of(definition, limits)
    automaton = Automaton(definition, bounds)
    by_pair = transition_pairs(definition, bounds)
    runs = list(_enough([*by_pair.values(), *_first_moves(automaton)]))
    if ending is not None:
        runs = [_ended(automaton, run, ending) for run in runs]
    for run in runs:
        replay(definition, bounds, run.steps)
    return Cover(frozenset(by_pair), tuple(runs))


_Facts: TypeAlias = tuple[tuple[str, str], ...]
_Place: TypeAlias = tuple[Control, _Facts]
WAYS: Final = 50_000
"""Configurations that are looked at for a way to the end."""


def _ended(automaton: Automaton, run: Witness, reason: str) -> Witness:
    """The run with the shortest way on to a terminal reason; as it is, if it has ended or none was found."""
    start = _end_of(automaton, run)
    before: dict[_Place, tuple[_Place, Outcome | Row]] = {}
    waiting = deque([start] if run.reason is None else [])
    while waiting and len(before) < WAYS:
        here = waiting.popleft()
        for event, there in _after(automaton, here):
            if isinstance(event, Row) and event.reason is not None and event.reason != reason:
                continue
            if there != start and there not in before:
                before[there] = (here, event)
                waiting.append(there)
            if isinstance(event, Row) and event.reason == reason:
                events = list(_way(before, start, there))
                return Witness((*run.steps, *witness(start[0].state, events).steps))
    return run


def _first_moves(automaton: Automaton) -> Iterator[Witness]:
    """The runs of one move."""
    waiting: deque[tuple[_Place, tuple[Outcome, ...]]] = deque([((automaton.initial, ()), ())])
    while waiting:
        here, outcomes = waiting.popleft()
        for event, there in _after(automaton, here):
            if isinstance(event, Row):
                yield witness(automaton.initial.state, [*outcomes, event])
            else:
                waiting.append((there, (*outcomes, event)))


def _end_of(automaton: Automaton, run: Witness) -> _Place:
    control, facts = automaton.initial, dict[str, str]()
    for step in run.steps:
        facts.update(step.outcomes)
        if step.trigger is not None:
            row = automaton.definition.row(step.state, step.trigger)
            control, facts = automaton.definition.updated(control, row), automaton.definition.inherited(row.dest, facts)
    return control, tuple(facts.items())


def _after(automaton: Automaton, here: _Place) -> Iterator[tuple[Outcome | Row, _Place]]:
    control, facts = here
    definition = automaton.definition
    try:
        decision = automaton.decide(control, dict(facts))
    except HoleError:
        return
    if isinstance(decision, Ask):
        for outcome in definition.effect(decision.effect).outcomes:
            yield (decision.effect, outcome), (control, (*facts, (decision.effect, outcome)))
    else:
        row = decision.row
        kept = definition.inherited(row.dest, dict(facts))
        yield row, (definition.updated(control, row), tuple(kept.items()))


def _way(before: dict[_Place, tuple[_Place, Outcome | Row]], start: _Place, end: _Place) -> Iterator[Outcome | Row]:
    if end != start:
        previous, event = before[end]
        yield from _way(before, start, previous)
        yield event


def _keys(run: Witness) -> Iterator[Key]:
    return ((step.state, step.trigger) for step in run.steps if step.trigger is not None)


def pairs_of(run: Witness) -> frozenset[Pair]:
    """The pairs of rows that a run fires one after the other."""
    return frozenset(pairwise(_keys(run)))


def _enough(runs: Iterable[Witness]) -> Iterator[Witness]:
    """The longest first, without those that add nothing."""
    rows, pairs = set[Key](), set[Pair]()
    for run in sorted(dict.fromkeys(runs), key=lambda run: -len(run.word)):
        if not (rows.issuperset(_keys(run)) and pairs >= pairs_of(run)):
            rows.update(_keys(run))
            pairs |= pairs_of(run)
            yield run
