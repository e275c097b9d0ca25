"""A view of a run, with a model whose summaries are scripted and whose requests are kept."""

import json
from typing import Any

from fsm_agent.context.view import ContextView, SummaryRequest, SummaryResult
from fsm_agent.machine import LoopLimits, ResponseOutcome
from fsm_agent.model.usage import Usage
from fsm_agent.session.history import History

WINDOW = 3_000
LIMITS = LoopLimits(context_window=WINDOW)


class Summaries:
    """Answers requests for a summary one after another, the last answer for ever."""

    def __init__(self, *answers: str | SummaryResult) -> None:
        self.answers = list(answers or ["<summary>All is well.</summary>"])
        self.requests: list[SummaryRequest] = []

    async def __call__(self, request: SummaryRequest) -> SummaryResult:
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return answer if isinstance(answer, SummaryResult) else SummaryResult(ResponseOutcome.END_TURN, answer)

    def messages(self, number: int = -1) -> list[dict[str, Any]]:
        messages: list[dict[str, Any]] = json.loads(self.requests[number].body)
        return messages


async def no_summary(request: SummaryRequest) -> SummaryResult:
    raise AssertionError("No summary may be asked for here.")


def view(history: History | list[Any], summarise: Any = no_summary, **more: Any) -> ContextView:
    if isinstance(history, list):
        history = History(history)
    return ContextView(history=history, limits=more.pop("limits", LIMITS), summarise=summarise, **more)


def counted(tokens: int) -> Usage:
    """The usage of a reply after which the context has this size."""
    return Usage(input_tokens=0, cache_read_input_tokens=tokens, output_tokens=0)
