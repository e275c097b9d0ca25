"""The context pipeline: stages as data, light to heavy, each in a file of its own.

    1 tool_result_budget   each result, and each message of results, within its budget; the whole text in a file
      media_check          media that no model takes become a note
    2 snip                 groups that a later one repeats are dropped
    3 microcompact         old tool results become a note
    4 collapse             early stretches are staged as digests, to be drained on overflow
    5 system_prompt        assembled once for a run (`system_prompt.assembled`), so it has no work here
    6 autocompact          the model summarises a prefix, the tail stays verbatim
    7 blocking_check       what cannot but fail is not sent

A stage edits a draft; the history itself changes only when the row that fires applies the plan. In a calm turn each
stage looks at what is new and returns, so the work does not grow with the conversation.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from fsm_agent.context import (
    autocompact,
    blocking_check,
    collapse,
    compaction,
    media_check,
    microcompact,
    snip,
    tool_result_budget,
)
from fsm_agent.context.view import (
    ContextView,
    Draft,
    Edit,
    Replacement,
    Stage,
    Summarise,
    SummaryRequest,
    SummaryResult,
    apply_edits,
)
from fsm_agent.log import logger
from fsm_agent.machine import ContextOutcome
from fsm_agent.session.repair import repaired

__all__ = [
    "STAGES",
    "ContextPipeline",
    "ContextPlan",
    "ContextView",
    "Draft",
    "Edit",
    "Replacement",
    "Stage",
    "Summarise",
    "SummaryRequest",
    "SummaryResult",
    "apply_edits",
]

RAPID_REFILL_TURNS: Final = 3
"""A context that is full again within this many turns was refilled (observed in the reference loop: 3)."""


@dataclass(frozen=True, slots=True)
class ContextPlan:
    """How assembling the context ended, and what is to be edited for it."""

    outcome: ContextOutcome
    edits: list[Edit] = field(default_factory=list[Edit])
    detail: str = ""
    autocompact_failures: int = 0
    """Compactions in a row that were in vain, this one included."""


async def _microcompact(draft: Draft) -> None:
    if draft.view.microcompact is None:
        microcompact.apply(draft)
    else:
        await _replaced(draft, microcompact.STAGE, draft.view.microcompact)


async def _autocompact(draft: Draft) -> None:
    if draft.view.autocompact is None:
        await autocompact.apply(draft)
    elif await _replaced(draft, compaction.STAGE, draft.view.autocompact):
        draft.compaction = "compacted"


STAGES: Final[Mapping[str, Stage]] = {
    "tool_result_budget": tool_result_budget.apply,
    "media_check": media_check.apply,
    "snip": snip.apply,
    "microcompact": _microcompact,
    "collapse": collapse.apply,
    "autocompact": _autocompact,
    "blocking_check": blocking_check.apply,
}
"""The stages in their order."""


class ContextPipeline:
    """Runs the stages. It keeps nothing of a run, so one serves any number of runs at once."""

    def __init__(self, stages: Mapping[str, Stage] = STAGES) -> None:
        self.stages = dict(stages)

    async def prepare(self, view: ContextView) -> ContextPlan:
        """Decide what the next request is made of. At most one summary is asked for. Raises nothing but a cancel."""
        draft = Draft(view)
        for name, stage in self.stages.items():
            try:
                waiting = stage(draft)
                if waiting is not None:
                    await waiting
            except Exception as error:
                logger.exception("context_stage_failed", stage=name)
                return ContextPlan(
                    ContextOutcome.FAILED, [], f"The stage {name} failed: {type(error).__name__}: {error}"
                )
        return _plan(draft)


def _plan(draft: Draft) -> ContextPlan:
    view = draft.view
    failures = view.autocompact_failures
    if draft.compaction:
        failures = failures + 1 if draft.compaction == "failed" else 0
    if draft.too_large:
        return ContextPlan(ContextOutcome.TOO_LARGE, draft.edits, draft.too_large, failures)
    outcome = ContextOutcome.READY
    if draft.compaction == "compacted":
        last = view.last_compaction_turn
        refilled = last is not None and view.turn - last <= RAPID_REFILL_TURNS
        outcome = ContextOutcome.REFILLED if refilled else ContextOutcome.COMPACTED
    return ContextPlan(outcome, draft.edits, draft.detail, failures)


async def _replaced(draft: Draft, stage: str, replacement: Replacement) -> bool:
    """Ask a stage of the program's own; what it returns is made valid, since nobody else has checked it."""
    view = draft.view if draft.history is draft.view.history else _with_history(draft)
    answer: Any = replacement(view)
    messages: Sequence[Mapping[str, Any]] | None = await answer if inspect.isawaitable(answer) else answer
    if messages is None:
        return False
    mended, notes = repaired(messages)
    for text in notes:
        logger.warning("context_stage_repaired", stage=stage, repair=text)
    kept = {id(entry.message) for entry in draft.history}
    gone = len(draft.history) - sum(id(message) in kept for message in mended)
    if gone == 0 and len(mended) == len(draft.history):
        return False
    draft.replace(stage, 0, len(draft.history), mended, f"{gone} messages were replaced.")
    return True


def _with_history(draft: Draft) -> ContextView:
    from dataclasses import replace

    return replace(draft.view, history=draft.history)
