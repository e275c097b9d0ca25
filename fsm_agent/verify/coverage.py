"""Runs that cover a machine: each pair of rows that can follow each other, with a shortest run through it.

(Runs through each single row are in the `rows` of a report.)
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TypeAlias, cast

from fsm_agent.machine import Definition, Row
from fsm_agent.verify.bounds_given import Bounds, bounds_of
from fsm_agent.verify.configurations import Configurations
from fsm_agent.verify.decisions import Decisions
from fsm_agent.verify.layout import Layout
from fsm_agent.verify.search import Found, Goal, Search, Undecided
from fsm_agent.verify.system import Happening, Move, Situation, System, happenings
from fsm_agent.verify.witness import Witness

Key: TypeAlias = tuple[str, str]
"""A row, as its source and trigger."""


class UndecidedPairError(ValueError):
    """A pair of rows of which it could not be found out whether they can follow each other."""


class _LastRow:
    """Remembers the row that fired last."""

    initial: Hashable = None

    def after_outcome(self, seen: Hashable, situation: Situation, effect: str, outcome: str) -> Hashable:  # noqa: ARG002
        return seen

    def after_row(self, seen: Hashable, situation: Situation, row: Row) -> Hashable:  # noqa: ARG002
        return row.key


def transition_pairs(definition: Definition, limits: Bounds = None) -> dict[tuple[Key, Key], Witness]:
    """Every pair of rows of which the second may fire right after the first, with a shortest run that ends with both.

    A pair that is not there is proved impossible under these limits. Raises `UndecidedPairError` if that is not clear.

    >>> from fsm_agent.machine import AGENT_LOOP
    >>> pairs = transition_pairs(AGENT_LOOP)
    >>> pairs[("calling_model", "tools_requested"), ("executing_tools", "defer")].word
    ('context_ready', 'tools_requested', 'defer')
    """
    bounds = bounds_of(definition, limits)
    system = System(Decisions(definition, bounds), _LastRow(), remember=True)
    search = Search(Configurations(system, Layout(definition, bounds)))
    places: dict[tuple[Key, Key], set[tuple[int, Happening]]] = {}
    for number, node in enumerate(system.nodes):
        before = system.situations[number].seen
        for _, happening in happenings(node):
            if before is not None and isinstance(happening, Move):
                pair = cast(Key, before), happening.row.key
                places.setdefault(pair, set()).add((number, happening))
    found: dict[tuple[Key, Key], Witness] = {}
    for pair, happening_in in places.items():
        answer = search.find(Goal(f"{pair[1][1]} after {pair[0][1]}", frozenset(happening_in)))
        if isinstance(answer, Undecided):
            raise UndecidedPairError(answer.why)
        if isinstance(answer, Found):
            found[pair] = answer.witness
    return found
