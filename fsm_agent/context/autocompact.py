"""Stage 6: under pressure the model is asked for a summary of a prefix, before the context overflows."""

from __future__ import annotations

from typing import Final

from fsm_agent.context.blocking_check import blocking_limit
from fsm_agent.context.compaction import choose_cut, compact, removable_tokens, summary_request
from fsm_agent.context.view import Draft, pressure_threshold

MAX_FAILURES: Final = 3
"""Compactions in vain after which none is tried until the window is full (observed in the reference loop: 3)."""
SUMMARY_SHARE: Final = 0.02
"""Share of the window that a summary is expected to take."""


async def apply(draft: Draft) -> None:
    """The stage: asks the model at most once."""
    limits = draft.view.limits
    if draft.tokens < pressure_threshold(limits):
        return
    full = draft.tokens >= blocking_limit(draft.view)
    if draft.view.autocompact_failures >= MAX_FAILURES and not full:
        return
    cut = choose_cut(draft.history)
    if not cut or not makes_room(draft, cut):
        return
    outcome = await compact(draft, cut, attempt=_attempt(draft, cut))
    draft.compaction = "compacted" if outcome == "compacted" else "failed"


def _attempt(draft: Draft, cut: int) -> int:
    """Each failure makes the next request shorter, as far as it can be made so: the head may have been too long."""
    failures = min(draft.view.autocompact_failures, MAX_FAILURES)
    return next((n for n in range(failures, 0, -1) if summary_request(draft, cut, n) is not None), 0)


def makes_room(draft: Draft, cut: int) -> bool:
    """Whether the context would be below the threshold then: where fixed parts fill it, a compaction is in vain."""
    share = removable_tokens(draft.history, cut) / max(1, draft.view.fixed_tokens + draft.history.tokens)
    left = draft.tokens * (1 - share) + SUMMARY_SHARE * draft.view.limits.context_window
    return left < pressure_threshold(draft.view.limits)
