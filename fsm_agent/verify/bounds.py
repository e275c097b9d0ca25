"""The worst case: the most moves and the most requests to the model, as numbers and as a formula in the limits.

The ranking of the certificate bounds how often each of its rows fires: as often as its counter may be raised, once at
the start and once more after each row that puts it back. Between two such rows a run follows a path without a circle,
so that has a dearest one. That gives a bound that no run exceeds. Then a greedy run (it uses up the innermost counters
first) is played against the machine; if it comes up to the bound, the bound is exact.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal as OneOf
from typing import TypeAlias

from fsm_agent.machine import Below, Flag, Limits, Row
from fsm_agent.verify.certificate import Certificate, Peel
from fsm_agent.verify.decisions import Literal
from fsm_agent.verify.system import Ask, Move, System, happenings

Measure: TypeAlias = OneOf["moves", "requests"]


@dataclass(frozen=True, slots=True)
class Visit:
    """One way through a visit of a state: what is asked, what the guards answer, and the row that fires."""

    start: int
    row: Row
    dest: int
    requests: int
    answers: tuple[Literal, ...]
    outcomes: tuple[tuple[str, str], ...]

    def weight(self, measure: Measure) -> int:
        return 1 if measure == "moves" else self.requests


@dataclass(frozen=True, slots=True)
class Bound:
    """A number that no run exceeds, the formula that it comes from, and the most that was seen in a run."""

    value: int
    formula: str
    seen: int

    @property
    def exact(self) -> bool:
        return self.seen == self.value


@dataclass(frozen=True, slots=True)
class Sum:
    """A formula: a number and products in words."""

    number: int
    terms: tuple[str, ...] = ()

    def plus(self, other: Sum) -> Sum:
        return Sum(self.number + other.number, (*self.terms, *other.terms))

    def minus(self, other: Sum) -> Sum | None:
        """What is left without these terms, if they are all there."""
        left = list(self.terms)
        for term in other.terms:
            if term not in left:
                return None
            left.remove(term)
        return Sum(self.number - other.number, tuple(left)) if self.number >= other.number else None

    def times(self, factor: str) -> Sum:
        if factor == "1":
            return self
        whole = str(self)
        if not self.terms and self.number != 1:
            return Sum(0, (f"{whole} * {factor}",))
        if self.terms and (self.number or len(self.terms) > 1):
            whole = f"({whole})"
        return Sum(0, (factor if whole == "1" else f"{factor} * {whole}",))

    def __str__(self) -> str:
        parts = [*([str(self.number)] if self.number else []), *self.terms]
        return " + ".join(parts) or "0"


def visits(system: System) -> dict[int, list[Visit]]:
    """For each situation in which a state is entered, the ways through the visit."""
    entries = {0} | {h.dest for node in system.nodes for _, h in happenings(node) if isinstance(h, Move)}
    return {entry: list(_through(system, entry)) for entry in sorted(entries)}


def _through(system: System, entry: int) -> Iterator[Visit]:
    waiting: list[tuple[int, int, tuple[Literal, ...], tuple[tuple[str, str], ...]]] = [(entry, 0, (), ())]
    while waiting:
        number, requests, answers, outcomes = waiting.pop()
        for path, happening in happenings(system.nodes[number]):
            if _contradicts(path, answers):
                continue
            known = (*answers, *path)
            if isinstance(happening, Move):
                yield Visit(entry, happening.row, happening.dest, requests, known, outcomes)
            elif isinstance(happening, Ask):
                for outcome, dest in happening.branches:
                    asked = (*outcomes, (happening.effect, outcome))
                    waiting.append((dest, requests + happening.requests, known, asked))


def _contradicts(path: Sequence[Literal], answers: Sequence[Literal]) -> bool:
    return any((atom, not answer) in answers for atom, answer in path)


class WorstCase:
    """The bounds of a machine whose certificate is complete."""

    def __init__(self, system: System, certificate: Certificate, turn: str | None) -> None:
        assert system.limits is not None
        self.system = system
        self.limits: Limits = system.limits
        self.turn = turn
        self.peels = certificate.peels
        self.level = {key: i for i, peel in enumerate(certificate.peels) for key in peel.rows}
        self.visits = visits(system)
        self.ranked = [v for every in self.visits.values() for v in every if v.row.key in self.level]
        self.plain = {e: [v for v in every if v.row.key not in self.level] for e, every in self.visits.items()}
        self._measure: Measure = "requests"
        self._known_ways: dict[tuple[Measure, int], dict[int, int]] = {}
        self._arriving: dict[int, int] = {}
        self._leaving: dict[int, int] = {}
        self._units: dict[int, tuple[int, Sum]] = {}
        self.onward = {e: any(v.row.key in self.level for v in every) for e, every in self.visits.items()}

    # ---- the bound

    def room(self, peel: Peel) -> tuple[int, str]:
        """How often a counter may be raised when it is fresh, as a number and in words."""
        if peel.limit is None:
            return 1, "1"
        initial = self.system.definition.initial_value(peel.name)
        bound = peel.limit if isinstance(peel.limit, int) else self.limits[peel.limit]
        assert bound is not None
        words = str(peel.limit) if not initial else f"({peel.limit} - {initial})"
        return max(0, bound - initial), words

    def bound(self, measure: Measure, *, one_turn: bool) -> tuple[int, str]:
        """The number and its formula; with `one_turn`, from the start of a turn to its end."""
        self._weigh(measure)
        total = self._leaving[0]
        words = Sum(total)
        worth: dict[str, int] = {}
        for i, peel in enumerate(self.peels):
            each, each_words = self._unit(i)
            if one_turn and peel.name == self.turn:
                continue
            worth[peel.name] = min(worth.get(peel.name, each), each)
            times, times_words = self.room(peel)
            if times and each:
                total += times * each
                words = words.plus(each_words.times(times_words))
        last = self._last(worth, one_turn=one_turn)
        words = self._gathered(words.plus(Sum(last)), one_turn=one_turn)
        return total + last, str(words)

    def _gathered(self, words: Sum, *, one_turn: bool) -> Sum:
        """(n - 1) * (x) + x is written n * (x)."""
        for i, peel in enumerate(self.peels):
            if self.system.definition.initial_value(peel.name) != 1 or (one_turn and peel.name == self.turn):
                continue
            each = self._unit(i)[1]
            product = each.times(self.room(peel)[1])
            rest = words.minus(product)
            rest = rest.minus(each) if rest is not None else None
            if rest is not None and product.terms:
                words = each.times(str(peel.limit)).plus(rest)
        return words

    def _weigh(self, measure: Measure) -> None:
        self._measure, self._units = measure, {}
        self._share()

    def _ways(self, entry: int) -> dict[int, int]:
        """The dearest way, by plain rows only, from here to each entry where a ranked row may fire."""
        known = self._known_ways.get((self._measure, entry))
        if known is None:
            known = {entry: 0} if self.onward[entry] else {}
            for visit in self.plain[entry]:
                if not self.final(visit):
                    for there, weight in self._ways(visit.dest).items():
                        known[there] = max(known.get(there, 0), visit.weight(self._measure) + weight)
            self._known_ways[self._measure, entry] = known
        return known

    def _share(self) -> None:
        """Split what each way costs into a part for where it begins and a part for where it ends.

        The two parts together are never less than the way; so ways can be charged to the rows at their ends.
        """
        cheapest = {entry: min(self._ways(entry).values(), default=0) for entry in self.visits}
        self._arriving = {
            there: max(
                self._ways(entry)[there] - cheapest[entry] for entry in self.visits if there in self._ways(entry)
            )
            for there in self.visits
            if self.onward[there]
        }
        self._leaving = {
            entry: max((weight - self._arriving[there] for there, weight in self._ways(entry).items()), default=0)
            for entry in self.visits
        }

    def _unit(self, i: int) -> tuple[int, Sum]:
        """What one raising of the i-th counter of the ranking can cost, with all that it re-arms."""
        if i not in self._units:
            costs = [self._cost(visit, i) for visit in self.ranked if self.level[visit.row.key] == i]
            self._units[i] = max(costs, key=lambda cost: cost[0], default=(0, Sum(0)))
        return self._units[i]

    def _cost(self, visit: Visit, i: int) -> tuple[int, Sum]:
        total = self._arriving[visit.start] + visit.weight(self._measure) + self._leaving[visit.dest]
        words = Sum(total)
        rearmed = self._put_back(visit)
        for j in range(i + 1, len(self.peels)):
            if self.peels[j].name in rearmed:
                each, each_words = self._unit(j)
                times, times_words = self.room(self.peels[j])
                if times and each:
                    total += times * each
                    words = words.plus(each_words.times(times_words))
        return total, words

    def cost_of(self, key: tuple[str, str], measure: Measure) -> int:
        """What one firing of a ranked row can cost, with all that it re-arms."""
        self._weigh(measure)
        return max((self._cost(v, self.level[key])[0] for v in self.ranked if v.row.key == key), default=0)

    def _put_back(self, visit: Visit) -> set[str]:
        """The counters and flags that a row puts back, or a plain row that may follow it."""
        names, waiting, seen = _lowered(visit.row), [visit.dest], set[int]()
        while waiting:
            entry = waiting.pop()
            if entry not in seen:
                seen.add(entry)
                for plain in self.plain[entry]:
                    names |= _lowered(plain.row)
                    waiting.append(plain.dest)
        return names

    def _last(self, worth: dict[str, int], *, one_turn: bool) -> int:
        """What the end may cost on top: its last row may need counters that then were not used up."""
        best = 0
        for entry in self.visits:
            for cost, answers in self._endings(entry, one_turn=one_turn):
                lost = sum(worth.get(name, 0) for name in needs_room(answers))
                best = max(best, cost - self._leaving[entry] - lost)
        return best

    def _endings(self, entry: int, *, one_turn: bool) -> Iterator[tuple[int, tuple[Literal, ...]]]:
        for visit in self.visits[entry]:
            weight = visit.weight(self._measure)
            ends_turn = one_turn and any(u.name == self.turn for u in visit.row.update)
            if self.final(visit) or ends_turn:
                yield weight, () if ends_turn else visit.answers
            elif visit.row.key not in self.level:
                for cost, answers in self._endings(visit.dest, one_turn=one_turn):
                    yield weight + cost, (*visit.answers, *answers)

    def final(self, visit: Visit) -> bool:
        return self.system.definition.state(visit.row.dest).final


def _lowered(row: Row) -> set[str]:
    return {u.name for u in row.update if u(1, 0) == 0}


def needs_room(answers: Sequence[Literal]) -> set[str]:
    """The names that must not be used up for these answers."""
    below = {atom.counter for atom, answer in answers if isinstance(atom, Below) and answer}
    return below | {atom.name for atom, answer in answers if isinstance(atom, Flag) and not answer}
