"""What a run came to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from fsm_agent.machine import TerminalReason
from fsm_agent.model.usage import Usage
from fsm_agent.session.history import History


@dataclass(frozen=True, slots=True)
class RunResult:
    """The end of a run: why, and everything that it made.

    `messages` are plain Messages-API dicts and are always a valid history for the next run.
    """

    reason: TerminalReason | str
    """Why the run ended; `completed` is the only success."""
    detail: str
    """Why, in a sentence; '' where the reason says it all."""
    text: str
    """The whole answer: continuations of a cut reply are joined."""
    history: History = field(repr=False)
    usage: Usage
    """Each response of the API counted once: retries and summaries too."""
    turns: int
    """The turn that the run ended in, from 1."""
    requests: int
    """Requests to the model, whatever became of them."""
    trace: tuple[str, ...] = field(repr=False)
    """The triggers of the rows that fired, in order."""
    model: str
    """The model that the run ended with."""
    output: Any = None
    """The validated output, if the machine has an `output_type`."""
    undelivered: tuple[Any, ...] = ()
    """Messages queued by `run.send` that no turn was left for."""
    error: Any = None
    """The failure behind `model_error` and its like (`fsm_agent.model.Failure`), or None."""

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The conversation as plain dicts."""
        return list[dict[str, Any]](self.history.messages)

    @property
    def ok(self) -> bool:
        return self.reason == TerminalReason.COMPLETED
