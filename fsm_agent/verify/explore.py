"""The exact way: every configuration under every outcome, breadth first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from fsm_agent.verify.configurations import Configurations
from fsm_agent.verify.system import Ask, Hole, Move
from fsm_agent.verify.witness import Lasso, Witness, witness


class StateCapError(ValueError):
    """There are more configurations than the cap allows."""


@dataclass(slots=True)
class Exploration:
    """All reachable configurations. The first way that was found to each is a shortest one."""

    configurations: Configurations
    came_from: dict[int, int] = field(default_factory=dict[int, int])
    edges: int = 0
    fired: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    """For each row that fires, the first configuration in which it does."""
    holes: list[int] = field(default_factory=list[int])
    in_degree: dict[int, int] = field(default_factory=dict[int, int])

    def __len__(self) -> int:
        return len(self.came_from)

    def path(self, configuration: int) -> list[int]:
        """A shortest way from the initial configuration."""
        path = [configuration]
        while path[-1] != self.configurations.initial:
            path.append(self.came_from[path[-1]])
        return path[::-1]

    def witness(self, configuration: int, *, fire: bool = False) -> Witness:
        """A shortest run to a configuration; with `fire`, one step further."""
        path = self.path(configuration)
        events = [*self.configurations.events(path)]
        if fire:
            happening = self.configurations.happening(configuration)
            assert isinstance(happening, Move)
            events.append(happening.row)
        return witness(self.configurations.system.definition.initial, events)

    def by_reason(self) -> dict[str, tuple[str, str]]:
        """For each terminal reason that is reached, the row that reaches it soonest."""
        found: dict[str, tuple[str, str]] = {}
        for key in self.fired:  # in the order of discovery, which is that of length
            reason = self.configurations.system.definition.row(*key).reason
            if reason is not None:
                found.setdefault(reason, key)
        return found


def explore(configurations: Configurations, cap: int = 2_000_000, *, outcomes_count: bool = False) -> Exploration:
    """Visit every configuration. Raises `StateCapError` above `cap` of them.

    The length of a run is its number of moves; with `outcomes_count` each outcome of an effect is a step of its own.
    """
    found = Exploration(configurations)
    came_from, in_degree, fired = found.came_from, found.in_degree, found.fired
    level = [(configurations.initial, configurations.initial)]
    while level:
        further: list[tuple[int, int]] = []
        for here, before in level:  # grows while it is walked where outcomes cost nothing
            if here in came_from:
                continue
            came_from[here] = before
            happening = configurations.happening(here)
            moved = False
            if isinstance(happening, Move):
                moved = True
                fired.setdefault(happening.row.key, here)
            elif isinstance(happening, Hole):
                found.holes.append(here)
            successors = configurations.after(happening, here)
            found.edges += len(successors)
            for there in successors:
                in_degree[there] = in_degree.get(there, 0) + 1
                if there not in came_from:
                    (further if moved or outcomes_count else level).append((there, here))
        if len(came_from) > cap:
            raise StateCapError(_too_many(configurations, cap))
        level = further
    return found


def _too_many(configurations: Configurations, cap: int) -> str:
    layout = configurations.layout
    sizes = {name: layout.domain(name) for name in layout.fields}
    multiply = sorted((name for name in sizes if sizes[name] > 1), key=lambda name: -sizes[name])
    named = ", ".join(f"{name} ({'no bound' if sizes[name] > 1 << 20 else sizes[name]})" for name in multiply)
    return (
        f"The machine {configurations.system.definition.name!r} has more than {cap:,} configurations. What multiplies "
        f"is the number of values of {named or 'its outcomes'}. Give smaller limits, a larger state cap, "
        "or leave the exact exploration out."
    )


def topological(found: Exploration) -> list[int] | None:
    """The configurations in an order in which every edge points forward; None if there is a cycle."""
    configurations = found.configurations
    left = dict(found.in_degree)
    ready = [found.configurations.initial] if not left.get(found.configurations.initial) else []
    order: list[int] = []
    while ready:
        here = ready.pop()
        order.append(here)
        for there in configurations.after(configurations.happening(here), here):
            left[there] -= 1
            if not left[there]:
                ready.append(there)
    return order if len(order) == len(found) else None


def cycle(found: Exploration, rows: frozenset[tuple[str, str]] | None = None) -> Lasso | None:
    """A run that goes round (by these rows, from some time on), or None."""
    configurations = found.configurations

    def after(here: int) -> Iterator[int]:
        happening = configurations.happening(here)
        if rows is not None and isinstance(happening, Move) and happening.row.key not in rows:
            return iter(())
        return iter(configurations.after(happening, here))

    done: set[int] = set()
    for start in found.came_from:
        if start in done:
            continue
        trail, on_trail, stack = [start], {start: 0}, [after(start)]
        while stack:
            there = next(stack[-1], None)
            if there is None:
                stack.pop()
                left = trail.pop()
                del on_trail[left]
                done.add(left)
            elif there in on_trail:
                return lasso(found, [*trail[on_trail[there] :], there])
            elif there not in done:
                on_trail[there] = len(trail)
                trail.append(there)
                stack.append(after(there))
    return None


def lasso(found: Exploration, loop: list[int]) -> Lasso:
    """A lasso from a closed path, begun where a row has just fired, so that stem and loop are whole visits."""
    configurations = found.configurations
    body = loop[:-1]
    for turn in range(len(body)):
        before = body[turn - 1]
        if isinstance(configurations.happening(before), Move):
            body = body[turn:] + body[:turn]
            break
    stem = configurations.events([*found.path(body[-1]), body[0]])
    round_trip = configurations.events([*body, body[0]])
    initial = configurations.system.definition.initial
    state = configurations.system.situations[body[0] >> configurations.bits].state
    return Lasso(witness(initial, stem).steps, witness(state, round_trip).steps)


@dataclass(frozen=True, slots=True)
class Longest:
    """The most that any run does."""

    moves: int
    requests: int
    requests_per_turn: int | None


def longest(found: Exploration, turn: str | None) -> Longest | None:
    """The exact worst case over all runs; None if there is a cycle. A row that raises `turn` begins a turn."""
    order = topological(found)
    if order is None:
        return None
    configurations = found.configurations
    most: dict[int, tuple[int, int, int]] = {configurations.initial: (0, 0, 0)}
    in_turn = 0
    for here in order:
        moves, requests, since = most[here]
        happening = configurations.happening(here)
        if isinstance(happening, Move):
            moves += 1
            if turn is not None and any(u.name == turn for u in happening.row.update):
                since = 0
        elif isinstance(happening, Ask):
            requests += happening.requests
            since += happening.requests
            in_turn = max(in_turn, since)
        for there in configurations.after(happening, here):
            old = most.get(there, (0, 0, 0))
            most[there] = max(old[0], moves), max(old[1], requests), max(old[2], since)
    ends = most.values()
    return Longest(max(m for m, _, _ in ends), max(r for _, r, _ in ends), in_turn if turn is not None else None)
