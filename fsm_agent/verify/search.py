"""The compositional way: shortest runs to a goal, and proofs that there is none, without the product of all counters.

Only some counters are *visible* to an abstraction; a guard that asks about a hidden one may answer yes or no. Every run
of the machine is thus a run of the abstraction too, and so

- a goal that the abstraction cannot reach, the machine cannot reach;
- the abstraction's distance to a goal is never more than the machine's. It guides a search (A*) over the machine's own
  configurations, which therefore finds a shortest run, and in most cases walks straight to it.

At first nothing is visible. When the search goes astray, the hidden counter that blocked it most often becomes visible,
and it begins again. Of a counter with many values only the first few are told apart at first; then comes one value that
stands for all up to the bound, from which counting up may stay or arrive. With everything visible and told apart the
abstraction is the machine, so this ends.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias

from fsm_agent.verify import pumping
from fsm_agent.verify.configurations import Configurations
from fsm_agent.verify.layout import Layout
from fsm_agent.verify.system import Ask, Choice, Happening, Move, Node, happenings
from fsm_agent.verify.witness import Event, Witness, witness


@dataclass(frozen=True, slots=True, eq=False)
class Goal:
    """Something that may happen: one of these happenings, each in its situation, where the condition holds.

    `condition(situation, packed control, layout)` looks at the counters and flags in `reads` and at no others.
    """

    name: str
    happenings: frozenset[tuple[int, Happening]]
    condition: Callable[[int, int, Layout], bool] | None = None
    reads: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Found:
    """A shortest run that ends in the goal, and the configuration in which the goal happens."""

    events: tuple[Event, ...]
    at: int
    happening: Happening
    initial: str
    shortest: bool = True
    """False where the search for a shortest run was given up, and this is some run."""

    @property
    def witness(self) -> Witness:
        """The run up to and including the goal, if that is a row that fires."""
        last = (self.happening.row,) if isinstance(self.happening, Move) else ()
        return witness(self.initial, (*self.events, *last))


@dataclass(frozen=True, slots=True)
class Unreachable:
    """No run comes to the goal; proved in an abstraction in which only these counters and flags are visible."""

    visible: Visible


@dataclass(frozen=True, slots=True)
class Undecided:
    """The search was given up."""

    why: str


Answer: TypeAlias = Found | Unreachable | Undecided

Visible: TypeAlias = frozenset[tuple[str, int]]
"""Visible counters and flags, with how many of their values are told apart (0: all)."""
FEW, MORE = 4, 64
"""So many values are told apart at first, and so many times more when that was not enough."""


class TooLargeError(ValueError):
    """An abstraction has more nodes than the cap allows."""


class Abstraction:
    """The graph that is left when only some counters and flags are visible."""

    def __init__(self, configurations: Configurations, visible: Visible, cap: int) -> None:
        self.configurations = configurations
        self.visible = frozenset(name for name, _ in visible)
        fields = configurations.layout.fields
        self.merged = [(fields[name], fields[name].initial + values) for name, values in visible if values]
        self.bits = configurations.bits
        self.shown = configurations.layout.bits_of(self.visible)
        self._memo: list[dict[int, tuple[Happening, ...]]] = [{} for _ in configurations.system.nodes]
        self._keys = [reads & self.shown for reads in configurations.reads]
        self.initial = self.of(configurations.initial)
        self.nodes: set[int] = set()
        self.before_move: dict[int, list[int]] = {}
        self.before_outcome: dict[int, list[int]] = {}
        self._forward(cap)

    def of(self, configuration: int) -> int:
        """The node of the abstraction that stands for a configuration."""
        bits = self.bits
        node = configuration >> bits << bits | configuration & self.shown
        for field, first in self.merged:
            value = node >> field.shift & field.mask
            if first < value < (field.top or 0):
                node = node & ~field.bits | first << field.shift
        return node

    def happenings(self, node: int) -> tuple[Happening, ...]:
        """What may happen: a guard on something hidden may answer either way."""
        number, key = node >> self.bits, node & self._keys[node >> self.bits]
        known = self._memo[number].get(key)
        if known is None:
            state = self.configurations.system.situations[number].state
            found = dict.fromkeys(self._walk(self.configurations.system.nodes[number], node, state))
            known = self._memo[number][key] = tuple(found)
        return known

    def _walk(self, at: Node, node: int, state: str) -> Iterable[Happening]:
        if not isinstance(at, Choice):
            yield at
        elif at.atom.reads <= self.visible:
            control = node & self.configurations.control_mask
            answer = self.configurations.layout.answer(at.atom, control, state)
            yield from self._walk(at.yes if answer else at.no, node, state)
        else:
            yield from self._walk(at.yes, node, state)
            yield from self._walk(at.no, node, state)

    def after(self, happening: Happening, node: int) -> list[int]:
        bits = self.bits
        match happening:
            case Move():
                changed = self.configurations.change(happening.row)(node & self.configurations.control_mask)
                return self._merge([happening.dest << bits | changed & self.shown])
            case Ask():
                control = node & self.shown
                return [dest << bits | control for _, dest in happening.branches]
            case _:
                return []

    def _merge(self, nodes: list[int]) -> list[int]:
        """Beyond the values that are told apart, counting up may stay below the bound or arrive at it."""
        for field, first in self.merged:
            top = field.top or 0
            for i, node in enumerate(nodes):
                if first < (node >> field.shift & field.mask) < top:
                    rest = node & ~field.bits
                    nodes[i] = rest | first << field.shift
                    nodes.append(rest | top << field.shift)
        return nodes

    def _forward(self, cap: int) -> None:
        nodes, waiting = {self.initial}, deque([self.initial])
        while waiting:
            here = waiting.popleft()
            for happening in self.happenings(here):
                before = self.before_move if isinstance(happening, Move) else self.before_outcome
                for there in self.after(happening, here):
                    before.setdefault(there, []).append(here)
                    if there not in nodes:
                        nodes.add(there)
                        waiting.append(there)
            if len(nodes) > cap:
                raise TooLargeError(
                    f"more than {cap:,} abstract configurations over the values of {', '.join(sorted(self.visible))}"
                )
        self.nodes = nodes

    def distances(self, goal: Goal) -> dict[int, int]:
        """How many moves the goal is away from each node from which it can be reached, its own move included."""
        moves, level = 1, self._sources(goal)
        distance: dict[int, int] = {}
        while level:
            further: list[int] = []
            for here in level:  # grows while it is walked: outcomes cost nothing
                if here not in distance:
                    distance[here] = moves
                    level += self.before_outcome.get(here, ())
                    further += self.before_move.get(here, ())
            moves, level = moves + 1, further
        return distance

    def _sources(self, goal: Goal) -> list[int]:
        judged = goal.reads <= self.visible
        wanted: dict[int, set[Happening]] = {}
        for number, happening in goal.happenings:
            wanted.setdefault(number, set()).add(happening)
        return [
            node
            for node in self.nodes
            if (here := wanted.get(node >> self.bits)) is not None
            and not here.isdisjoint(self.happenings(node))
            and (not judged or self._holds(goal, node))
        ]

    def _holds(self, goal: Goal, node: int) -> bool:
        layout = self.configurations.layout
        return goal.condition is None or goal.condition(node >> self.bits, node & self.shown, layout)


class Search:
    """Shortest runs in the configurations of a system. Abstractions are kept and shared between goals."""

    def __init__(self, configurations: Configurations, cap: int = 60_000) -> None:
        self.configurations = configurations
        self.cap = cap
        self._small: Search | None = None
        self._abstractions: dict[Visible, Abstraction] = {}
        self._answers: dict[frozenset[tuple[int, Happening]], Answer] = {}

    @property
    def size(self) -> tuple[int, int]:
        """Nodes and edges of all abstractions together: what was looked at instead of the product."""
        graphs = self._abstractions.values()
        edges = (before for g in graphs for kind in (g.before_move, g.before_outcome) for before in kind.values())
        return sum(len(g.nodes) for g in graphs), sum(map(len, edges))

    def abstraction(self, visible: Visible) -> Abstraction:
        if visible not in self._abstractions:
            self._abstractions[visible] = Abstraction(self.configurations, visible, self.cap)
        return self._abstractions[visible]

    def rows(self, keys: Iterable[tuple[str, str]]) -> frozenset[tuple[int, Happening]]:
        """The happenings in which one of these rows fires."""
        wanted = set(keys)
        return frozenset(
            (number, happening)
            for number, node in enumerate(self.configurations.system.nodes)
            for _, happening in happenings(node)
            if isinstance(happening, Move) and happening.row.key in wanted
        )

    def again(self, configurations: Configurations) -> Search:
        """A search of the same kind over other configurations."""
        return Search(configurations, self.cap)

    def find(self, goal: Goal) -> Answer:
        """A shortest run to a goal, or the proof that there is none."""
        if goal.condition is not None:
            return self._refined(goal)
        if goal.happenings not in self._answers:
            self._answers[goal.happenings] = self._refined(goal)
        return self._answers[goal.happenings]

    def _refined(self, goal: Goal) -> Answer:
        visible, patience = dict[str, int](), 400
        abstraction: Abstraction | None = None
        while True:
            shown = frozenset(visible.items())
            try:
                abstraction = self.abstraction(shown)
            except TooLargeError as error:
                found = self._pumped(goal) or (abstraction and self._any(goal, abstraction))
                return found or Undecided(f"{goal.name} was neither found nor excluded: {error}.")
            distances = abstraction.distances(goal)
            if abstraction.initial not in distances:
                return Unreachable(shown)
            outcome = self._astar(goal, abstraction, distances, patience + 4 * distances[abstraction.initial])
            if isinstance(outcome, Found):
                return outcome
            if outcome is None:
                return Unreachable(shown)
            blocked = {name: count for name, count in outcome.items() if visible.get(name, 1)}
            if blocked:
                name = self._most_to_blame(blocked)
                visible[name] = self._told_apart(name, visible.get(name))
            elif patience > self.cap:
                return Undecided(f"{goal.name} was neither found nor excluded in {patience:,} configurations.")
            patience *= 2

    def _any(self, goal: Goal, abstraction: Abstraction) -> Found | None:
        """Some run to the goal, the way that looks nearest first."""
        outcome = self._astar(goal, abstraction, abstraction.distances(goal), self.cap, greedy=True)
        return replace(outcome, shortest=False) if isinstance(outcome, Found) else None

    def _pumped(self, goal: Goal) -> Found | None:
        """A run found under smaller limits, with its rounds repeated until it fits these."""
        configurations, definition = self.configurations, self.configurations.system.definition
        counters = pumping.shrunk(definition, configurations.layout)
        if not counters:
            return None
        if self._small is None:
            limits = {**configurations.layout.limits, **{c.limit: c.small for c in counters}}
            layout = Layout(definition, limits, configurations.layout.also_asked)
            self._small = Search(Configurations(configurations.system, layout), self.cap)
        answer = self._small.find(goal)
        if not isinstance(answer, Found):
            return None
        events = pumping.pumped(answer.events, counters)
        at = pumping.followed(configurations, events)
        if at is None or not self._reached(goal, at, configurations.happening(at)):
            return None
        return Found(tuple(events), at, configurations.happening(at), answer.initial, shortest=False)

    def _most_to_blame(self, blocked: dict[str, int]) -> str:
        """The name that stood in the way most often; of several, the one with the fewest values."""
        return min(blocked, key=lambda name: (-blocked[name], self.configurations.layout.domain(name)))

    def _told_apart(self, name: str, so_far: int | None) -> int:
        """How many values of a name to tell apart next; 0 is all."""
        layout = self.configurations.layout
        more = FEW if so_far is None else so_far * MORE
        simple = layout.fields[name].top is not None and len(layout.bounds.get(name, ())) == 1
        return more if simple and 2 * more < layout.domain(name) else 0

    def _astar(
        self,
        goal: Goal,
        abstraction: Abstraction,
        distances: dict[int, int],
        patience: int,
        *,
        greedy: bool = False,
    ) -> Found | dict[str, int] | None:
        """The goal; or nothing is left to look at; or patience is at its end, and this is what blocked the way."""
        configurations = self.configurations
        start = configurations.initial
        came_from: dict[int, int] = {start: start}
        steps = {start: 0}
        queue = [(distances[abstraction.initial], 0, start)]
        blocked: dict[str, int] = {}
        nearest = distances[abstraction.initial]
        while queue:
            _, minus, here = heapq.heappop(queue)
            if -minus > steps[here]:
                continue
            happening = configurations.happening(here)
            if self._reached(goal, here, happening):
                return self._found(came_from, here, happening)
            near = distances[abstraction.of(here)]
            cost = 1 if isinstance(happening, Move) else 0
            kept = False
            for there in configurations.after(happening, here):
                left = distances.get(abstraction.of(there))
                if left is None:
                    continue
                kept = kept or left + cost == near
                taken = steps[here] + cost
                if there not in steps or taken < steps[there]:
                    steps[there], came_from[there] = taken, here
                    heapq.heappush(queue, (left if greedy else taken + left, -taken, there))
            if not kept:
                if near < nearest:
                    nearest, blocked = near, {}
                if near == nearest:
                    self._blame(here, goal, abstraction, distances, blocked)
            patience -= 1
            if patience < 0:
                return blocked
        return None

    def _reached(self, goal: Goal, here: int, happening: Happening) -> bool:
        number = here >> self.configurations.bits
        if (number, happening) not in goal.happenings:
            return False
        control = here & self.configurations.control_mask
        return goal.condition is None or goal.condition(number, control, self.configurations.layout)

    def _blame(
        self, here: int, goal: Goal, abstraction: Abstraction, distances: dict[int, int], blocked: dict[str, int]
    ) -> None:
        """The abstraction promised a way from here that is not there: which hidden names stood against it?"""
        configurations = self.configurations
        number, control = here >> configurations.bits, here & configurations.control_mask
        state = configurations.system.situations[number].state
        node = abstraction.of(here)
        for path, happening in happenings(configurations.system.nodes[number]):
            if not self._promised(goal, abstraction, distances, node, happening):
                continue
            against: list[frozenset[str]] = [
                atom.reads - abstraction.visible
                for atom, wanted in path
                if not atom.reads <= abstraction.visible
                and configurations.layout.answer(atom, control, state) is not wanted
            ]
            if not against and (number, happening) in goal.happenings:
                against = [goal.reads - abstraction.visible]
            if not against and isinstance(happening, Move):
                raised = {field.name for field, _ in configurations.change(happening.row).raised}
                against = [frozenset(field.name for field, _ in abstraction.merged if field.name in raised)]
            for name in frozenset[str]().union(*against):
                blocked[name] = blocked.get(name, 0) + 1

    def _promised(
        self, goal: Goal, abstraction: Abstraction, distances: dict[int, int], node: int, happening: Happening
    ) -> bool:
        near = distances[node]
        if near == 1 and (node >> self.configurations.bits, happening) in goal.happenings:
            return True
        cost = 1 if isinstance(happening, Move) else 0
        return any(distances.get(there, -1) + cost == near for there in abstraction.after(happening, node))

    def _found(self, came_from: dict[int, int], at: int, happening: Happening) -> Found:
        path = [at]
        while came_from[path[-1]] != path[-1]:
            path.append(came_from[path[-1]])
        events = tuple(self.configurations.events(reversed(path)))
        return Found(events, at, happening, self.configurations.system.definition.initial)
