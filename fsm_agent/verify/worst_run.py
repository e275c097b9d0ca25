"""A run that tries to be as long and as dear as the bound: it uses up the innermost counters first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fsm_agent.machine import Definition, Limits
from fsm_agent.verify.bounds import Measure, Visit, WorstCase, needs_room
from fsm_agent.verify.certificate import Certificate
from fsm_agent.verify.configurations import Configurations
from fsm_agent.verify.decisions import Decisions
from fsm_agent.verify.layout import Layout
from fsm_agent.verify.system import System

Plan = tuple[Visit, ...]
"""Plain visits, and at last one whose row is ranked."""
LONGEST = 200_000
"""Moves of the longest run that is played to see whether a bound is exact."""
FAR = 8
"""More than a counter can be raised within one plan."""


Claim = tuple[Measure, bool]
"""What is bounded, and whether it is so per turn."""


def worst_case(
    definition: Definition, limits: Limits, certificate: Certificate, turn: str | None
) -> tuple[dict[Claim, tuple[int, str]], dict[Claim, int]]:
    """The bounds with their formulas, and the most that was seen in runs that try to reach them."""
    system = System(Decisions(definition, limits), remember=True)
    worst = WorstCase(system, certificate, turn)
    measures: tuple[Measure, ...] = ("requests", "moves")
    claims: dict[Claim, tuple[int, str]] = {
        (m, one): worst.bound(m, one_turn=one) for m in measures for one in (True, False)
    }
    seen: dict[Claim, int] = dict.fromkeys(claims, 0)
    for measure in measures:
        if any(seen[claim] < claims[claim][0] for claim in claims):
            played = GreedyRun(worst, Configurations(system, Layout(definition, limits)), measure).play(LONGEST)
            if played is not None:
                for claim, value in played.seen().items():
                    seen[claim] = max(seen[claim], value)
    return claims, seen


@dataclass(slots=True)
class Played:
    """What a run came to."""

    moves: int = 0
    requests: int = 0
    moves_in_turn: int = 0
    requests_in_turn: int = 0
    _turn_moves: int = 0
    _turn_requests: int = 0

    def seen(self) -> dict[Claim, int]:
        return {
            ("requests", False): self.requests,
            ("requests", True): self.requests_in_turn,
            ("moves", False): self.moves,
            ("moves", True): self.moves_in_turn,
        }

    def add(self, visit: Visit, turn: str | None) -> None:
        self.moves += 1
        self.requests += visit.requests
        self._turn_moves += 1
        self._turn_requests += visit.requests
        self.moves_in_turn = max(self.moves_in_turn, self._turn_moves)
        self.requests_in_turn = max(self.requests_in_turn, self._turn_requests)
        if turn is not None and any(update.name == turn for update in visit.row.update):
            self._turn_moves = self._turn_requests = 0


class GreedyRun:
    """Plays the machine against its limits. Every move is one that the machine itself makes in that configuration."""

    def __init__(self, worst: WorstCase, configurations: Configurations, measure: Measure) -> None:
        self.worst = worst
        self.configurations = configurations
        self.measure: Measure = measure
        self._plans: dict[int, list[Plan]] = {}
        self._chosen: dict[tuple[int, int], Plan | None] = {}
        self._wide = [
            field
            for name, field in configurations.layout.fields.items()
            if field.top is not None
            and field.top - field.initial > 2 * FAR
            and len(configurations.layout.bounds.get(name, ())) == 1
        ]
        self.rank = self._ranked()

    def play(self, most: int) -> Played | None:
        """The run, or None when it has more than `most` moves."""
        played = Played()
        entry, control = 0, self.configurations.initial
        while True:
            plan = self._choose(entry, control)
            last = plan is None
            if plan is None:
                plan = self._ending(entry, control)
            for visit in plan:
                played.add(visit, self.worst.turn)
                control = self.configurations.change(visit.row)(control)
                entry = visit.dest
            if last:
                return played
            if played.moves > most:
                return None

    def _choose(self, entry: int, control: int) -> Plan | None:
        """The first plan that the machine follows. A counter far below its bound makes no difference to that."""
        key = control
        for field in self._wide:
            if (control >> field.shift & field.mask) + FAR < (field.top or 0):
                key = key & ~field.bits | field.initial << field.shift
        if (entry, key) not in self._chosen:
            fitting = (plan for plan in self.plans(entry) if self._fits(plan, control))
            self._chosen[entry, key] = next(fitting, None)
        return self._chosen[entry, key]

    def _fits(self, plan: Plan, control: int) -> bool:
        for visit in plan:
            if not self.configurations.layout.agrees(visit.answers, control, visit.row.source):
                return False
            control = self.configurations.change(visit.row)(control)
        return True

    def plans(self, entry: int) -> list[Plan]:
        """The ways to a ranked row: the innermost first, and the dearest of those that need the same."""
        if entry not in self._plans:
            best: dict[tuple[object, ...], Plan] = {}
            for plan in self._ways(entry):
                answers = frozenset(answer for visit in plan for answer in visit.answers)
                key = plan[-1].row.key, answers
                if key not in best or self._weight(plan) > self._weight(best[key]):
                    best[key] = plan
            ordered = sorted(best.values(), key=self._weight, reverse=True)
            ordered.sort(key=lambda plan: self.rank[plan[-1].row.key])
            self._plans[entry] = ordered
        return self._plans[entry]

    def _weight(self, plan: Plan) -> tuple[int, int]:
        return sum(visit.weight(self.measure) for visit in plan), len(plan)

    def _ways(self, entry: int) -> Iterator[Plan]:
        for visit in self.worst.visits[entry]:
            if visit.row.key in self.worst.level:
                yield (visit,)
            elif not self.worst.final(visit):
                yield from ((visit, *rest) for rest in self._ways(visit.dest))

    def _ending(self, entry: int, control: int) -> Plan:
        fitting = (plan for plan in self._ends(entry) if self._fits(plan, control))
        return max(fitting, key=self._weight)

    def _ends(self, entry: int) -> Iterator[Plan]:
        for visit in self.worst.visits[entry]:
            if self.worst.final(visit):
                yield (visit,)
            elif visit.row.key not in self.worst.level:
                yield from ((visit, *rest) for rest in self._ends(visit.dest))

    def _ranked(self) -> dict[tuple[str, str], int]:
        """The order in which rows are tried: inner counters first, and no row before one that it would shut out."""
        worst = self.worst
        order = sorted(worst.level, key=lambda key: (-worst.level[key], -worst.cost_of(key, self.measure)))
        needs: dict[tuple[str, str], set[str]] = {}
        for visit in worst.ranked:
            room = needs_room(visit.answers)
            needs[visit.row.key] = needs[visit.row.key] & room if visit.row.key in needs else room
        for later in list(order):
            shut_out = {worst.peels[worst.level[later]].name}
            for i, earlier in enumerate(order[: order.index(later)]):
                own = worst.peels[worst.level[earlier]].name
                if own in needs.get(later, ()) and own not in shut_out:
                    order.remove(later)
                    order.insert(i, later)
                    break
        return {key: i for i, key in enumerate(order)}
