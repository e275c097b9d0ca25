"""A loop small enough to be looked at whole: a model, tools, retries."""

from fsm_agent.machine import Below, Counter, Definition, EffectSpec, Increment, LoopLimits, Not, Reset, Row, StateSpec


class SketchLimits(LoopLimits):
    max_turns: int | None = 3
    max_retries: int = 2


SKETCH = Definition(
    name="sketch",
    initial="calling",
    states=(StateSpec("calling"), StateSpec("tools"), StateSpec("backoff"), StateSpec("over", final=True)),
    effects=(
        EffectSpec("response", "calling", ("text", "tool_use", "refused", "failed"), requests=1),
        EffectSpec("tools", "tools", ("done", "aborted")),
        EffectSpec("wait", "backoff", ("elapsed",)),
    ),
    counters=(Counter("turn", "max_turns", initial=1), Counter("retries", "max_retries")),
    flags=(),
    limits=SketchLimits,
    rows=(
        Row("calling", "replied", "over", given={"response": "text"}, reason="completed"),
        Row("calling", "refuse", "over", given={"response": "refused"}, reason="refused"),
        Row("calling", "called", "tools", given={"response": "tool_use"}, update=Reset("retries")),
        Row(
            "calling",
            "retry",
            "backoff",
            given={"response": "failed"},
            when=Below("retries"),
            update=Increment("retries"),
        ),
        Row("calling", "give_up", "over", given={"response": "failed"}, reason="api_error"),
        Row("tools", "abort", "over", given={"tools": "aborted"}, reason="aborted"),
        Row("tools", "turn_limit", "over", when=Not(Below("turn")), reason="turn_limit"),
        Row("tools", "next_turn", "calling", given={"tools": "done"}, update=Increment("turn")),
        Row("backoff", "waited", "calling", given={"wait": "elapsed"}),
    ),
)
