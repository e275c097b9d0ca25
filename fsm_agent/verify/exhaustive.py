"""The exact way to answer what `Search` answers: look through every configuration."""

from __future__ import annotations

from collections.abc import Iterable

from fsm_agent.verify.configurations import Configurations
from fsm_agent.verify.explore import Exploration, explore
from fsm_agent.verify.search import Answer, Found, Goal, Search, Unreachable
from fsm_agent.verify.system import Happening, Move


class Exhaustive(Search):
    """Answers from a complete exploration. The first configuration that was found is a nearest one.

    Raises `StateCapError` if there are more than `cap` configurations.
    """

    def __init__(self, configurations: Configurations, cap: int = 2_000_000) -> None:
        super().__init__(configurations, cap)
        self.exploration: Exploration = explore(configurations, cap)
        self._first: dict[tuple[int, Happening], int] = {}
        for here in self.exploration.came_from:
            place = here >> configurations.bits, configurations.happening(here)
            self._first.setdefault(place, here)

    @property
    def size(self) -> tuple[int, int]:
        return len(self.exploration), self.exploration.edges

    def again(self, configurations: Configurations) -> Exhaustive:
        return Exhaustive(configurations, self.cap)

    def find(self, goal: Goal) -> Answer:
        candidates = self._matching(goal)
        best: tuple[int, int] | None = None
        for here in candidates:
            length = sum(isinstance(self.configurations.happening(c), Move) for c in self.exploration.path(here))
            if best is None or length < best[0]:
                best = length, here
        if best is None:
            return Unreachable(frozenset())
        return self._found_at(best[1])

    def _matching(self, goal: Goal) -> Iterable[int]:
        """Of each place the nearest configuration where the condition holds."""
        if goal.condition is None:
            yield from (self._first[place] for place in goal.happenings if place in self._first)
            return
        bits, mask = self.configurations.bits, self.configurations.control_mask
        for here in self.exploration.came_from:
            place = here >> bits, self.configurations.happening(here)
            if place in goal.happenings and goal.condition(here >> bits, here & mask, self.configurations.layout):
                yield here
                return

    def _found_at(self, here: int) -> Found:
        events = tuple(self.configurations.events(self.exploration.path(here)))
        initial = self.configurations.system.definition.initial
        return Found(events, here, self.configurations.happening(here), initial)
