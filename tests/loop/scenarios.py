"""One scenario for each thing that the loop can do: what the model says, what the host does, how it must end.

Each is run over the real SDK and the loopback server (test_rows.py), and they are the stuff of the generic drivers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fsm_agent import AgentMachine, Block, Hooks, LoopLimits, Prevent, Run, StopHookInput, tool
from fsm_agent.testing.script import ApiError, Repeat, Reply, Stream, text, thinking, tool_use
from fsm_agent.tools.gate import Defer, Stop

MODEL = "claude-sonnet-4-5"
FALLBACK = "claude-haiku-4-5"
LONG = "word " * 2_000
"""A tool result that is worth folding or summarising."""


# Code that the service runs, and what a reply tells of its container.
RUN_CODE = {"type": "code_execution_20250825", "name": "code_execution"}
CODE = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "code_execution", "input": {"code": "echo()"}}
OUTPUT = {
    "type": "code_execution_tool_result",
    "tool_use_id": "srvtoolu_1",
    "content": {"type": "code_execution_result", "stdout": "1", "stderr": "", "return_code": 0, "content": []},
}
BOX = {"container": {"id": "container_1", "expires_at": "2026-12-01T00:00:00Z"}}


@tool(read_only=True)
async def echo(x: str = "") -> str:
    """Give the text back.

    Args:
        x: The text.
    """
    return x


@tool
async def write(x: str = "") -> str:
    """Do something that must not be repeated."""
    return f"wrote {x}"


@tool(read_only=True)
async def fetch() -> str:
    """Give much text."""
    return LONG


@tool
async def hang() -> str:
    """Never end."""
    await asyncio.Event().wait()
    return ""


def blocks_once() -> Callable[[StopHookInput], Any]:
    async def hook(given: StopHookInput) -> Block | None:
        return None if given.stop_hook_active else Block("The tests fail.")

    return hook


async def blocks(given: StopHookInput) -> Block:
    return Block("The tests fail.")


async def prevents(given: StopHookInput) -> Prevent:
    return Prevent("Enough.")


async def hangs(given: StopHookInput) -> None:
    await asyncio.Event().wait()


def overflow(**more: Any) -> ApiError:
    return ApiError(400, "invalid_request_error", "prompt is too long: 250000 tokens > 200000 maximum", **more)


TOOL = Reply(tool_use("echo", {"x": "a"}))
OVERLOADED = ApiError(529, "overloaded_error")
CUT_TEXT = Reply("one", "two", fault=None)


@dataclass(frozen=True)
class Scenario:
    """A script, the machine around it, and what must come of it."""

    script: Sequence[Any]
    reason: str
    through: Sequence[str]
    """Triggers that must be in the trace, in this order."""
    machine: Mapping[str, Any] = field(default_factory=dict)
    limits: Mapping[str, Any] = field(default_factory=dict)
    history: Sequence[Mapping[str, Any]] = ()
    abort_at: Callable[[Any], bool] | None = None
    """Abort when an event of this kind is seen."""
    tools: Sequence[Any] = (echo, write, fetch, hang)
    prompt: str = "go"

    def build(self, **machine: Any) -> AgentMachine:
        options: dict[str, Any] = {"tools": list(self.tools), "strict": True, **self.machine, **machine}
        return AgentMachine(options.pop("model", MODEL), limits=LoopLimits(**self.limits), **options)

    async def play(self, machine: AgentMachine, *, see: Callable[[Any], None] = lambda _: None) -> Run:
        """Run to the end, with what the host does meanwhile."""
        async with machine.run(self.prompt, history=list(self.history)) as run:
            async for event in run:
                see(event)
                if self.abort_at is not None and self.abort_at(event):
                    run.abort("The user pressed escape.")
        return run


def at(type_: str, /, **fields: Any) -> Callable[[Any], bool]:
    return lambda event: event.type == type_ and all(getattr(event, name) == value for name, value in fields.items())


def at_text(event: Any) -> bool:
    return event.type == "stream_event" and bool(event.text)


def folded_history() -> list[dict[str, Any]]:
    """An older conversation with much in it: something to drain, to fold, to summarise."""
    messages: list[dict[str, Any]] = []
    for i in range(8):
        messages += [
            {"role": "user", "content": f"question {i}"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": f"old{i}", "name": "fetch", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"old{i}", "content": LONG}]},
            {"role": "assistant", "content": [{"type": "text", "text": f"answer {i} " + LONG}]},
        ]
    return messages


def image_history() -> list[dict[str, Any]]:
    data = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
    return [
        {"role": "user", "content": "look"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "i1", "name": "fetch", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "i1", "content": [image]}]},
        {"role": "assistant", "content": [{"type": "text", "text": "seen"}]},
    ]


NEARLY_FULL = {"context_window": 70_000}
"""With the older conversation: much enough to stage a collapse, and not so much as to compact beforehand."""
IMAGE_ERROR = ApiError(
    400,
    "invalid_request_error",
    "messages.2.content.0.tool_result.content.0.image.source.base64: image cannot be empty",
)
SUMMARY = Reply("<summary>They talked about the files.</summary>", when="summary")


def fails() -> str:
    raise RuntimeError("no such file")


async def stops_after(call: Any, used: Any, result: Any, context: Any) -> Stop:
    return Stop("The budget of the team is spent.")


async def defers(call: Any, used: Any, context: Any) -> Defer:
    return Defer("A person must decide.")


SUMMARY_OF = Reply("<summary>They talked.</summary>", when="summary")


def filling(turns: int) -> list[Any]:
    """Replies that each report a context that is nearly full, with a summary for each."""
    full = {"input_tokens": 165_000, "output_tokens": 4_000}
    call = Reply(tool_use("fetch"), usage=full, when="turn")
    return [step for _ in range(turns) for step in (call, SUMMARY_OF)]


SCENARIOS: dict[str, Scenario] = {
    "a plain answer": Scenario([Reply("hello")], "completed", ["context_ready", "response_ended", "complete"]),
    "one tool": Scenario([TOOL, Reply("done")], "completed", ["tools_requested", "next_turn", "complete"]),
    "the turn limit": Scenario([Repeat(TOOL, "always")], "max_turns", ["turn_limit"], limits={"max_turns": 2}),
    "truncated, then escalated": Scenario(
        [Reply("par", stop="max_tokens"), Reply("whole")], "completed", ["max_output_tokens_escalate", "complete"]
    ),
    "truncated, then continued": Scenario(
        [Reply("one ", stop="max_tokens"), Reply("one ", stop="max_tokens"), Reply("two")],
        "completed",
        ["max_output_tokens_escalate", "max_output_tokens_recovery", "complete"],
    ),
    "truncated for ever": Scenario(
        [Repeat(Reply("x", stop="max_tokens"), "always")],
        "max_output_tokens",
        ["max_output_tokens_escalate", *["max_output_tokens_recovery"] * 3, "output_limit"],
    ),
    "an overflow that draining mends": Scenario(
        [overflow(), Reply("fits")],
        "completed",
        ["collapse_drain_retry", "complete"],
        limits=NEARLY_FULL,
        history=folded_history(),
    ),
    "an overflow that a summary mends": Scenario(
        [overflow(when="turn"), overflow(when="turn"), SUMMARY, Reply("fits")],
        "completed",
        ["collapse_drain_retry", "reactive_compact_retry", "complete"],
        limits=NEARLY_FULL,
        history=folded_history(),
    ),
    "a summary that is too long itself": Scenario(
        [overflow(when="turn"), overflow(when="turn"), overflow(when="summary"), SUMMARY, Reply("fits")],
        "completed",
        ["compact_shorter_retry", "reactive_compact_retry", "complete"],
        limits=NEARLY_FULL,
        history=folded_history(),
    ),
    "an overflow that nothing mends": Scenario(
        [Repeat(overflow(), "always")], "prompt_too_long", ["overflow"], history=folded_history()
    ),
    "a refused image that is removed": Scenario(
        [IMAGE_ERROR, Reply("fine")], "completed", ["media_removed_retry", "complete"], history=image_history()
    ),
    "a refused image that stays": Scenario(
        [Repeat(IMAGE_ERROR, "always")],
        "image_error",
        ["media_failure"],
        limits={"max_media_removals": 0},
        history=image_history(),
    ),
    "a stop hook that objects once": Scenario(
        [Reply("done"), Reply("really done")],
        "completed",
        ["stop_hook_blocking", "complete"],
        machine={"hooks": Hooks(stop=[blocks_once()])},
    ),
    "a stop hook that always objects": Scenario(
        [Repeat(Reply("done"), "always")],
        "stop_hook_limit",
        ["stop_hook_blocking", "stop_hook_blocking", "stop_hook_limit"],
        machine={"hooks": Hooks(stop=[blocks])},
        limits={"max_stop_hook_blocks": 2},
    ),
    "a stop hook at the turn limit": Scenario(
        [Reply("done")],
        "max_turns",
        ["stop_hook_turn_limit"],
        machine={"hooks": Hooks(stop=[blocks])},
        limits={"max_turns": 1},
    ),
    "a stop hook that prevents": Scenario(
        [Reply("done")], "stop_hook_prevented", ["stop_hook_prevent"], machine={"hooks": Hooks(stop=[prevents])}
    ),
    "a token budget that is not used": Scenario(
        [Reply("a", usage={"output_tokens": 600}), Reply("b", usage={"output_tokens": 600})],
        "completed",
        ["token_budget_continuation", "complete"],
        limits={"token_budget": 1_200},
    ),
    "overload, then an answer": Scenario([OVERLOADED, Reply("hi")], "completed", ["overload_retry", "complete"]),
    "overload for ever": Scenario(
        [Repeat(OVERLOADED, "always")],
        "model_error",
        ["overload_retry"] * 4 + ["model_failure"],
        limits={"max_transport_retries": 4},
    ),
    "overload, then another model": Scenario(
        [Repeat(OVERLOADED, 4), Reply("hi")],
        "completed",
        [*["overload_retry"] * 3, "model_fallback", "complete"],
        machine={"fallback_models": [FALLBACK]},
    ),
    "a server error, then an answer": Scenario(
        [ApiError(500, "api_error"), Reply("hi")], "completed", ["transport_retry", "complete"]
    ),
    "a retry-after above the cap": Scenario(
        [ApiError(429, "rate_limit_error", headers={"retry-after": "3600"})], "model_error", ["model_failure"]
    ),
    "a refusal, then another model": Scenario(
        [Reply(stop="refusal"), Reply("hi")],
        "completed",
        ["model_fallback", "complete"],
        machine={"fallback_models": [FALLBACK]},
    ),
    "a refusal": Scenario([Reply(stop="refusal")], "refusal", ["refuse"]),
    "a bad request": Scenario([ApiError(400, "invalid_request_error", "nope")], "model_error", ["model_failure"]),
    "an unknown model": Scenario([ApiError(404, "not_found_error", "model: x")], "model_error", ["model_failure"]),
    "a cut stream that is resumed": Scenario(
        [Stream(["message_start", text("one "), {"text": "tw"}, "eof"]), Reply("two")],
        "completed",
        ["stream_resume", "complete"],
    ),
    "a stream that is cut again and again": Scenario(
        [Repeat(Stream(["message_start", text("one "), "eof"]), "always")],
        "model_error",
        [*["stream_resume"] * 3, "unfinished_reply"],
    ),
    "a pause": Scenario([Reply("half", stop="pause_turn"), Reply("done")], "completed", ["pause_turn", "complete"]),
    "a pause at the turn limit": Scenario(
        [Reply("half", stop="pause_turn")], "max_turns", ["pause_turn_limit"], limits={"max_turns": 1}
    ),
    "a pause for ever": Scenario(
        [Repeat(Reply("half", stop="pause_turn"), "always")],
        "model_error",
        ["pause_turn", "pause_turn", "unfinished_reply"],
        limits={"max_pauses": 2},
    ),
    "a tool use that is none": Scenario(
        [Reply("hm", stop="tool_use"), Reply("hi")], "completed", ["malformed_tool_use_retry", "complete"]
    ),
    "a tool use that is none, for ever": Scenario(
        [Repeat(Reply("hm", stop="tool_use"), "always")],
        "malformed_tool_use_exhausted",
        ["malformed_tool_use_retry", "malformed_tool_use_retry", "malformed_tool_use"],
    ),
    "nothing visible": Scenario(
        [Reply(thinking("hm"), stop="end_turn"), Reply("hi")], "completed", ["empty_response_nudge", "complete"]
    ),
    "nothing visible, twice": Scenario(
        [Repeat(Reply(stop="end_turn"), "always")], "empty_response", ["empty_response_nudge", "empty"]
    ),
    "an unknown stop reason": Scenario([Reply("hi", stop="solar_flare")], "model_error", ["unknown_stop_reason"]),
    "an output that does not fit": Scenario(
        [Reply("no"), Reply("7")], "completed", ["output_retry", "complete"], machine={"output_type": int}
    ),
    "an output that never fits": Scenario(
        [Repeat(Reply("no"), "always")],
        "structured_output_retry_exhausted",
        [*["output_retry"] * 3, "output_invalid"],
        machine={"output_type": int},
    ),
    "the spend limit": Scenario(
        [Reply(tool_use("write", {"x": "a"}), usage={"input_tokens": 900, "output_tokens": 200})],
        "budget_exhausted",
        ["spend_limit"],
        limits={"max_total_tokens": 1_000},
    ),
    "a system prompt that cannot be made": Scenario(
        [], "turn_setup_failed", ["setup_failure"], machine={"system": fails}
    ),
    "a context that is compacted in time": Scenario(
        [*filling(1), Reply("done", when="turn")], "completed", ["context_compacted", "complete"]
    ),
    "a context that is full again and again": Scenario(
        filling(4),
        "rapid_refill_breaker",
        ["context_compacted", "context_refilled", "context_refilled", "refill_breaker"],
        limits={"max_rapid_refills": 2},
    ),
    "a prompt that cannot fit": Scenario(
        [], "blocking_limit", ["block"], limits={"context_window": 1_000, "max_output_tokens": 500}, prompt=LONG
    ),
    "a hook that stops after a tool": Scenario(
        [TOOL], "hook_stopped", ["hook_stop"], machine={"hooks": Hooks(after_tool=[stops_after])}
    ),
    "a tool that a person must decide on": Scenario(
        [TOOL], "tool_deferred", ["defer"], machine={"can_use_tool": defers}
    ),
    "an abort while streaming": Scenario(
        [Reply("a long answer " * 20)], "aborted_streaming", ["abort"], abort_at=at_text
    ),
    "an abort while a tool runs": Scenario(
        [Reply(tool_use("hang"), tool_use("echo", {"x": "b"}))],
        "aborted_tools",
        ["abort"],
        abort_at=at("progress", kind="tool_started", tool="hang"),
    ),
    "an abort while waiting to retry": Scenario(
        [ApiError(429, "rate_limit_error", headers={"retry-after": "60"})],
        "aborted_streaming",
        ["abort"],
        abort_at=at("system", subtype="backoff"),
    ),
    "an abort while the context is made": Scenario(
        [TOOL], "aborted_streaming", ["next_turn", "abort"], abort_at=at("transition", trigger="next_turn")
    ),
}
