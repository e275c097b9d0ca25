"""The loop as it is published: each of its seven reasons to continue, and what each of them does to the loop's state.

It has a cycle without a bound. A stop hook that objects sends the model back to work, as often as it likes, and clears
the count of recoveries and the mark of the compaction; so each round may also recover and compact afresh.
"""

from fsm_agent.machine import (
    Below,
    Counter,
    Definition,
    EffectSpec,
    Flag,
    FlagSpec,
    Increment,
    Not,
    Reset,
    Row,
    Set,
    StateSpec,
)

NEW_ROUND = (Reset("max_output_tokens_recoveries"), Reset("reactive_compact_attempted"))

PUBLISHED_LOOP = Definition(
    name="published_loop",
    initial="preprocess",
    states=(
        StateSpec("preprocess"),
        StateSpec("calling_model"),
        StateSpec("executing_tools", inherits=("response",)),
        StateSpec("ending", inherits=("response",)),
        StateSpec("terminal", final=True),
    ),
    effects=(
        EffectSpec("context", "preprocess", ("ready", "too_large")),
        EffectSpec(
            "response",
            "calling_model",
            ("tool_use", "end_turn", "max_tokens", "prompt_too_long", "failed", "aborted"),
            requests=1,
        ),
        EffectSpec("tools", "executing_tools", ("done", "hook_stopped", "aborted")),
        EffectSpec("drain", "ending", ("drained", "nothing")),
        EffectSpec("compact", "ending", ("compacted", "failed"), requests=1),
        EffectSpec("hooks", "ending", ("pass", "block", "prevent")),
        EffectSpec("budget", "ending", ("under", "used")),
    ),
    counters=(
        Counter("turn", "max_turns", initial=1),
        Counter("max_output_tokens_recoveries", "max_output_tokens_recoveries"),
    ),
    flags=(
        FlagSpec("escalated"),
        FlagSpec("collapse_drained"),
        FlagSpec("reactive_compact_attempted"),
        FlagSpec("budget_nudged"),
    ),
    rows=(
        Row("preprocess", "block", "terminal", given={"context": "too_large"}, reason="blocking_limit"),
        Row("preprocess", "context_ready", "calling_model", given={"context": "ready"}),
        Row("calling_model", "abort", "terminal", given={"response": "aborted"}, reason="aborted_streaming"),
        Row("calling_model", "model_failure", "terminal", given={"response": "failed"}, reason="model_error"),
        Row("calling_model", "tools_requested", "executing_tools", given={"response": "tool_use"}),
        Row("calling_model", "response_ended", "ending"),
        Row("executing_tools", "abort", "terminal", given={"tools": "aborted"}, reason="aborted_tools"),
        Row("executing_tools", "hook_stop", "terminal", given={"tools": "hook_stopped"}, reason="hook_stopped"),
        Row("executing_tools", "turn_limit", "terminal", when=Not(Below("turn")), reason="max_turns"),
        Row(
            "executing_tools",
            "next_turn",
            "preprocess",
            given={"tools": "done"},
            update=(Increment("turn"), Reset("escalated"), Reset("collapse_drained"), *NEW_ROUND),
        ),
        Row(
            "ending",
            "collapse_drain_retry",
            "preprocess",
            given={"response": "prompt_too_long", "drain": "drained"},
            when=Not(Flag("collapse_drained")),
            update=Set("collapse_drained"),
        ),
        Row(
            "ending",
            "reactive_compact_retry",
            "preprocess",
            given={"response": "prompt_too_long", "compact": "compacted"},
            when=Not(Flag("reactive_compact_attempted")),
            update=Set("reactive_compact_attempted"),
        ),
        Row("ending", "overflow", "terminal", given={"response": "prompt_too_long"}, reason="prompt_too_long"),
        Row(
            "ending",
            "max_output_tokens_escalate",
            "preprocess",
            given={"response": "max_tokens"},
            when=Not(Flag("escalated")),
            update=Set("escalated"),
        ),
        Row(
            "ending",
            "max_output_tokens_recovery",
            "preprocess",
            given={"response": "max_tokens"},
            when=Below("max_output_tokens_recoveries"),
            update=Increment("max_output_tokens_recoveries"),
        ),
        Row("ending", "output_limit", "terminal", given={"response": "max_tokens"}, reason="model_error"),
        Row("ending", "stop_hook_prevent", "terminal", given={"hooks": "prevent"}, reason="stop_hook_prevented"),
        Row("ending", "stop_hook_blocking", "preprocess", given={"hooks": "block"}, update=NEW_ROUND),
        Row(
            "ending",
            "token_budget_continuation",
            "preprocess",
            given={"budget": "under"},
            when=Not(Flag("budget_nudged")),
            update=Set("budget_nudged"),
        ),
        Row("ending", "complete", "terminal", reason="completed"),
    ),
)
