"""Which limit switches a row off: a limit of zero, or none at all, makes some rows impossible, and that is no fault."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from fsm_agent.machine import Below, Definition, Limits
from fsm_agent.verify.configurations import Configurations
from fsm_agent.verify.decisions import Decisions, atoms_of
from fsm_agent.verify.layout import Layout
from fsm_agent.verify.search import Found, Goal, Search
from fsm_agent.verify.system import System

ROOMY, SMALL = 12, 2


def names_of_limits(definition: Definition) -> tuple[str, ...]:
    """The limits that guards ask about."""
    atoms = atoms_of(guard for row in definition.rows for guard in row.when)
    named = (atom.limit for atom in atoms if isinstance(atom, Below) and isinstance(atom.limit, str))
    return tuple(dict.fromkeys(named))


class OtherLimits:
    """The same machine under other limits, to tell what cannot be from what these limits do not allow."""

    def __init__(self, definition: Definition, limits: Limits) -> None:
        self.definition = definition
        self.limits = limits
        self._searches: dict[str, Search] = {}

    def allow(self, goal: Callable[[Search], Goal]) -> str | None:
        """The limit (or 'these limits together') that stands against a goal; None if no limits allow it."""
        if not goal(self._search("any limits at all", None)).happenings:
            return None
        for name, limits in self._candidates():
            search = self._search(name, limits)
            wanted = goal(search)
            if wanted.happenings and isinstance(search.find(wanted), Found):
                return name if name in limits else "these limits together"
        return None

    def _search(self, name: str, limits: Limits | None) -> Search:
        if name not in self._searches:
            system = System(Decisions(self.definition, limits), remember=True)
            layout = Layout(self.definition, self.limits if limits is None else limits)
            self._searches[name] = Search(Configurations(system, layout))
        return self._searches[name]

    def _candidates(self) -> Iterator[tuple[str, Limits]]:
        named = names_of_limits(self.definition)
        at_edge = sorted(named, key=lambda name: -1 if self.limits[name] is None else self.limits[name] or 0)
        for name in at_edge:
            value = self.limits[name]
            if value is None or value < ROOMY:
                yield name, {**self.limits, name: ROOMY}
        yield from self._all_small(named)

    def _all_small(self, named: Iterable[str]) -> Iterator[tuple[str, Limits]]:
        small: Limits = {**self.limits, **dict.fromkeys(named, SMALL)}
        yield "all small", small
        for name in named:
            yield f"all small but {name}", {**small, name: ROOMY}
