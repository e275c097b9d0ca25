"""The words of the loop: its states, triggers, effects, outcomes and terminal reasons.

Everything else (code, logs, diagrams, tests) uses these words and no others. They are string enumerations, so that a
declaration extended by a user may add plain strings of its own.
"""

from enum import StrEnum


class State(StrEnum):
    """Where a run is. The loop has five states and no more; a user's declaration may add some."""

    PREPROCESS = "preprocess"
    CALLING_MODEL = "calling_model"
    EXECUTING_TOOLS = "executing_tools"
    RECOVERING = "recovering"
    TERMINAL = "terminal"


class Effect(StrEnum):
    """A named piece of work on the world. Each ends in exactly one of the outcomes that it declares."""

    CONTEXT = "context"
    RESPONSE = "response"
    TOOLS = "tools"
    BACKOFF = "backoff"
    DRAIN = "drain"
    COMPACT = "compact"
    MEDIA = "media"
    ESCALATION = "escalation"
    OUTPUT = "output"
    HOOKS = "hooks"
    BUDGET = "budget"


class ContextOutcome(StrEnum):
    """How assembling the context ended."""

    READY = "ready"
    COMPACTED = "compacted"
    """The model summarised a prefix, after a calm stretch."""
    REFILLED = "refilled"
    """The context had to be compacted again within a few turns of the last time."""
    TOO_LARGE = "too_large"
    FAILED = "failed"
    ABORTED = "aborted"


class ResponseOutcome(StrEnum):
    """How one request to the model ended."""

    TOOL_USE = "tool_use"
    END_TURN = "end_turn"
    MAX_TOKENS = "max_tokens"
    PAUSE_TURN = "pause_turn"
    REFUSAL = "refusal"
    EMPTY = "empty"
    """A normal end without anything that a reader could see."""
    MALFORMED_TOOL_USE = "malformed_tool_use"
    """The stop reason says `tool_use`, and there is no tool use."""
    PROMPT_TOO_LONG = "prompt_too_long"
    MEDIA_REJECTED = "media_rejected"
    RETRYABLE = "retryable"
    """A passing fault of the transport or the service, or a stream cut before anything worth keeping was complete."""
    OVERLOADED = "overloaded"
    """The service says that it is overloaded (529): retried fewer times than others where a fallback model is left."""
    MODEL_UNAVAILABLE = "model_unavailable"
    """The model does not exist for this key (404): another model may."""
    CUT = "cut"
    """The stream was lost after a complete text block, which is worth keeping."""
    UNKNOWN = "unknown"
    """A whole message with a stop reason that this version does not know."""
    FATAL = "fatal"
    """A failure that would be the same again (400, 401, 403, ...)."""
    BUDGET_SPENT = "budget_spent"
    ABORTED = "aborted"


class ToolsOutcome(StrEnum):
    """How the calls of one message ended, folded to one outcome."""

    DONE = "done"
    HOOK_STOPPED = "hook_stopped"
    DEFERRED = "deferred"
    ABORTED = "aborted"


class Trigger(StrEnum):
    """What the machine does next. The first seven are the loop's published reasons to continue."""

    NEXT_TURN = "next_turn"
    MAX_OUTPUT_TOKENS_ESCALATE = "max_output_tokens_escalate"
    MAX_OUTPUT_TOKENS_RECOVERY = "max_output_tokens_recovery"
    REACTIVE_COMPACT_RETRY = "reactive_compact_retry"
    COLLAPSE_DRAIN_RETRY = "collapse_drain_retry"
    STOP_HOOK_BLOCKING = "stop_hook_blocking"
    TOKEN_BUDGET_CONTINUATION = "token_budget_continuation"  # noqa: S105 - a trigger, not a secret

    CONTEXT_READY = "context_ready"
    CONTEXT_COMPACTED = "context_compacted"
    CONTEXT_REFILLED = "context_refilled"
    TOOLS_REQUESTED = "tools_requested"
    RESPONSE_ENDED = "response_ended"

    TRANSPORT_RETRY = "transport_retry"
    OVERLOAD_RETRY = "overload_retry"
    MODEL_FALLBACK = "model_fallback"
    STREAM_RESUME = "stream_resume"
    COMPACT_SHORTER_RETRY = "compact_shorter_retry"
    MEDIA_REMOVED_RETRY = "media_removed_retry"
    PAUSE_TURN = "pause_turn"
    MALFORMED_TOOL_USE_RETRY = "malformed_tool_use_retry"
    EMPTY_RESPONSE_NUDGE = "empty_response_nudge"
    OUTPUT_RETRY = "output_retry"

    ABORT = "abort"
    SETUP_FAILURE = "setup_failure"
    REFILL_BREAKER = "refill_breaker"
    BLOCK = "block"
    SPEND_LIMIT = "spend_limit"
    HOOK_STOP = "hook_stop"
    DEFER = "defer"
    TURN_LIMIT = "turn_limit"
    OVERFLOW = "overflow"
    MEDIA_FAILURE = "media_failure"
    OUTPUT_LIMIT = "output_limit"
    PAUSE_TURN_LIMIT = "pause_turn_limit"
    MALFORMED_TOOL_USE = "malformed_tool_use"
    EMPTY = "empty"
    REFUSE = "refuse"
    MODEL_FAILURE = "model_failure"
    UNFINISHED_REPLY = "unfinished_reply"
    UNKNOWN_STOP_REASON = "unknown_stop_reason"
    OUTPUT_INVALID = "output_invalid"
    STOP_HOOK_PREVENT = "stop_hook_prevent"
    STOP_HOOK_TURN_LIMIT = "stop_hook_turn_limit"
    STOP_HOOK_LIMIT = "stop_hook_limit"
    COMPLETE = "complete"


class TerminalReason(StrEnum):
    """Why a run ended. A run ends in exactly one of these; only `completed` is a success."""

    COMPLETED = "completed"
    ABORTED_STREAMING = "aborted_streaming"
    ABORTED_TOOLS = "aborted_tools"
    MAX_TURNS = "max_turns"
    BLOCKING_LIMIT = "blocking_limit"
    PROMPT_TOO_LONG = "prompt_too_long"
    MODEL_ERROR = "model_error"
    STOP_HOOK_PREVENTED = "stop_hook_prevented"
    HOOK_STOPPED = "hook_stopped"
    IMAGE_ERROR = "image_error"
    RAPID_REFILL_BREAKER = "rapid_refill_breaker"
    MALFORMED_TOOL_USE_EXHAUSTED = "malformed_tool_use_exhausted"
    BUDGET_EXHAUSTED = "budget_exhausted"
    STRUCTURED_OUTPUT_RETRY_EXHAUSTED = "structured_output_retry_exhausted"
    TOOL_DEFERRED = "tool_deferred"
    TURN_SETUP_FAILED = "turn_setup_failed"
    MAX_OUTPUT_TOKENS = "max_output_tokens"
    REFUSAL = "refusal"
    EMPTY_RESPONSE = "empty_response"
    STOP_HOOK_LIMIT = "stop_hook_limit"


class Action(StrEnum):
    """What a row does to the conversation, at once and without a choice of its own, when it fires.

    Actions never decide: which of them run is written in the row.
    """

    APPLY_CONTEXT = "apply_context"
    """The edits that assembling the context proposed are made."""
    KEEP_REPLY = "keep_reply"
    """The model's message enters the history as it is."""
    KEEP_TEXT = "keep_text"
    """Only the whole, visible part of the message enters the history: no tool use of it."""
    DISCARD_REPLY = "discard_reply"
    """The message is retracted by a tombstone."""
    ANSWER_CALLS = "answer_calls"
    """The results of the tool calls enter the history, in the order of the calls."""
    REFUSE_CALLS = "refuse_calls"
    """Each call of the message is answered: not run."""
    ATTACH = "attach"
    """Messages queued by the user and other attachments enter the history."""
    NOTE_INTERRUPTION = "note_interruption"
    SWITCH_MODEL = "switch_model"
    APPLY_DRAIN = "apply_drain"
    APPLY_COMPACTION = "apply_compaction"
    REMOVE_MEDIA = "remove_media"
    ASK_TO_CONTINUE_TRUNCATED = "ask_to_continue_truncated"
    ASK_TO_CONTINUE_CUT = "ask_to_continue_cut"
    ASK_FOR_VISIBLE_OUTPUT = "ask_for_visible_output"
    ASK_FOR_VALID_OUTPUT = "ask_for_valid_output"
    SAY_HOOK_FEEDBACK = "say_hook_feedback"
    SAY_BUDGET_LEFT = "say_budget_left"
