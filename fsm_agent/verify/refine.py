"""Refinement: each step of a machine is a step, or a stay, of a coarser one; each coarse step is taken by some run."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import partial
from typing import cast

from fsm_agent.machine import Definition, Row
from fsm_agent.machine.coarse import Coarse, CoarseStep
from fsm_agent.verify.bounds_given import Bounds, bounds_of
from fsm_agent.verify.configurations import Configurations
from fsm_agent.verify.decisions import Decisions
from fsm_agent.verify.layout import Layout
from fsm_agent.verify.search import Found, Goal, Search
from fsm_agent.verify.system import Move, Situation, System
from fsm_agent.verify.witness import Witness


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


@dataclass(frozen=True, slots=True)
class _Seen:
    """The phase that the coarse machine is in, the step by which it came there just now, or what went wrong."""

    phase: str
    step: CoarseStep | None = None
    fault: str = ""


class _Phases:
    """Follows the coarse machine along the fine one."""

    def __init__(self, coarse: Coarse) -> None:
        self.coarse = coarse
        self.initial: Hashable = _Seen(coarse.initial)

    def after_outcome(self, seen: Hashable, situation: Situation, effect: str, outcome: str) -> Hashable:  # noqa: ARG002
        before = cast(_Seen, seen)
        return _Seen(before.phase, None, before.fault)

    def after_row(self, seen: Hashable, situation: Situation, row: Row) -> Hashable:  # noqa: ARG002
        before = cast(_Seen, seen)
        if before.fault:
            return before
        try:
            step = self.coarse.step(before.phase, row)
        except ValueError as error:
            return _Seen(before.phase, None, str(error))
        return _Seen(before.phase if step is None else step.dest, step)


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
        answer = search.find(_entering(system, partial(_came_by, step)))
        if isinstance(answer, Found):
            taken[str(step)] = answer.witness
        else:
            problems.append(f"No run takes the coarse step {step}.")
    answer = search.find(_entering(system, lambda seen: bool(seen.fault)))
    if isinstance(answer, Found):
        assert isinstance(answer.happening, Move)
        seen = cast(_Seen, system.situations[answer.happening.dest].seen)
        problems.append(f"{seen.fault} Shortest run: {answer.witness}")
    return Refinement(coarse, taken, tuple(problems))


def _came_by(step: CoarseStep, seen: _Seen) -> bool:
    return seen.step == step


def _entering(system: System, wanted: Callable[[_Seen], bool]) -> Goal:
    places = frozenset(
        (before, happening)
        for before, happening, after in system.edges()
        if isinstance(happening, Move) and wanted(cast(_Seen, system.situations[after].seen))
    )
    return Goal("a coarse step", places)
