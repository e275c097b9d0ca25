"""Runs that together go through every transition of a machine, and through every two that can follow each other."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from fsm_agent.machine import Definition, Row
from fsm_agent.verify import Witness, replay
from fsm_agent.verify.bounds_given import Bounds, bounds_of
from fsm_agent.verify.configurations import Configurations
from fsm_agent.verify.decisions import Decisions
from fsm_agent.verify.layout import Layout
from fsm_agent.verify.search import Found, Goal, Search, Undecided
from fsm_agent.verify.system import Happening, Move, Situation, System, happenings

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
    """The longest first. With every pair they cover every row that fires, but for one that is a whole run alone: then
    that run is among them."""

    @property
    def rows(self) -> frozenset[Key]:
        """The rows that the runs fire."""
        return frozenset(key for run in self.witnesses for key in _keys(run))


def covering_witnesses(definition: Definition, limits: Bounds = None) -> Cover:
    """Runs that cover all transitions and all pairs of transitions that are reachable under these limits.

    For each pair the checker finds a shortest run or proves that there is none; runs whose pairs others have too are
    left out. Small limits give short runs. Raises `RuntimeError` if the checker cannot decide a pair.

    >>> from fsm_agent.machine import AGENT_LOOP, LoopLimits
    >>> cover = covering_witnesses(AGENT_LOOP, LoopLimits(max_turns=3))
    >>> (("calling_model", "tools_requested"), ("executing_tools", "next_turn")) in cover.pairs
    True
    """
    bounds = bounds_of(definition, limits)
    system = System(Decisions(definition, bounds), _LastRow(), remember=True)
    search = Search(Configurations(system, Layout(definition, bounds)))
    runs: dict[Pair | Key, Witness] = {}
    for goal, happening in _goals(system).items():
        answer = search.find(Goal(f"The step {goal}", frozenset(happening)))
        if isinstance(answer, Undecided):
            raise RuntimeError(f"{answer.why} Give smaller limits.")
        if isinstance(answer, Found):
            replay(definition, bounds, answer.witness.steps)
            runs[goal] = answer.witness
    pairs = frozenset(pair for run in runs.values() for pair in pairs_of(run))
    return Cover(pairs, tuple(_enough(runs.values())))


class _LastRow:
    """Remembers the row that fired last."""

    initial: Hashable = None

    def after_outcome(self, seen: Hashable, situation: Situation, effect: str, outcome: str) -> Hashable:  # noqa: ARG002
        return seen

    def after_row(self, seen: Hashable, situation: Situation, row: Row) -> Hashable:  # noqa: ARG002
        return row.key


def _goals(system: System) -> dict[Pair | Key, set[tuple[int, Happening]]]:
    """Each pair that the graph of situations has, and each row that it has as a first one."""
    goals: dict[Pair | Key, set[tuple[int, Happening]]] = {}
    for number, node in enumerate(system.nodes):
        before = system.situations[number].seen
        for _, happening in happenings(node):
            if isinstance(happening, Move):
                key = happening.row.key
                goal: Pair | Key = key if before is None else (before, key)  # type: ignore[assignment]
                goals.setdefault(goal, set()).add((number, happening))
    return goals


def _keys(run: Witness) -> Iterator[Key]:
    return ((step.state, step.trigger) for step in run.steps if step.trigger is not None)


def pairs_of(run: Witness) -> frozenset[Pair]:
    """The pairs of rows that a run fires one after the other."""
    keys = list(_keys(run))
    return frozenset(zip(keys, keys[1:], strict=False))


def _enough(runs: Iterable[Witness]) -> Iterator[Witness]:
    """The longest first, without those that add nothing."""
    seen: set[Pair | Key] = set()
    for run in sorted(dict.fromkeys(runs), key=lambda run: -len(run.word)):
        new = {*pairs_of(run), *_keys(run)} - seen
        if new:
            seen |= new
            yield run
