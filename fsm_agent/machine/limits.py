"""Every bound of a run, in one frozen model."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Count = Annotated[int, Field(ge=0)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class LoopLimits(BaseModel):
    """The bounds of a run. Each has a default that is safe, a unit and a range; an unknown name is an error.

    >>> LoopLimits(max_turns=20).max_turns
    20
    """

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    # What the declaration counts.
    max_turns: Annotated[int, Field(ge=1)] | None = 200
    """Replies of the model that the loop goes on from, per run. Retries, escalations, resumptions and summaries are not
    counted; a reply that a stop hook, a pause, the token budget or an invalid output sends back is. `None` is no bound:
    the checker then reports the one declared unbounded cycle."""
    max_transport_retries: Count = 10
    """Repetitions of a request after a passing fault, per turn (429, 5xx, lost connection, stall)."""
    overload_retries_before_fallback: Count = 3
    """Repetitions after 529 before a fallback model is taken, where one is left (observed in the reference loop: 3)."""
    max_fallbacks: Count | None = None
    """Changes of the model per run. Left out: the number of fallback models."""
    max_stream_resumes: Count = 3
    """Continuations of a reply whose stream was lost after a complete block, per turn."""
    max_output_tokens_recoveries: Count = 3
    """Continuations of a reply cut by the output limit, per turn, after the limit was raised."""
    max_compact_attempts: Count = 3
    """Further summaries of a shorter prefix when the request for a summary is itself too long, per turn."""
    max_media_removals: Count = 1
    """Requests repeated without the image or document that the API refused, per turn. 0: end with `image_error`."""
    max_pauses: Count = 10
    """Replies in a row that the API paused (`pause_turn`), per turn of tools."""
    max_malformed: Count = 2
    """Repetitions after a reply that announces a tool use and holds none, per turn."""
    max_output_retries: Count = 3
    """Replies sent back because they do not fit the output type, per run."""
    max_stop_hook_blocks: Count = 8
    """Times that stop hooks may send the model back to work, per run (observed in the reference loop: 8)."""
    max_budget_continuations: Count = 16
    """Times that the model is asked to use the rest of its token budget, per run."""
    max_rapid_refills: Count = 3
    """Compactions in a row that were each full again within three turns."""

    # What an effect is bounded by.
    max_output_tokens: Annotated[int, Field(ge=1)] = 8_192
    """Tokens of one reply (`max_tokens` of a request)."""
    escalated_max_output_tokens: Annotated[int, Field(ge=1)] = 64_000
    """Tokens of one reply after the first truncation; never above the model's own maximum."""
    context_window: Annotated[int, Field(ge=1_000)] = 200_000
    """Tokens that the model takes, input and output together."""
    token_budget: Annotated[int, Field(ge=1)] | None = None
    """Output tokens that the model should make use of in the run; it is asked to go on while below 90 % of them."""
    max_total_tokens: Annotated[int, Field(ge=1)] | None = None
    """Hard limit of tokens (input and output, cached ones included) of all requests of the run together."""
    max_cost_usd: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """Hard limit of cost in US dollars; needs `prices` on the machine."""
    stream_idle_timeout: Seconds = 75.0
    """Seconds without a single byte, after which a stream counts as lost."""
    stream_progress_timeout: Seconds = 300.0
    """Seconds with nothing but pings, after which a stream counts as lost."""
    backoff_base: Seconds = 0.5
    """Seconds of the first wait before a retry; the ceiling doubles with each, and the wait is drawn below it."""
    backoff_cap: Seconds = 32.0
    """Seconds that a drawn wait never exceeds."""
    retry_after_cap: Seconds = 120.0
    """Longest `retry-after`, in seconds, that is waited for; above it a fallback model or `model_error` follows."""
    tool_timeout: Seconds = 120.0
    """Seconds that a tool may take, if it declares no time of its own."""
    abort_grace: Seconds = 1.0
    """Seconds that a cancelled tool or hook may take to clean up before it is left behind."""
    hook_timeout: Seconds = 60.0
    """Seconds that a hook may take; a stop hook out of time never blocks."""
    max_concurrent_tools: Annotated[int, Field(ge=1)] = 10
    """Concurrency-safe tools that run at the same time."""
    tool_result_max_chars: Annotated[int, Field(ge=200)] = 30_000
    """Characters of one tool result in the history; the rest goes to a file and a preview stays."""
    message_results_max_chars: Annotated[int, Field(ge=400)] = 200_000
    """Characters of all tool results of one message together."""

    def resolved(self, *, fallback_models: int = 0) -> dict[str, int | None]:
        """The bounds by name as guards read them, with the number of fallbacks filled in."""
        bounds: dict[str, int | None] = {
            name: value for name, value in self.__dict__.items() if value is None or isinstance(value, int)
        }
        if bounds["max_fallbacks"] is None:
            bounds["max_fallbacks"] = fallback_models
        else:
            bounds["max_fallbacks"] = min(bounds["max_fallbacks"], fallback_models)
        return bounds
