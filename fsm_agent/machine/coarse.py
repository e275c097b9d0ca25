"""The loop seen from afar: three phases, and when it passes from one to another.

A published description of the loop knows only these. They are a projection of the declared machine, not a second
machine: each row is either a step between phases or a stay in one. `fsm_agent.verify.refine` proves that it is so.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from fsm_agent.machine.definition import Row


class Phase(StrEnum):
    """What a run is about, as a user sees it."""

    IDLE = "idle"
    """No tool has been asked for: the model answers a prompt, or the run is over."""
    AWAITING_TOOL_RESULTS = "awaiting_tool_results"
    """The calls of a message are run."""
    CONTINUING = "continuing"
    """Results are there, and the model is asked again."""


@dataclass(frozen=True, slots=True)
class CoarseStep:
    """A step between phases, taken by the rows with these triggers or (`ends`) by every row into a final state."""

    source: str
    trigger: str
    dest: str
    by: tuple[str, ...] = ()
    ends: bool = False

    def takes(self, row: Row) -> bool:
        return row.trigger in self.by or (self.ends and row.reason is not None)

    def __str__(self) -> str:
        return f"{self.source} --{self.trigger}--> {self.dest}"


@dataclass(frozen=True, slots=True)
class Coarse:
    """A projection: what the rows of a machine mean in terms of a smaller one. A row that no step names is a stay."""

    name: str
    initial: str
    steps: tuple[CoarseStep, ...]

    def step(self, phase: str, row: Row) -> CoarseStep | None:
        """The step that a row is in a phase; None for a stay.

        Raises `ValueError` for a row that is a step elsewhere and none here, or two steps at once.
        """
        meant = [step for step in self.steps if step.takes(row)]
        here = [step for step in meant if step.source == phase]
        if len(here) > 1:
            raise ValueError(f"In {str(phase)!r} the row «{row}» would be two steps: {here[0]} and {here[1]}.")
        if meant and not here:
            raise ValueError(f"In {str(phase)!r} the row «{row}» is no step, but it is {meant[0]} elsewhere.")
        return here[0] if here else None

    def follow(self, phase: str, row: Row) -> str:
        """The phase after a row has fired."""
        step = self.step(phase, row)
        return phase if step is None else step.dest


_IDLE, _AWAITING, _CONTINUING = Phase

AGENT_PHASES = Coarse(
    name="agent_phases",
    initial=_IDLE,
    steps=(
        CoarseStep(_IDLE, "tool_use", _AWAITING, by=("tools_requested",)),
        CoarseStep(_IDLE, "answer", _IDLE, ends=True),
        CoarseStep(_AWAITING, "results", _CONTINUING, by=("next_turn",)),
        CoarseStep(_AWAITING, "stop", _IDLE, ends=True),
        CoarseStep(_CONTINUING, "tool_use", _AWAITING, by=("tools_requested",)),
        CoarseStep(_CONTINUING, "answer", _IDLE, ends=True),
    ),
)
"""The phases of the shipped loop."""
