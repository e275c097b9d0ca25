"""Refinement: each step of a machine is a step, or a stay, of a coarser one, and each coarse step is taken by some run."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from fsm_agent.machine import Definition, Row
from fsm_agent.machine.coarse import Coarse, CoarseStep
from fsm_agent.verify.bounds_given import Bounds, bounds_of
from fsm_agent.verify.configurations import Configurations
from fsm_agent.verify.decisions import Decisions
from fsm_agent.verify.layout import Layout
from fsm_agent.verify.search import Found, Goal, Search
from fsm_agent.verify.system import Move, Situation, System
from fsm_agent.verify.witness import Witness

ASTRAY = "neither a step nor a stay"


@dataclass(frozen=True, slots=True)
class Refinement:
    """Whether a machine refines a coarse one."""

    coarse: Coarse
    taken: dict[str, Witness]
    """For each coarse step that is taken, a shortest run that ends with it."""
    problems: tuple[str, ...]

    @property
    def ok(self) -> bool:
        return not self.problems

    def __repr__(self) -> str:
        verdict = "ok" if self.ok else f"not ok: {' '.join(self.problems)}"
        return f"Refinement({self.coarse.name}, {verdict})"


class _Phases:
    """Follows the coarse machine along the fine one."""

    def __init__(self, coarse: Coarse) -> None:
        self.coarse = coarse
        self.initial: Hashable = (coarse.initial, None)

    def after_outcome(self, seen: Hashable, situation: Situation, effect: str, outcome: str) -> Hashable:  # noqa: ARG002
        return (seen[0], None) if isinstance(seen, tuple) else seen

    def after_row(self, seen: Hashable, situation: Situation, row: Row) -> Hashable:  # noqa: ARG002
        if not isinstance(seen, tuple):
            return seen
        try:
            step: CoarseStep | None = self.coarse.step(seen[0], row)
        except ValueError as error:
            return f"{ASTRAY}: {error}"
        return (seen[0], None) if step is None else (step.dest, step)


def refine(definition: Definition, coarse: Coarse, limits: Bounds = None) -> Refinement:
    """Prove that a definition is a refinement of a coarse machine.

    >>> from fsm_agent.machine import AGENT_LOOP
    >>> from fsm_agent.machine.coarse import AGENT_PHASES
    >>> refine(AGENT_LOOP, AGENT_PHASES)
    Refinement(agent_phases, ok)
    """
    bounds = bounds_of(definition, limits)
    system = System(Decisions(definition, bounds), _Phases(coarse), remember=True)
    search = Search(Configurations(system, Layout(definition, bounds)))
    problems: list[str] = []
    taken: dict[str, Witness] = {}
    for step in coarse.steps:
        answer = search.find(_entering(system, lambda seen, step=step: isinstance(seen, tuple) and seen[1] == step))
        if isinstance(answer, Found):
            taken[str(step)] = answer.witness
        else:
            problems.append(f"No run takes the coarse step {step}.")
    answer = search.find(_entering(system, lambda seen: isinstance(seen, str)))
    if isinstance(answer, Found):
        assert isinstance(answer.happening, Move)
        seen = str(system.situations[answer.happening.dest].seen)
        problems.append(f"{seen.removeprefix(ASTRAY + ': ')} Shortest run: {answer.witness}")
    return Refinement(coarse, taken, tuple(problems))


def _entering(system: System, wanted) -> Goal:  # type: ignore[no-untyped-def]
    places = frozenset(
        (before, happening)
        for before, happening, after in system.edges()
        if isinstance(happening, Move) and wanted(system.situations[after].seen)
    )
    return Goal("a coarse step", places)
