"""Contracts against the machine: each becomes situations that must not occur, and some that must."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import assert_never

from fsm_agent.machine import Below, Guard, Increment, Row
from fsm_agent.verify.conditions import bound, holds, surely, worded
from fsm_agent.verify.configurations import Configurations
from fsm_agent.verify.contracts import (
    Always,
    Answers,
    Contract,
    Counts,
    Enters,
    Fires,
    Firing,
    Never,
    Once,
    Performs,
)
from fsm_agent.verify.decisions import Literal
from fsm_agent.verify.layout import GuardFaultError, Layout
from fsm_agent.verify.limits_at_edge import OtherLimits
from fsm_agent.verify.observers import NeverObserver, OnceObserver
from fsm_agent.verify.search import Found, Goal, Search, Undecided
from fsm_agent.verify.system import Ask, Happening, Move, Situation, System, happenings
from fsm_agent.verify.witness import Witness


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a contract holds; if not, what breaks it, and the shortest run that shows it where there is one."""

    contract: str
    holds: bool
    problem: str = ""
    witness: Witness | None = None
    undecided: bool = False
    """It was neither shown nor refuted."""

    def __str__(self) -> str:
        if self.holds:
            return f"{self.contract}: holds."
        shown = f" Shortest run: {self.witness}" if self.witness is not None else ""
        return f"{self.contract}: {'not shown' if self.undecided else 'broken'}. {self.problem}{shown}"


UNDECIDED = "It could not be decided"

Place = tuple[int, tuple[Literal, ...], Happening]
"""A situation, the answers of guards in it, and what happens then."""


class Judge:
    """Decides contracts over the configurations of one search."""

    def __init__(self, search: Search, others: OtherLimits) -> None:
        self.search = search
        self.others = others
        self.configurations = search.configurations
        self.system = search.configurations.system
        self.definition = self.system.definition
        self.layout = search.configurations.layout

    def judge(self, contract: Contract) -> Verdict:
        for problem, witness in self._problems(contract):
            undecided = problem.startswith(UNDECIDED)
            return Verdict(str(contract), holds=False, problem=problem, witness=witness, undecided=undecided)
        return Verdict(str(contract), holds=True)

    def within_limits(self) -> Verdict:
        """The contract that every machine has: no counter is raised beyond its own limit."""
        text = "no counter is raised above its limit"
        limit_of = {counter.name: counter.limit for counter in self.definition.counters}
        for row in self.definition.rows:
            for update in row.update:
                if isinstance(update, Increment):
                    name = update.name
                    below = Below(name, limit_of[name])
                    places = (place for place in self._moves() if place[2].row == row)
                    for why, witness in self._broken("", places, below):
                        if witness is None:
                            return Verdict(text, holds=False, problem=why, undecided=True)
                        problem = (
                            f"The row «{row}» raises the counter {name!r} when it is not below {limit_of[name]!r}; "
                            f"guard the row with Below({name!r}), or put a row above it that takes that case."
                        )
                        return Verdict(text, holds=False, problem=problem, witness=witness)
        return Verdict(text, holds=True)

    def _problems(self, contract: Contract) -> Iterator[tuple[str, Witness | None]]:
        match contract:
            case Answers():
                yield from self._answers(contract)
            case Enters():
                yield from self._enters(contract)
            case Fires():
                places = (place for place in self._moves() if place[2].row.trigger in contract.triggers)
                yield from self._broken(f"It fires although not: {worded(contract.when)}.", places, contract.when)
            case Performs():
                asks = ((n, p, h) for n, p, h in self._places() if isinstance(h, Ask) and h.effect == contract.effect)
                yield from self._broken(f"It is performed although not: {worded(contract.when)}.", asks, contract.when)
            case Counts():
                for fault in contract.faults(self.definition):
                    yield fault[0].upper() + fault[1:] + ".", None
            case Once():
                yield from self._observed(OnceObserver(contract))
            case Never():
                yield from self._observed(NeverObserver(contract))
            case Always():
                yield from self._always(contract)
            case _:
                assert_never(contract)

    # ---- what may happen

    def _places(self) -> Iterator[Place]:
        for number, node in enumerate(self.system.nodes):
            for path, happening in happenings(node):
                yield number, path, happening

    def _moves(self) -> Iterator[tuple[int, tuple[Literal, ...], Move]]:
        for number, path, happening in self._places():
            if isinstance(happening, Move):
                yield number, path, happening

    def _situation(self, number: int) -> Situation:
        return self.system.situations[number]

    # ---- kinds of contract

    def _answers(self, contract: Answers) -> Iterator[tuple[str, Witness | None]]:
        effect = self.definition.effect(contract.effect)
        state = contract.state or effect.state
        if contract.state is None and set(effect.outcomes) != set(contract.triggers):
            declared = ", ".join(effect.outcomes)
            yield f"The effect {effect.name!r} declares other outcomes than the contract lists: {declared}.", None
        mine = [
            (number, move, dict(self._situation(number).facts)[effect.name])
            for number, _, move in self._moves()
            if self._situation(number).state == state and effect.name in dict(self._situation(number).facts)
        ]
        wrong = frozenset(
            (n, move) for n, move, outcome in mine if move.row.trigger not in contract.triggers.get(outcome, ())
        )
        yield from self._reached("Another trigger answers: {}.", wrong)
        for outcome, triggers in contract.triggers.items():
            for trigger in triggers:
                right = frozenset((n, move) for n, move, o in mine if o == outcome and move.row.trigger == trigger)
                if not self._possible(right, state, trigger, (effect.name, outcome)):
                    yield f"{trigger} never answers {effect.name}: {outcome} in {state}.", None

    def _enters(self, contract: Enters) -> Iterator[tuple[str, Witness | None]]:
        places = [place for place in self._moves() if contract.target in (place[2].row.dest, place[2].row.reason)]
        wrong = frozenset((number, move) for number, _, move in places if move.row.trigger not in contract.by)
        yield from self._reached("It is also entered by {}.", wrong)
        entering = {row.trigger for row in self.definition.rows if contract.target in (row.dest, row.reason)}
        for trigger in contract.by:
            if trigger not in entering:
                yield f"{trigger} does not enter it.", None
        if contract.when is not None:
            yield from self._broken(f"It is entered although not: {worded(contract.when)}.", places, contract.when)

    def _always(self, contract: Always) -> Iterator[tuple[str, Witness | None]]:
        def broken(number: int, packed: int, layout: Layout) -> bool:
            moves = (h for path, h in happenings(self.system.nodes[number]) if layout.agrees(path, packed, ""))
            return any(
                isinstance(h, Move) and not self._firing_holds(contract, number, packed, h.row, layout) for h in moves
            )

        if not contract.reads:
            moves = ((n, move) for n, _, move in self._moves())
            suspects = {
                (n, move)
                for n, move in moves
                if not self._firing_holds(contract, n, self.layout.initial, move.row, self.layout)
            }
            yield from self._reached("It does not hold when {} fires.", frozenset(suspects))
        else:
            suspects = {(n, move) for n, _, move in self._moves()}
            goal = Goal(contract.name, frozenset(suspects), broken, contract.reads)
            yield from self._reached("It does not hold when {} fires.", frozenset(suspects), goal)

    def _firing_holds(self, contract: Always, number: int, packed: int, row: Row, layout: Layout) -> bool:
        situation = self._situation(number)
        before = layout.unpack(packed, situation.state)
        firing = Firing(before, dict(situation.facts), row, self.definition.updated(before, row))
        try:
            return bool(contract.holds(firing))
        except Exception as error:
            raise GuardFaultError(f"The contract «{contract}» raised {error!r} for the row «{row}».") from error

    def _observed(self, observer: OnceObserver | NeverObserver) -> Iterator[tuple[str, Witness | None]]:
        system = System(self.system.decisions, observer, remember=self.system.remember)
        faulty = {n for n, situation in enumerate(system.situations) if situation.seen in observer.faults}
        entering = frozenset(
            (before, happening)
            for before, happening, after in system.edges()
            if after in faulty and before not in faulty
        )
        if entering:
            search = self.search.again(Configurations(system, self.layout))
            yield from self._reached("It is broken by {}.", entering, search=search)

    # ---- proofs

    def _broken(self, problem: str, places: Iterable[Place], condition: Guard) -> Iterator[tuple[str, Witness | None]]:
        """The condition fails in one of these places."""
        wanted = bound(condition, self.definition)
        suspects = frozenset((n, h) for n, path, h in places if self._surely(n, path, wanted) is not True)

        def fails(number: int, packed: int, layout: Layout) -> bool:
            situation = self._situation(number)
            return not holds(wanted, dict(situation.facts), layout, packed, situation.state)

        yield from self._reached(problem, suspects, Goal(problem, suspects, fails, wanted.reads))

    def _surely(self, number: int, path: tuple[Literal, ...], condition: Guard) -> bool | None:
        assert self.system.limits is not None
        situation = self._situation(number)
        return surely(condition, situation.facts, (*situation.known, *path), self.definition, self.system.limits)

    def _reached(
        self,
        problem: str,
        suspects: frozenset[tuple[int, Happening]],
        goal: Goal | None = None,
        search: Search | None = None,
    ) -> Iterator[tuple[str, Witness | None]]:
        """One of these happens in some run."""
        if not suspects:
            return
        answer = (search or self.search).find(goal or Goal(problem, suspects))
        if isinstance(answer, Found):
            what = answer.happening
            named = (
                f"«{what.row}»" if isinstance(what, Move) else f"{what.effect}" if isinstance(what, Ask) else "a hole"
            )
            yield problem.replace("{}", named), answer.witness
        elif isinstance(answer, Undecided):
            yield f"{UNDECIDED}: {answer.why}", None

    def _possible(
        self, right: frozenset[tuple[int, Happening]], state: str, trigger: str, fact: tuple[str, str]
    ) -> bool:
        """One of these happens in some run, under these limits or others."""
        if right and isinstance(self.search.find(Goal(trigger, right)), Found):
            return True

        def elsewhere(search: Search) -> Goal:
            system = search.configurations.system
            same = frozenset((n, h) for n, h in search.rows([(state, trigger)]) if fact in system.situations[n].facts)
            return Goal(trigger, same)

        return self.others.allow(elsewhere) is not None
