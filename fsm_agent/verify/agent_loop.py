"""What the shipped loop should do: the second entry in the books, beside the table in `fsm_agent.machine`."""

from __future__ import annotations

from fsm_agent.machine import AnyOf, Below, Flag, Not
from fsm_agent.verify.conditions import AllOf, Fact
from fsm_agent.verify.contracts import Always, Answers, Contract, Counts, Enters, Fires, Firing, Never, Once, Performs

# What a recovery counts within one turn.
PER_TURN = frozenset(
    [
        "transport_retries",
        "stream_resumes",
        "max_output_tokens_recoveries",
        "malformed",
        "escalated",
        "empty_nudged",
        "compact_attempts",
        "media_removals",
        "pauses",
        "collapse_drained",
        "reactive_compact_attempted",
    ]
)
# The triggers that begin a turn, and those after a well-formed reply that no tool follows.
REPLIES = "pause_turn output_retry stop_hook_blocking token_budget_continuation"
TURNS = f"next_turn {REPLIES}"


def _raised(firing: Firing) -> set[str]:
    return {name for name, value in firing.after.items() if value > firing.before[name]}


def _rearms_only_between_turns(firing: Firing) -> bool:
    """A row that puts a recovery back begins a turn, or changes the model."""
    touched = {update.name for update in firing.row.update}
    put_back = touched & PER_TURN - _raised(firing)
    return not put_back or "turn" in _raised(firing) or firing.row.trigger == "model_fallback"


ANSWERS: tuple[Contract, ...] = (
    Answers(
        "context",
        {
            "ready": "context_ready",
            "compacted": "context_compacted",
            "refilled": "refill_breaker context_refilled",
            "too_large": "block",
            "failed": "setup_failure",
            "aborted": "abort",
        },
    ),
    Answers(
        "response",
        {
            "tool_use": "tools_requested",
            "budget_spent": "spend_limit",
            "aborted": "abort",
            **dict.fromkeys(
                [
                    "end_turn",
                    "max_tokens",
                    "pause_turn",
                    "refusal",
                    "empty",
                    "malformed_tool_use",
                    "prompt_too_long",
                    "media_rejected",
                    "retryable",
                    "overloaded",
                    "model_unavailable",
                    "cut",
                    "unknown",
                    "fatal",
                ],
                "response_ended",
            ),
        },
    ),
    Answers(
        "response",
        {
            "end_turn": "output_retry output_invalid stop_hook_prevent stop_hook_blocking stop_hook_turn_limit "
            "stop_hook_limit token_budget_continuation complete abort",
            "max_tokens": "max_output_tokens_escalate max_output_tokens_recovery output_limit",
            "pause_turn": "pause_turn pause_turn_limit unfinished_reply",
            "refusal": "model_fallback refuse",
            "empty": "empty_response_nudge empty",
            "malformed_tool_use": "malformed_tool_use_retry malformed_tool_use",
            "prompt_too_long": "collapse_drain_retry reactive_compact_retry compact_shorter_retry overflow abort",
            "media_rejected": "media_removed_retry reactive_compact_retry compact_shorter_retry media_failure abort",
            "retryable": "transport_retry model_fallback model_failure abort",
            "overloaded": "overload_retry model_fallback model_failure abort",
            "model_unavailable": "model_fallback model_failure",
            "cut": "stream_resume model_fallback unfinished_reply abort",
            "unknown": "unknown_stop_reason",
            "fatal": "model_failure",
        },
        state="recovering",
    ),
    Answers(
        "tools",
        {"done": "turn_limit next_turn", "hook_stopped": "hook_stop", "deferred": "defer", "aborted": "abort"},
    ),
    Answers(
        "backoff",
        {
            "elapsed": "transport_retry overload_retry stream_resume",
            "too_long": "model_fallback model_failure unfinished_reply",
            "aborted": "abort",
        },
    ),
    Answers(
        "compact",
        {
            "compacted": "reactive_compact_retry",
            "head_too_long": "compact_shorter_retry overflow media_failure",
            "failed": "overflow media_failure",
            "aborted": "abort",
        },
    ),
    Answers(
        "drain",
        {
            "drained": "collapse_drain_retry",
            "nothing": "reactive_compact_retry compact_shorter_retry overflow abort",
        },
    ),
    Answers(
        "media",
        {
            "removed": "media_removed_retry media_failure",
            "nothing": "reactive_compact_retry compact_shorter_retry media_failure abort",
        },
    ),
    Answers(
        "escalation", {"raised": "max_output_tokens_escalate", "at_ceiling": "max_output_tokens_recovery output_limit"}
    ),
    Answers(
        "output",
        {
            "invalid": "output_retry output_invalid",
            "valid": "stop_hook_prevent stop_hook_blocking stop_hook_turn_limit stop_hook_limit "
            "token_budget_continuation complete abort",
        },
    ),
    Answers(
        "hooks",
        {
            "pass": "token_budget_continuation complete",
            "block": "stop_hook_blocking stop_hook_turn_limit stop_hook_limit",
            "prevent": "stop_hook_prevent",
            "aborted": "abort",
        },
    ),
    Answers("budget", {"under": "token_budget_continuation", "used": "complete"}),
)

ENTRIES: tuple[Contract, ...] = (
    Enters(
        "preprocess",
        f"{TURNS} stream_resume model_fallback collapse_drain_retry media_removed_retry reactive_compact_retry "
        "max_output_tokens_escalate max_output_tokens_recovery malformed_tool_use_retry empty_response_nudge",
    ),
    Enters("calling_model", "context_ready context_compacted context_refilled transport_retry overload_retry"),
    Enters("executing_tools", "tools_requested", when=Fact("response", "tool_use")),
    Enters("recovering", "response_ended compact_shorter_retry"),
    Enters(
        "completed", "complete", when=(Fact("response", "end_turn"), Fact("output", "valid"), Fact("hooks", "pass"))
    ),
    Enters("aborted_streaming", "abort"),
    Enters("aborted_tools", "abort", when=Fact("tools", "aborted")),
    Enters("max_turns", "turn_limit pause_turn_limit stop_hook_turn_limit", when=Not(Below("turn"))),
    Enters("blocking_limit", "block", when=Fact("context", "too_large")),
    Enters("turn_setup_failed", "setup_failure", when=Fact("context", "failed")),
    Enters("rapid_refill_breaker", "refill_breaker", when=Not(Below("rapid_refills"))),
    Enters("budget_exhausted", "spend_limit", when=Fact("response", "budget_spent")),
    Enters("hook_stopped", "hook_stop", when=Fact("tools", "hook_stopped")),
    Enters("tool_deferred", "defer", when=Fact("tools", "deferred")),
    Enters("prompt_too_long", "overflow", when=Fact("response", "prompt_too_long")),
    Enters(
        "image_error",
        "media_failure",
        when=(Fact("response", "media_rejected"), Fact("media", "removed", "nothing")),
    ),
    Enters(
        "max_output_tokens",
        "output_limit",
        when=(Fact("response", "max_tokens"), Not(Below("max_output_tokens_recoveries"))),
    ),
    Enters("malformed_tool_use_exhausted", "malformed_tool_use", when=Not(Below("malformed"))),
    Enters("empty_response", "empty", when=(Fact("response", "empty"), Flag("empty_nudged"))),
    Enters("refusal", "refuse", when=(Fact("response", "refusal"), Not(Below("fallbacks")))),
    Enters("model_error", "model_failure unfinished_reply unknown_stop_reason"),
    Enters(
        "structured_output_retry_exhausted",
        "output_invalid",
        when=(Fact("output", "invalid"), AnyOf(Not(Below("output_retries")), Not(Below("turn")))),
    ),
    Enters("stop_hook_prevented", "stop_hook_prevent", when=Fact("hooks", "prevent")),
    Enters(
        "stop_hook_limit",
        "stop_hook_limit",
        when=(Fact("hooks", "block"), Not(Below("stop_hook_blocks")), Below("turn")),
    ),
)

RETRIES_LEFT = AnyOf(
    AllOf(Fact("response", "retryable", "overloaded"), Below("transport_retries")),
    AllOf(Fact("response", "cut"), Below("stream_resumes")),
)
OVERLOAD_RETRIES_LEFT = AnyOf(
    Below("transport_retries", "overload_retries_before_fallback"),
    Not(Below("fallbacks")),
)
# The cheaper recovery was tried first, and declined or was used up.
ORDER: tuple[Contract, ...] = (
    Performs("backoff", when=RETRIES_LEFT),
    Fires("overload_retry", when=OVERLOAD_RETRIES_LEFT),
    Fires(
        "model_fallback model_failure",
        when=AnyOf(
            Fact("response", "model_unavailable", "refusal", "fatal"),
            Fact("backoff", "too_long"),
            Not(RETRIES_LEFT),
            AllOf(Fact("response", "overloaded"), Not(OVERLOAD_RETRIES_LEFT)),
        ),
    ),
    Performs("drain", when=Not(Flag("collapse_drained"))),
    Performs(
        "media",
        when=(
            Fact("response", "media_rejected"),
            AnyOf(
                Below("media_removals"), Fact("compact", "failed", "head_too_long"), Flag("reactive_compact_attempted")
            ),
        ),
    ),
    Performs(
        "compact",
        when=(
            Not(Flag("reactive_compact_attempted")),
            AnyOf(Fact("response", "media_rejected"), Fact("drain", "nothing"), Flag("collapse_drained")),
            AnyOf(Fact("response", "prompt_too_long"), Fact("media", "nothing"), Not(Below("media_removals"))),
        ),
    ),
    Performs("escalation", when=Not(Flag("escalated"))),
    Fires("max_output_tokens_recovery", when=AnyOf(Flag("escalated"), Fact("escalation", "at_ceiling"))),
    Performs("output", when=Fact("response", "end_turn")),
    Performs("hooks", when=Fact("output", "valid")),
    Performs("budget", when=(Fact("hooks", "pass"), Below("budget_continuations"), Below("turn"))),
    Fires(TURNS, when=Below("turn")),
)

COUNTS: tuple[Contract, ...] = (
    Counts("turn", TURNS),
    Counts("transport_retries", "transport_retry overload_retry", f"{TURNS} model_fallback"),
    Counts("stream_resumes", "stream_resume", f"{TURNS} model_fallback"),
    Counts("fallbacks", "model_fallback"),
    Counts("max_output_tokens_recoveries", "max_output_tokens_recovery", TURNS),
    Counts("escalated", "max_output_tokens_escalate", TURNS),
    Counts("malformed", "malformed_tool_use_retry", TURNS),
    Counts("empty_nudged", "empty_response_nudge", TURNS),
    Counts("compact_attempts", "compact_shorter_retry", "next_turn"),
    Counts("reactive_compact_attempted", "reactive_compact_retry", "next_turn"),
    Counts("collapse_drained", "collapse_drain_retry", "next_turn"),
    Counts("media_removals", "media_removed_retry", "next_turn"),
    Counts("pauses", "pause_turn", "next_turn"),
    Counts("output_retries", "output_retry"),
    Counts("stop_hook_blocks", "stop_hook_blocking"),
    Counts("stop_hook_active", "stop_hook_blocking"),
    Counts("budget_continuations", "token_budget_continuation"),
    Counts("rapid_refills", "context_refilled", "context_compacted"),
)

ALWAYS: tuple[Contract, ...] = (
    Once("response", "keep_reply keep_text discard_reply"),
    Always("a recovery is never re-armed within its turn", _rearms_only_between_turns),
    *(
        Never("context response tools backoff compact hooks", after=(effect, "aborted"))
        for effect in ("context", "response", "tools", "backoff", "compact", "hooks")
    ),
)

AGENT_LOOP_CONTRACTS: tuple[Contract, ...] = (*ANSWERS, *ENTRIES, *ORDER, *COUNTS, *ALWAYS)
"""What the shipped machine should do.

For an extension of it, take these over with `amended(AGENT_LOOP_CONTRACTS, ...)`.
"""
