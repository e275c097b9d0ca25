"""What `decide` does in every case: one decision tree per state and set of known outcomes.

A guard only asks whether a counter is below a bound or whether a flag is set. So the decision in a state, for given
outcomes, is a small tree of such questions. The tree is found by running the real `Automaton.decide` and answering the
questions that its guards ask, once with yes and once with no. Nothing of `decide` is written a second time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from fsm_agent.machine import (
    AnyOf,
    Ask,
    Automaton,
    Below,
    Control,
    Decision,
    Definition,
    Guard,
    HoleError,
    Limits,
    Not,
    Row,
)

Facts: TypeAlias = tuple[tuple[str, str], ...]
"""Known outcomes as (effect, outcome), in the order in which the definition declares the effects."""
Literal: TypeAlias = tuple[Guard, bool]
"""A question that a guard asked, and the answer."""
Known: TypeAlias = frozenset[Literal]


@dataclass(frozen=True, slots=True)
class Test:
    """The decision depends on this guard: a `Below`, a `Flag` or a guard of a user's own."""

    atom: Guard
    yes: Tree
    no: Tree


@dataclass(frozen=True, slots=True)
class Asked:
    """The decision is to perform this effect."""

    effect: str


@dataclass(frozen=True, slots=True)
class Fired:
    """The decision is that this row fires."""

    row: Row


@dataclass(frozen=True, slots=True)
class Fallen:
    """No row takes this case: a hole."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The state is final: nothing is decided any more."""


Leaf: TypeAlias = Asked | Fired | Fallen | Ended
Tree: TypeAlias = Test | Leaf


class _Question(Exception):  # noqa: N818 - not an error: the way out of `decide`
    """A guard asked something that is not answered yet."""

    def __init__(self, atom: Guard) -> None:
        super().__init__(str(atom))
        self.atom = atom


class _Interview(Automaton):
    """The real `decide`, with guards that read answers given beforehand instead of counters."""

    def __init__(self, definition: Definition, limits: Limits | None) -> None:
        super().__init__(definition, limits or {})
        self.bounds = limits
        self.answers: dict[Guard, bool] = {}
        self.facts: Mapping[str, str] = {}

    def ask(self, state: str, facts: Mapping[str, str], answers: dict[Guard, bool]) -> Decision:
        self.answers, self.facts = answers, facts
        start = self.initial
        return self.decide(Control(state, start.values, start.index), facts)

    def holds(self, row: Row, control: Control) -> bool:  # noqa: ARG002 - the answers stand for the control record
        # A row that declines because of what is known already declines whatever its guards say: do not ask them.
        if self._declines(row):
            return False
        return all(self._truth(guard) for guard in row.when)

    def _declines(self, row: Row) -> bool:
        if row.upon and not any(self.facts.get(effect) in outcomes for effect, outcomes in row.upon.items()):
            return True
        for effect, outcomes in row.given.items():
            fact = self.facts.get(effect)
            if fact is None:
                return False
            if fact not in outcomes:
                return True
        return False

    def _truth(self, guard: Guard) -> bool:
        match guard:
            case Not(inner):
                return not self._truth(inner)
            case AnyOf():
                return any(self._truth(inner) for inner in guard.guards)
            case _:
                known = self._known(guard)
                if known is None:
                    raise _Question(guard)
                return known

    def _known(self, atom: Guard) -> bool | None:
        if atom in self.answers:
            return self.answers[atom]
        if self.bounds is None or not isinstance(atom, Below):
            return None
        return implied(atom, self.answers.items(), self.definition, self.bounds)


def bound_of(atom: Below, limits: Limits) -> int | None:
    """The number that the counter is compared with; `None` is no bound."""
    if atom.limit is None or isinstance(atom.limit, int):
        return atom.limit
    return limits[atom.limit]


def implied(atom: Below, answers: Iterable[Literal], definition: Definition, limits: Limits) -> bool | None:
    """What the answers so far, and where counting starts, say about `counter < bound`; `None` if nothing."""
    bound = bound_of(atom, limits)
    if bound is None:
        return True
    if bound <= definition.initial_value(atom.counter):
        return False
    for other, answer in answers:
        if isinstance(other, Below) and other.counter == atom.counter:
            known = bound_of(other, limits)
            assert known is not None
            if answer and known <= bound:
                return True
            if not answer and known >= bound:
                return False
    return None


def atoms_of(guards: Iterable[Guard]) -> Iterator[Guard]:
    """The guards that look at control themselves: those under `Not` and `AnyOf` too."""
    for guard in guards:
        match guard:
            case Not(inner):
                yield from atoms_of((inner,))
            case AnyOf():
                yield from atoms_of(guard.guards)
            case _:
                yield guard


class Decisions:
    """The decision trees of a definition, for given limits, or (`limits=None`) for all limits at once."""

    def __init__(self, definition: Definition, limits: Limits | None) -> None:
        self.definition = definition
        self.limits = limits
        self._interview = _Interview(definition, limits)
        self._trees: dict[tuple[str, Facts, Known], Tree] = {}
        self._order = {effect.name: i for i, effect in enumerate(definition.effects)}

    def tree(self, state: str, facts: Facts, known: Known = frozenset()) -> Tree:
        """What is decided in this state when these outcomes, and no others, are known.

        `known` are answers that guards have given earlier in the same visit. Nothing changes the control record within
        a visit, so they still hold.
        """
        key = state, facts, known
        if key not in self._trees:
            final = self.definition.state(state).final
            self._trees[key] = Ended() if final else self._grow(state, dict(facts), dict(known))
        return self._trees[key]

    def _grow(self, state: str, facts: Mapping[str, str], answers: dict[Guard, bool]) -> Tree:
        try:
            decision = self._interview.ask(state, facts, answers)
        except HoleError:
            return Fallen()
        except _Question as question:
            atom = question.atom
            yes = self._grow(state, facts, {**answers, atom: True})
            no = self._grow(state, facts, {**answers, atom: False})
            return yes if yes == no else Test(atom, yes, no)
        return Asked(decision.effect) if isinstance(decision, Ask) else Fired(decision.row)

    def with_outcome(self, facts: Facts, effect: str, outcome: str) -> Facts:
        """The facts when one more outcome is known."""
        return self.sorted({**dict(facts), effect: outcome})

    def inherited(self, row: Row, facts: Facts) -> Facts:
        """The facts that survive the firing of a row."""
        return self.sorted(self.definition.inherited(row.dest, dict(facts)))

    def sorted(self, facts: Mapping[str, str]) -> Facts:
        return tuple(sorted(facts.items(), key=lambda fact: self._order[fact[0]]))
