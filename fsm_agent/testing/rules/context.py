"""Rules on the context window (R180, R181)."""

from collections.abc import Iterator

from fsm_agent.testing.rules.refusal import ApiRefusal, refuse
from fsm_agent.testing.rules.request import Request

Refusals = Iterator[ApiRefusal]


def check_context_window(request: Request) -> Refusals:
    """R180; R181 on the older models. Newer ones answer 200 and stop with `model_context_window_exceeded`."""
    window = request.settings.window(request.model, request.betas)
    tokens = request.tokens
    if tokens > window:
        yield refuse("R180", f"prompt is too long: {tokens} tokens > {window} maximum")
        return
    asked = int(request.body.get("max_tokens", 0))
    if request.profile.overflow_is_error and tokens + asked > window:
        text = f"input length and `max_tokens` exceed context limit: {tokens} + {asked} > {window}, decrease input"
        yield refuse("R181", f"{text} length or `max_tokens` and try again")
