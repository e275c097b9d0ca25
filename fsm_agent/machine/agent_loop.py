"""The agent loop, declared. Everything that decides what the loop does next is in this file; nothing elsewhere does.

Rules of the house
------------------

- Rows of a state are offered in the order in which they stand here. An expensive recovery (a compaction) is attempted
  only if the cheaper one above it declined and its limit allows it.
- One request to the model per entry into `calling_model`. A retry, a fallback, a resumption is a row with a counter, so
  the number of requests of a run is bounded by proof.
- What happens to the model's message is in the row too: kept, kept in part, or discarded. Exactly one of these is done
  to each message.
- A turn is a well-formed reply that the loop goes on from: after its tools, a pause, a stop hook's objection, an
  invalid output, or because the token budget is not used. Each raises `turn`. Repairs of a reply do not.
- `next_turn` re-arms the recoveries. A stop hook's objection re-arms those of the transport and the output, but never
  the compaction: that is the published loop's unbounded cycle.
- Stop hooks are asked only after a normal end of turn: they stand below every row that takes another outcome.

States
------

`preprocess` assembles the context; `calling_model` makes the one request; `executing_tools` runs the calls of the
message; `recovering` decides what becomes of any other reply; `terminal` is the end, with its reason.
"""

from fsm_agent.machine.definition import Counter, Definition, EffectSpec, FlagSpec, Row, StateSpec
from fsm_agent.machine.guards import AnyOf, Below, Flag, Increment, Not, Reset, Set
from fsm_agent.machine.vocabulary import (
    Action,
    ContextOutcome,
    Effect,
    ResponseOutcome,
    State,
    TerminalReason,
    ToolsOutcome,
    Trigger,
)

STATES = (
    StateSpec(State.PREPROCESS, note="assemble the context"),
    StateSpec(State.CALLING_MODEL, note="one request"),
    StateSpec(State.EXECUTING_TOOLS, inherits=(Effect.RESPONSE,), note="run the calls of the message"),
    StateSpec(State.RECOVERING, inherits=(Effect.RESPONSE,), note="repair, continue or end"),
    StateSpec(State.TERMINAL, final=True, note="one reason"),
)

EFFECTS = (
    EffectSpec(Effect.CONTEXT, State.PREPROCESS, tuple(ContextOutcome), requests=1, note="the context pipeline"),
    EffectSpec(Effect.RESPONSE, State.CALLING_MODEL, tuple(ResponseOutcome), requests=1, note="one streamed request"),
    EffectSpec(Effect.TOOLS, State.EXECUTING_TOOLS, tuple(ToolsOutcome), note="a fold of one effect per call"),
    EffectSpec(Effect.BACKOFF, State.RECOVERING, ("elapsed", "too_long", "aborted"), note="wait before a repetition"),
    EffectSpec(Effect.DRAIN, State.RECOVERING, ("drained", "nothing"), note="commit the staged collapses"),
    EffectSpec(
        Effect.COMPACT,
        State.RECOVERING,
        ("compacted", "head_too_long", "failed", "aborted"),
        requests=1,
        note="the model summarises a prefix",
    ),
    EffectSpec(Effect.MEDIA, State.RECOVERING, ("removed", "nothing"), note="replace the refused media by a note"),
    EffectSpec(Effect.ESCALATION, State.RECOVERING, ("raised", "at_ceiling"), note="find a higher output limit"),
    EffectSpec(Effect.OUTPUT, State.RECOVERING, ("valid", "invalid"), note="validate the structured output"),
    EffectSpec(Effect.HOOKS, State.RECOVERING, ("pass", "block", "prevent", "aborted"), note="run the stop hooks"),
    EffectSpec(Effect.BUDGET, State.RECOVERING, ("under", "used"), note="weigh the token budget"),
)

COUNTERS = (
    Counter("turn", "max_turns", initial=1, note="the turn that the run is in"),
    Counter("transport_retries", "max_transport_retries"),
    Counter("fallbacks", "max_fallbacks"),
    Counter("stream_resumes", "max_stream_resumes"),
    Counter("max_output_tokens_recoveries", "max_output_tokens_recoveries"),
    Counter("compact_attempts", "max_compact_attempts"),
    Counter("media_removals", "max_media_removals"),
    Counter("pauses", "max_pauses"),
    Counter("malformed", "max_malformed"),
    Counter("output_retries", "max_output_retries"),
    Counter("stop_hook_blocks", "max_stop_hook_blocks"),
    Counter("budget_continuations", "max_budget_continuations"),
    Counter("rapid_refills", "max_rapid_refills"),
)

FLAGS = (
    FlagSpec("escalated", note="the output limit was raised in this turn"),
    FlagSpec("collapse_drained", note="the staged collapses were drained in this turn"),
    FlagSpec("reactive_compact_attempted", note="a compaction followed an overflow in this turn"),
    FlagSpec("empty_nudged", note="visible output was asked for in this turn"),
    FlagSpec("stop_hook_active", note="the model works because a stop hook objected"),
)

# What a well-formed reply re-arms, whatever the loop goes on for.
REARMED_BY_A_REPLY = tuple(
    Reset(name)
    for name in (
        "transport_retries",
        "stream_resumes",
        "max_output_tokens_recoveries",
        "malformed",
        "escalated",
        "empty_nudged",
    )
)
# What only a turn of tools re-arms: the context has really moved on.
REARMED_BY_A_TURN = (
    *REARMED_BY_A_REPLY,
    *(
        Reset(name)
        for name in ("compact_attempts", "media_removals", "pauses", "collapse_drained", "reactive_compact_attempted")
    ),
)

_PRE, _CALL, _TOOLS, _REC, _END = State
_R, _C, _T, _W, _A = ResponseOutcome, ContextOutcome, ToolsOutcome, TerminalReason, Action
_NOT_RECOVERED = (_R.ABORTED, _R.BUDGET_SPENT, _R.TOOL_USE)

PREPROCESS = (
    Row(_PRE, Trigger.ABORT, _END, given={"context": _C.ABORTED}, do=_A.NOTE_INTERRUPTION, reason=_W.ABORTED_STREAMING),
    Row(_PRE, Trigger.SETUP_FAILURE, _END, given={"context": _C.FAILED}, reason=_W.TURN_SETUP_FAILED),
    Row(
        _PRE,
        Trigger.REFILL_BREAKER,
        _END,
        given={"context": _C.REFILLED},
        when=Not(Below("rapid_refills")),
        do=_A.APPLY_CONTEXT,
        reason=_W.RAPID_REFILL_BREAKER,
    ),
    Row(
        _PRE,
        Trigger.CONTEXT_REFILLED,
        _CALL,
        given={"context": _C.REFILLED},
        when=Below("rapid_refills"),
        update=Increment("rapid_refills"),
        do=_A.APPLY_CONTEXT,
    ),
    Row(_PRE, Trigger.BLOCK, _END, given={"context": _C.TOO_LARGE}, reason=_W.BLOCKING_LIMIT),
    Row(
        _PRE,
        Trigger.CONTEXT_COMPACTED,
        _CALL,
        given={"context": _C.COMPACTED},
        update=Reset("rapid_refills"),
        do=_A.APPLY_CONTEXT,
    ),
    Row(_PRE, Trigger.CONTEXT_READY, _CALL, given={"context": _C.READY}, do=_A.APPLY_CONTEXT),
)

CALLING_MODEL = (
    Row(
        _CALL,
        Trigger.ABORT,
        _END,
        given={"response": _R.ABORTED},
        do=(_A.KEEP_TEXT, _A.NOTE_INTERRUPTION),
        reason=_W.ABORTED_STREAMING,
    ),
    Row(
        _CALL,
        Trigger.SPEND_LIMIT,
        _END,
        given={"response": _R.BUDGET_SPENT},
        do=(_A.KEEP_REPLY, _A.REFUSE_CALLS),
        reason=_W.BUDGET_EXHAUSTED,
    ),
    Row(_CALL, Trigger.TOOLS_REQUESTED, _TOOLS, given={"response": _R.TOOL_USE}, do=_A.KEEP_REPLY),
    Row(
        _CALL,
        Trigger.RESPONSE_ENDED,
        _REC,
        given={"response": [outcome for outcome in _R if outcome not in _NOT_RECOVERED]},
    ),
)

EXECUTING_TOOLS = (
    Row(
        _TOOLS,
        Trigger.ABORT,
        _END,
        given={"tools": _T.ABORTED},
        do=(_A.ANSWER_CALLS, _A.NOTE_INTERRUPTION),
        reason=_W.ABORTED_TOOLS,
    ),
    Row(
        _TOOLS,
        Trigger.HOOK_STOP,
        _END,
        given={"tools": _T.HOOK_STOPPED},
        do=_A.ANSWER_CALLS,
        reason=_W.HOOK_STOPPED,
    ),
    Row(_TOOLS, Trigger.DEFER, _END, given={"tools": _T.DEFERRED}, do=_A.ANSWER_CALLS, reason=_W.TOOL_DEFERRED),
    Row(
        _TOOLS,
        Trigger.TURN_LIMIT,
        _END,
        given={"tools": _T.DONE},
        when=Not(Below("turn")),
        do=_A.ANSWER_CALLS,
        reason=_W.MAX_TURNS,
    ),
    Row(
        _TOOLS,
        Trigger.NEXT_TURN,
        _PRE,
        given={"tools": _T.DONE},
        when=Below("turn"),
        update=(Increment("turn"), *REARMED_BY_A_TURN),
        do=(_A.ANSWER_CALLS, _A.ATTACH),
    ),
)

# A reply that never became a message: repeat, change the model, or go on from what is complete.
TRANSPORT = (
    Row(
        _REC,
        Trigger.TRANSPORT_RETRY,
        _CALL,
        given={"response": _R.RETRYABLE, "backoff": "elapsed"},
        when=Below("transport_retries"),
        update=Increment("transport_retries"),
        do=_A.DISCARD_REPLY,
    ),
    Row(
        _REC,
        Trigger.OVERLOAD_RETRY,
        _CALL,
        given={"response": _R.OVERLOADED, "backoff": "elapsed"},
        when=(
            Below("transport_retries"),
            AnyOf(Below("transport_retries", "overload_retries_before_fallback"), Not(Below("fallbacks"))),
        ),
        update=Increment("transport_retries"),
        do=_A.DISCARD_REPLY,
    ),
    Row(
        _REC,
        Trigger.STREAM_RESUME,
        _PRE,
        given={"response": _R.CUT, "backoff": "elapsed"},
        when=Below("stream_resumes"),
        update=Increment("stream_resumes"),
        do=(_A.KEEP_TEXT, _A.ASK_TO_CONTINUE_CUT),
    ),
    Row(
        _REC,
        Trigger.MODEL_FALLBACK,
        _PRE,
        given={"response": (_R.RETRYABLE, _R.OVERLOADED, _R.CUT, _R.MODEL_UNAVAILABLE, _R.REFUSAL)},
        when=Below("fallbacks"),
        update=(Increment("fallbacks"), Reset("transport_retries"), Reset("stream_resumes")),
        do=(_A.DISCARD_REPLY, _A.SWITCH_MODEL),
    ),
)

# The request was too large, or held media that the API refuses: make it smaller, cheapest way first.
OVERFLOW = (
    Row(
        _REC,
        Trigger.COLLAPSE_DRAIN_RETRY,
        _PRE,
        given={"response": _R.PROMPT_TOO_LONG, "drain": "drained"},
        when=Not(Flag("collapse_drained")),
        update=Set("collapse_drained"),
        do=(_A.DISCARD_REPLY, _A.APPLY_DRAIN),
    ),
    Row(
        _REC,
        Trigger.MEDIA_REMOVED_RETRY,
        _PRE,
        given={"response": _R.MEDIA_REJECTED, "media": "removed"},
        when=Below("media_removals"),
        update=Increment("media_removals"),
        do=(_A.DISCARD_REPLY, _A.REMOVE_MEDIA),
    ),
    Row(
        _REC,
        Trigger.REACTIVE_COMPACT_RETRY,
        _PRE,
        given={"response": (_R.PROMPT_TOO_LONG, _R.MEDIA_REJECTED), "compact": "compacted"},
        when=Not(Flag("reactive_compact_attempted")),
        update=Set("reactive_compact_attempted"),
        do=(_A.DISCARD_REPLY, _A.APPLY_COMPACTION),
    ),
    Row(
        _REC,
        Trigger.COMPACT_SHORTER_RETRY,
        _REC,
        given={"response": (_R.PROMPT_TOO_LONG, _R.MEDIA_REJECTED), "compact": "head_too_long"},
        when=(Not(Flag("reactive_compact_attempted")), Below("compact_attempts")),
        update=Increment("compact_attempts"),
    ),
    Row(
        _REC,
        Trigger.OVERFLOW,
        _END,
        given={"response": _R.PROMPT_TOO_LONG},
        do=_A.DISCARD_REPLY,
        reason=_W.PROMPT_TOO_LONG,
    ),
    Row(
        _REC,
        Trigger.MEDIA_FAILURE,
        _END,
        given={"response": _R.MEDIA_REJECTED, "media": ("removed", "nothing")},
        do=(_A.DISCARD_REPLY, _A.REMOVE_MEDIA),  # what the API refused must not fail the next run too
        reason=_W.IMAGE_ERROR,
    ),
)

# A message came, but it is not an answer.
TRUNCATION = (
    Row(
        _REC,
        Trigger.MAX_OUTPUT_TOKENS_ESCALATE,
        _PRE,
        given={"response": _R.MAX_TOKENS, "escalation": "raised"},
        when=Not(Flag("escalated")),
        update=Set("escalated"),
        do=_A.DISCARD_REPLY,
    ),
    Row(
        _REC,
        Trigger.MAX_OUTPUT_TOKENS_RECOVERY,
        _PRE,
        given={"response": _R.MAX_TOKENS},
        when=Below("max_output_tokens_recoveries"),
        update=Increment("max_output_tokens_recoveries"),
        do=(_A.KEEP_TEXT, _A.ASK_TO_CONTINUE_TRUNCATED),
    ),
    Row(
        _REC,
        Trigger.OUTPUT_LIMIT,
        _END,
        given={"response": _R.MAX_TOKENS},
        do=_A.KEEP_TEXT,
        reason=_W.MAX_OUTPUT_TOKENS,
    ),
)
UNFIT_REPLY = (
    Row(
        _REC,
        Trigger.PAUSE_TURN,
        _PRE,
        given={"response": _R.PAUSE_TURN},
        when=(Below("pauses"), Below("turn")),
        update=(Increment("pauses"), Increment("turn"), *REARMED_BY_A_REPLY),
        do=_A.KEEP_REPLY,
    ),
    Row(
        _REC,
        Trigger.PAUSE_TURN_LIMIT,
        _END,
        given={"response": _R.PAUSE_TURN},
        when=Not(Below("turn")),
        do=_A.KEEP_TEXT,
        reason=_W.MAX_TURNS,
    ),
    Row(
        _REC,
        Trigger.MALFORMED_TOOL_USE_RETRY,
        _PRE,
        given={"response": _R.MALFORMED_TOOL_USE},
        when=Below("malformed"),
        update=Increment("malformed"),
        do=_A.DISCARD_REPLY,
    ),
    Row(
        _REC,
        Trigger.MALFORMED_TOOL_USE,
        _END,
        given={"response": _R.MALFORMED_TOOL_USE},
        do=_A.DISCARD_REPLY,
        reason=_W.MALFORMED_TOOL_USE_EXHAUSTED,
    ),
    Row(
        _REC,
        Trigger.EMPTY_RESPONSE_NUDGE,
        _PRE,
        given={"response": _R.EMPTY},
        when=Not(Flag("empty_nudged")),
        update=Set("empty_nudged"),
        do=(_A.DISCARD_REPLY, _A.ASK_FOR_VISIBLE_OUTPUT),
    ),
    Row(
        _REC,
        Trigger.EMPTY,
        _END,
        given={"response": _R.EMPTY},
        do=_A.DISCARD_REPLY,
        reason=_W.EMPTY_RESPONSE,
    ),
    Row(_REC, Trigger.REFUSE, _END, given={"response": _R.REFUSAL}, do=_A.DISCARD_REPLY, reason=_W.REFUSAL),
    Row(
        _REC,
        Trigger.MODEL_FAILURE,
        _END,
        given={"response": (_R.RETRYABLE, _R.OVERLOADED, _R.MODEL_UNAVAILABLE, _R.FATAL)},
        do=_A.DISCARD_REPLY,
        reason=_W.MODEL_ERROR,
    ),
    Row(
        _REC,
        Trigger.UNFINISHED_REPLY,
        _END,
        given={"response": (_R.CUT, _R.PAUSE_TURN)},
        do=_A.KEEP_TEXT,
        reason=_W.MODEL_ERROR,
    ),
    Row(
        _REC,
        Trigger.UNKNOWN_STOP_REASON,
        _END,
        given={"response": _R.UNKNOWN},
        do=_A.KEEP_TEXT,
        reason=_W.MODEL_ERROR,
    ),
)

# The model ended its turn normally: only now are the output, the stop hooks and the budget asked, in this order.
END_OF_TURN = (
    Row(
        _REC,
        Trigger.OUTPUT_RETRY,
        _PRE,
        given={"response": _R.END_TURN, "output": "invalid"},
        when=(Below("output_retries"), Below("turn")),
        update=(Increment("output_retries"), Increment("turn"), *REARMED_BY_A_REPLY),
        do=(_A.KEEP_REPLY, _A.ASK_FOR_VALID_OUTPUT),
    ),
    Row(
        _REC,
        Trigger.OUTPUT_INVALID,
        _END,
        given={"response": _R.END_TURN, "output": "invalid"},
        do=_A.KEEP_REPLY,
        reason=_W.STRUCTURED_OUTPUT_RETRY_EXHAUSTED,
    ),
    Row(
        _REC,
        Trigger.STOP_HOOK_PREVENT,
        _END,
        given={"response": _R.END_TURN, "hooks": "prevent"},
        do=_A.KEEP_REPLY,
        reason=_W.STOP_HOOK_PREVENTED,
    ),
    Row(
        _REC,
        Trigger.STOP_HOOK_BLOCKING,
        _PRE,
        given={"response": _R.END_TURN, "hooks": "block"},
        when=(Below("stop_hook_blocks"), Below("turn")),
        update=(Increment("stop_hook_blocks"), Increment("turn"), Set("stop_hook_active"), *REARMED_BY_A_REPLY),
        do=(_A.KEEP_REPLY, _A.SAY_HOOK_FEEDBACK),
    ),
    Row(
        _REC,
        Trigger.STOP_HOOK_TURN_LIMIT,
        _END,
        given={"response": _R.END_TURN, "hooks": "block"},
        when=Not(Below("turn")),
        do=_A.KEEP_REPLY,
        reason=_W.MAX_TURNS,
    ),
    Row(
        _REC,
        Trigger.STOP_HOOK_LIMIT,
        _END,
        given={"response": _R.END_TURN, "hooks": "block"},
        do=_A.KEEP_REPLY,
        reason=_W.STOP_HOOK_LIMIT,
    ),
    Row(
        _REC,
        Trigger.TOKEN_BUDGET_CONTINUATION,
        _PRE,
        given={"response": _R.END_TURN, "budget": "under"},
        when=(Below("budget_continuations"), Below("turn")),
        update=(Increment("budget_continuations"), Increment("turn"), *REARMED_BY_A_REPLY),
        do=(_A.KEEP_REPLY, _A.SAY_BUDGET_LEFT),
    ),
    Row(
        _REC,
        Trigger.COMPLETE,
        _END,
        given={"response": _R.END_TURN, "output": "valid", "hooks": "pass"},
        do=_A.KEEP_REPLY,
        reason=_W.COMPLETED,
    ),
)

RECOVERING = (
    # An abort beats everything: whichever effect it interrupted.
    Row(
        _REC,
        Trigger.ABORT,
        _END,
        upon={"backoff": "aborted", "compact": "aborted", "hooks": "aborted"},
        do=(_A.KEEP_TEXT, _A.NOTE_INTERRUPTION),
        reason=_W.ABORTED_STREAMING,
    ),
    *TRANSPORT,
    *OVERFLOW,
    *TRUNCATION,
    *UNFIT_REPLY,
    *END_OF_TURN,
)

AGENT_LOOP = Definition(
    name="agent_loop",
    initial=State.PREPROCESS,
    states=STATES,
    effects=EFFECTS,
    counters=COUNTERS,
    flags=FLAGS,
    rows=(*PREPROCESS, *CALLING_MODEL, *EXECUTING_TOOLS, *RECOVERING),
    actions=tuple(Action),
)
"""The shipped machine."""
