"""What the model does to the loop under test: scripts with faults, and what must come of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from fsm_agent.testing.content import text, thinking, tool_use
from fsm_agent.testing.other_loops.observed import Observed, merged_turns, tool_results
from fsm_agent.testing.request_kinds import request_kind
from fsm_agent.testing.script import ApiError, Fault, Item, Reply, Stream
from fsm_agent.testing.shapes import JsonObject
from fsm_agent.testing.sse import compact_json

__all__ = ["ANSWER", "WIRE_SCENARIOS", "Answering", "Call", "WireScenario"]

ANSWER = "All done."
"""What the model says when it has all that it needs."""

Answering: TypeAlias = Callable[[JsonObject, int], Item]
"""The model as a function of a request body and of its number, from 0."""
Call: TypeAlias = tuple[str, str]
"""A call of a tool: its name and its key."""


@dataclass(frozen=True, slots=True)
class WireScenario:
    """One script, and what must come of it. See `Property` for what is judged in every scenario."""

    script: Sequence[Item] | Answering
    """Items in order; the last is repeated for ever."""
    goal: Literal["answer", "failure"] | None = "answer"
    """`answer`: the run ends in `ANSWER` all the same. `failure`: it ends, and does not call that a success."""
    calls: Sequence[Call] | None = None
    """The calls that the model really asked for, whole: no other may run, none of them twice. `None`: not judged."""
    case: Callable[[Observed], bool] | None = None
    """What must hold in this scenario only,"""
    case_words: str = ""
    """and what that is, in words."""
    abort: Call | Literal["first event"] | None = None
    """When the run is aborted: while this call runs, or while the first answer comes in."""
    kept: str = ""
    """Words that the run that follows must still know."""

    def answer(self, body: JsonObject, number: int) -> Item:
        """The item for the request of this number (from 0)."""
        if callable(self.script):
            return self.script(body, number)
        return self.script[min(number, len(self.script) - 1)]


# ---- what the model says


def lookup(*keys: str, **more: Any) -> Reply:
    """A reply that calls `lookup`."""
    return Reply("Let me look.", *(tool_use("lookup", {"key": key}) for key in keys), **more)


def half_a_call(*end: Any) -> Stream:
    """A stream that ends inside the JSON of a call."""
    opened: list[Any] = ["message_start", {"text": "Let me look."}, {"tool_use_open": [None, "lookup"]}]
    return Stream([*opened, {"partial_json": '{"key": "a long k'}, *end])


CUT_CALL = half_a_call({"message_delta": "max_tokens", "usage": {"output_tokens": 1000}}, "message_stop")
WHOLE_CALL = lookup("a long key")
DONE = Reply(ANSWER)
SOON = {"retry-after-ms": "1"}
OVERLOADED = ApiError(529, "overloaded_error", headers=SOON)
TOO_LONG = ApiError(400, "invalid_request_error", "prompt is too long: 250000 tokens > 200000 maximum")
FULL = 36_000
"""Characters of messages from which the model of the overflow scenario says that its prompt is too long."""
FILES = ("f1", "f2", "f3", "f4", "f5")
"""Files of 8,000 characters: the last of them is too much."""


def overflowing(body: JsonObject, number: int) -> Item:
    """Reads one long file after the other; what has grown too long is refused, unless a summary is asked for."""
    if request_kind(body) == "summary":
        return Reply("<summary>The five files were read.</summary>")
    if len(compact_json(body.get("messages"))) > FULL:
        return TOO_LONG
    return Reply(tool_use("read", {"key": FILES[number]})) if number < len(FILES) else DONE


def without_end(body: JsonObject, number: int) -> Item:
    """One more call, whatever is asked."""
    del body
    return lookup(f"k{number}")


# ---- what must hold in one scenario only


def told_as_error(name: str) -> Callable[[Observed], bool]:
    """The call of this name got an error result."""

    def holds(seen: Observed) -> bool:
        ids = {
            block["id"]
            for body in seen.bodies
            for role, blocks in merged_turns(body)
            if role == "assistant"
            for block in blocks
            if block.get("type") == "tool_use" and block.get("name") == name
        }
        results = [found for body in seen.bodies for found in tool_results(body) if found["tool_use_id"] in ids]
        return bool(results) and all(result.get("is_error") is True for result in results)

    return holds


def goes_on_from_the_pause(seen: Observed) -> bool:
    """The paused turn is sent back, at the end of the request, as it was said."""
    if len(seen.bodies) < 2:
        return False
    role, blocks = list(merged_turns(seen.bodies[1]))[-1]
    return role == "assistant" and [block.get("text") for block in blocks] == ["Half."]


def leaves_nothing_running(seen: Observed) -> bool:
    """No request after the abort, and no tool that goes on."""
    return seen.requests_after_abort == 0 and all(call.ended != "running" for call in seen.calls)


def asks_no_more_than(most: int) -> Callable[[Observed], bool]:
    return lambda seen: seen.requests <= most


def keeps_thinking(seen: Observed) -> bool:
    """The thinking goes back, whole, before the call that it led to."""
    turns = [blocks for body in seen.bodies for role, blocks in merged_turns(body) if role == "assistant"]
    return any(block.get("type") == "thinking" and block.get("signature") for blocks in turns for block in blocks)


WIRE_SCENARIOS: Mapping[str, WireScenario] = {
    "one tool": WireScenario([lookup("a"), DONE], calls=[("lookup", "a")], kept="The value of a."),
    "two calls at once": WireScenario(
        [lookup("first", "second"), DONE],
        calls=[("lookup", "first"), ("lookup", "second")],
        kept="The value of second.",
    ),
    "thinking before a call": WireScenario(
        [Reply(thinking("Hm."), tool_use("lookup", {"key": "a"})), DONE],
        calls=[("lookup", "a")],
        case=keeps_thinking,
        case_words="the thinking goes back with the call",
    ),
    "a tool that there is not": WireScenario(
        [Reply(tool_use("delete_all", {"key": "a"})), DONE],
        calls=[],
        case=told_as_error("delete_all"),
        case_words="the model is told by an error result",
    ),
    "a call that lacks its argument": WireScenario(
        [Reply(tool_use("lookup", {})), DONE],
        calls=[],
        case=told_as_error("lookup"),
        case_words="the model is told by an error result",
    ),
    "a tool that raises": WireScenario(
        [Reply(tool_use("fails", {"key": "a"})), DONE],
        calls=[("fails", "a")],
        case=told_as_error("fails"),
        case_words="the model is told by an error result",
    ),
    "cut inside a call": WireScenario([CUT_CALL, WHOLE_CALL, DONE], calls=[("lookup", "a long key")]),
    "cut inside a call, for ever": WireScenario([CUT_CALL], goal="failure", calls=[]),
    "max_tokens after a whole call": WireScenario(
        [lookup("half", stop="max_tokens"), lookup("all"), DONE],
        calls=[("lookup", "all")],
    ),
    "cut inside the text": WireScenario([Reply("The answer is: ", stop="max_tokens"), DONE]),
    "prompt too long": WireScenario(overflowing),
    "prompt too long, for ever": WireScenario(
        [TOO_LONG], goal="failure", case=asks_no_more_than(10), case_words="at most 10 requests"
    ),
    "529 once": WireScenario([OVERLOADED, DONE]),
    "529 for ever": WireScenario(
        [OVERLOADED], goal="failure", case=asks_no_more_than(20), case_words="at most 20 requests"
    ),
    "529 after a tool": WireScenario([lookup("a"), OVERLOADED, DONE], calls=[("lookup", "a")], kept="The value of a."),
    "error inside a stream": WireScenario(
        [Stream(["message_start", {"text": "The ans"}, {"error": "overloaded_error"}, "eof"]), DONE]
    ),
    "socket dropped inside a call": WireScenario(
        [half_a_call("reset"), WHOLE_CALL, DONE], calls=[("lookup", "a long key")]
    ),
    "stream that ends too early": WireScenario(
        [half_a_call("eof"), WHOLE_CALL, DONE], calls=[("lookup", "a long key")]
    ),
    "pause_turn": WireScenario(
        [Reply("Half.", stop="pause_turn"), DONE],
        case=goes_on_from_the_pause,
        case_words="the paused turn is sent back as it was said",
    ),
    "pause_turn for ever": WireScenario([Reply("Half.", stop="pause_turn")], goal="failure"),
    "refusal": WireScenario([Reply("I cannot", stop="refusal")], goal="failure"),
    "empty end_turn after a tool": WireScenario([lookup("a"), Reply(stop="end_turn"), DONE], calls=[("lookup", "a")]),
    "tools without end": WireScenario(without_end, goal="failure"),
    "abort while a tool runs": WireScenario(
        [Reply(tool_use("lookup", {"key": "a"}), tool_use("hangs", {"key": "b"})), DONE],
        goal="failure",
        calls=[("lookup", "a"), ("hangs", "b")],
        abort=("hangs", "b"),
        case=leaves_nothing_running,
        case_words="no request and no tool goes on",
        kept="The value of a.",
    ),
    "abort while an answer comes in": WireScenario(
        [Reply(text("The ans"), text("wer"), fault=Fault(4, "silence"))],
        goal="failure",
        abort="first event",
        case=leaves_nothing_running,
        case_words="no request goes on",
    ),
}
"""The scenarios, by name."""
