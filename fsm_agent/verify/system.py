"""The machine as a graph: situations, and what may happen in each.

A configuration is a situation (state, known outcomes, terminal reason) with a control record. The situations are few;
they are found by following every branch of every decision tree, whatever the counters are. That makes the graph of
situations an over-approximation: what is impossible in it is impossible, for any limits that the trees were made for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from fsm_agent.machine import Definition, Guard, Limits, Row
from fsm_agent.verify.decisions import (
    Asked,
    Decisions,
    Ended,
    Facts,
    Fallen,
    Fired,
    Known,
    Leaf,
    Literal,
    Test,
    Tree,
)


class Observer(Protocol):
    """Remembers something about the past of a run: a further, finite part of each situation."""

    @property
    def initial(self) -> Hashable: ...

    def after_outcome(self, seen: Hashable, situation: Situation, effect: str, outcome: str) -> Hashable: ...

    def after_row(self, seen: Hashable, situation: Situation, row: Row) -> Hashable: ...


@dataclass(frozen=True, slots=True)
class Situation:
    """Everything of a configuration but the control record."""

    state: str
    facts: Facts = ()
    reason: str | None = None
    seen: Hashable = None
    known: Known = frozenset()
    """Answers of guards earlier in this visit (only where the system is made with `remember`)."""

    def __str__(self) -> str:
        known = ", ".join(f"{effect}: {outcome}" for effect, outcome in self.facts)
        return f"{self.state}[{known}]" if known else self.state


# A system makes each happening once, so that two are equal when they are the same object.


@dataclass(frozen=True, slots=True, eq=False)
class Ask:
    """An effect is performed; each outcome leads to a situation."""

    effect: str
    requests: int
    branches: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Move:
    """A row fires and leads to a situation."""

    row: Row
    dest: int


@dataclass(frozen=True, slots=True, eq=False)
class Hole:
    """Nothing can happen, though the state is not final."""


@dataclass(frozen=True, slots=True, eq=False)
class End:
    """Nothing happens any more: the run is over."""


Happening: TypeAlias = Ask | Move | Hole | End


@dataclass(frozen=True, slots=True)
class Choice:
    """The next happening depends on the control record."""

    atom: Guard
    yes: Choice | Happening
    no: Choice | Happening


Node: TypeAlias = Choice | Happening


def happenings(node: Node, path: tuple[Literal, ...] = ()) -> Iterator[tuple[tuple[Literal, ...], Happening]]:
    """Each happening that a node may come to, with the answers that lead to it."""
    if isinstance(node, Choice):
        yield from happenings(node.yes, (*path, (node.atom, True)))
        yield from happenings(node.no, (*path, (node.atom, False)))
    else:
        yield path, node


class System:
    """All situations of a definition and what may happen in them; number 0 is the initial one.

    With `remember`, situations are told apart by what guards have answered earlier in the visit too. There are somewhat
    more of them then, and the graph promises less that the machine does not keep.
    """

    def __init__(self, decisions: Decisions, observer: Observer | None = None, *, remember: bool = False) -> None:
        self.decisions = decisions
        self.definition: Definition = decisions.definition
        self.limits: Limits | None = decisions.limits
        self.observer = observer
        self.remember = remember
        self.situations: list[Situation] = []
        self.nodes: list[Node] = []
        self._number: dict[Situation, int] = {}
        self._requests = {effect.name: effect.requests for effect in self.definition.effects}
        self._outcomes = {effect.name: effect.outcomes for effect in self.definition.effects}
        self._waiting: deque[int] = deque()
        self._happenings: dict[Hashable, Happening] = {}
        self._numbered(Situation(self.definition.initial, seen=observer.initial if observer else None))
        while self._waiting:
            situation = self.situations[self._waiting.popleft()]
            tree = decisions.tree(situation.state, situation.facts, situation.known)
            self.nodes.append(self._linked(tree, situation, situation.known))

    def edges(self) -> Iterator[tuple[int, Happening, int]]:
        """Each edge of the graph of situations: from, what happens, to."""
        for number, node in enumerate(self.nodes):
            for happening in dict.fromkeys(happening for _, happening in happenings(node)):
                match happening:
                    case Ask():
                        yield from ((number, happening, dest) for _, dest in happening.branches)
                    case Move():
                        yield number, happening, happening.dest
                    case _:
                        pass

    def _numbered(self, situation: Situation) -> int:
        number = self._number.get(situation)
        if number is None:
            number = self._number[situation] = len(self.situations)
            self.situations.append(situation)
            self._waiting.append(number)
        return number

    def _linked(self, tree: Tree, situation: Situation, known: Known) -> Node:
        if isinstance(tree, Test):
            yes, no = known, known
            if self.remember:
                yes, no = known | {(tree.atom, True)}, known | {(tree.atom, False)}
            return Choice(tree.atom, self._linked(tree.yes, situation, yes), self._linked(tree.no, situation, no))
        return self._happening(tree, situation, known)

    def _happening(self, leaf: Leaf, situation: Situation, known: Known) -> Happening:
        match leaf:
            case Asked(effect):
                branches = tuple(
                    (outcome, self._numbered(self._after_outcome(situation, effect, outcome, known)))
                    for outcome in self._outcomes[effect]
                )
                return self._once(Ask(effect, self._requests[effect], branches), (effect, branches))
            case Fired(row):
                dest = self._numbered(self._after_row(situation, row))
                return self._once(Move(row, dest), (row.key, dest))
            case Fallen():
                return self._once(Hole(), "hole")
            case Ended():
                return self._once(End(), "end")

    def _once(self, happening: Happening, key: Hashable) -> Happening:
        return self._happenings.setdefault(key, happening)

    def _after_outcome(self, situation: Situation, effect: str, outcome: str, known: Known) -> Situation:
        seen = situation.seen
        if self.observer is not None:
            seen = self.observer.after_outcome(seen, situation, effect, outcome)
        facts = self.decisions.with_outcome(situation.facts, effect, outcome)
        return Situation(situation.state, facts, None, seen, known)

    def _after_row(self, situation: Situation, row: Row) -> Situation:
        seen = situation.seen
        if self.observer is not None:
            seen = self.observer.after_row(seen, situation, row)
        return Situation(row.dest, self.decisions.inherited(row, situation.facts), row.reason, seen)
