"""Stage 7: what cannot but fail is not sent."""

from __future__ import annotations

from typing import Final

from fsm_agent.context.view import ContextView, Draft

UNMEASURED: Final = 1.25
"""Before the API has counted anything, the size is a guess: only what is larger than the window by this factor is held
back. What is refused after all can still be compacted."""


def blocking_limit(view: ContextView) -> int:
    """Tokens from which a request must fail."""
    window = view.limits.context_window
    return window if view.measured else round(window * UNMEASURED)


def apply(draft: Draft) -> None:
    """The stage: says why the request is held back."""
    size = draft.tokens
    if size >= blocking_limit(draft.view):
        window = draft.view.limits.context_window
        why = f" {draft.detail}" if draft.compaction == "failed" else ""
        draft.too_large = f"The context has about {size} tokens, and the window {window}.{why}"
