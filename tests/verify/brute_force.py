"""The checker's rival, without packing, trees or abstraction: every configuration, by the real `decide`."""

from collections import deque
from dataclasses import dataclass, field

from fsm_agent.machine import Ask, Automaton, Control, Definition, HoleError, Limits, Row

Configuration = tuple[Control, frozenset[tuple[str, str]], str | None]


@dataclass
class BruteForce:
    """What there is, and how many moves away it is at first."""

    moves: dict[Configuration, int] = field(default_factory=dict)
    edges: dict[Configuration, list[Configuration]] = field(default_factory=dict)
    rows: dict[tuple[str, str], int] = field(default_factory=dict)
    reasons: dict[str, int] = field(default_factory=dict)
    holes: set[tuple[str, frozenset[tuple[str, str]]]] = field(default_factory=set)
    fired: dict[Configuration, Row] = field(default_factory=dict)

    @property
    def edge_count(self) -> int:
        return sum(map(len, self.edges.values()))

    def has_cycle(self) -> bool:
        left = dict.fromkeys(self.moves, 0)
        for successors in self.edges.values():
            for there in successors:
                left[there] += 1
        ready = [here for here, count in left.items() if not count]
        gone = 0
        while ready:
            gone += 1
            for there in self.edges[ready.pop()]:
                left[there] -= 1
                if not left[there]:
                    ready.append(there)
        return gone != len(self.moves)


def brute_force(definition: Definition, limits: Limits, cap: int = 20_000) -> BruteForce | None:
    """Everything that can be reached; None above the cap."""
    automaton = Automaton(definition, limits)
    found = BruteForce()
    start: Configuration = (automaton.initial, frozenset(), None)
    found.moves[start] = 0
    waiting: deque[Configuration] = deque([start])
    while waiting:
        here = waiting.popleft()
        successors, cost = _after(automaton, here, found)
        found.edges[here] = successors
        for there in successors:
            length = found.moves[here] + cost
            if there not in found.moves or length < found.moves[there]:
                found.moves[there] = length
                (waiting.append if cost else waiting.appendleft)(there)
        if len(found.moves) > cap:
            return None
    for here, row in found.fired.items():
        length = found.moves[here] + 1
        found.rows[row.key] = min(length, found.rows.get(row.key, length))
        if row.reason is not None:
            found.reasons[row.reason] = min(length, found.reasons.get(row.reason, length))
    return found


def _after(automaton: Automaton, here: Configuration, found: BruteForce) -> tuple[list[Configuration], int]:
    control, facts, _ = here
    definition = automaton.definition
    if definition.state(control.state).final:
        return [], 0
    try:
        decision = automaton.decide(control, dict(facts))
    except HoleError:
        found.holes.add((control.state, facts))
        return [], 0
    if isinstance(decision, Ask):
        outcomes = definition.effect(decision.effect).outcomes
        return [(control, facts | {(decision.effect, outcome)}, None) for outcome in outcomes], 0
    row = decision.row
    found.fired[here] = row
    inherited = frozenset(definition.inherited(row.dest, dict(facts)).items())
    return [(definition.updated(control, row), inherited, row.reason)], 1
