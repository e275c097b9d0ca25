"""What the model must say so that a run takes the steps of a witness: one item of a script for each request."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from fsm_agent.machine import ResponseOutcome
from fsm_agent.testing.script import ApiError, Item, Reply, Stream, text, tool_use
from fsm_agent.verify import Step

TOOL: Final = "act"
"""Name of the tool that the model calls."""
VALID, INVALID = "7", "seven"
"""A reply that fits the output type (a whole number), and one that does not."""
OUTPUT_TOKENS: Final = 600
"""Output tokens of each reply: more than what the loop takes for no progress (500)."""
ALL_TOKENS: Final = 1_000_000_000_000
"""Tokens of the reply that spends the whole budget."""
TOO_LONG: Final = MappingProxyType({"retry-after": "86400"})
"""A day: more than anybody waits."""


def script_of(steps: Sequence[Step]) -> list[Item]:
    """The items, in the order of the requests that a run along these steps makes."""
    return [item for at, step in enumerate(steps) for item in _items(step, dict(_from(steps, at)))]


def _from(steps: Sequence[Step], at: int) -> Iterator[tuple[str, str]]:
    """The outcomes that follow from the reply of a step: those up to the next reply, the nearest last."""
    found: list[tuple[str, str]] = list(steps[at].outcomes)
    for step in steps[at + 1 :]:
        if any(effect == "response" for effect, _ in step.outcomes):
            break
        found += step.outcomes
    yield from reversed(found)


def _items(step: Step, later: Mapping[str, str]) -> Iterator[Item]:
    for effect, outcome in step.outcomes:
        if effect == "response" and outcome in _REPLIES:
            yield _REPLIES[outcome](later)
        elif effect == "compact" and outcome in _SUMMARIES:
            yield _SUMMARIES[outcome]


def token_budget(steps: Sequence[Step]) -> int | None:
    """Output tokens that the run may use, so that the replies but the last stay below; None if nobody asks."""
    if not any(effect == "budget" for step in steps for effect, _ in step.outcomes):
        return None
    return 2 * OUTPUT_TOKENS * (1 + len(steps))


# ---- one reply for each outcome


def _usage(more: int = 0) -> dict[str, int]:
    return {"output_tokens": OUTPUT_TOKENS + more}


def _answer(later: Mapping[str, str]) -> Reply:
    words = INVALID if later.get("output") == "invalid" else VALID
    return Reply(words, usage=_usage(1_000_000_000 if later.get("budget") == "used" else 0))


def _error(status: int, kind: str, message: str | None = None) -> Callable[[Mapping[str, str]], Item]:
    def item(later: Mapping[str, str]) -> ApiError:
        return ApiError(status, kind, message, headers=TOO_LONG if later.get("backoff") == "too_long" else None)

    return item


def _always(item: Item) -> Callable[[Mapping[str, str]], Item]:
    return lambda _: item


def _reply(*blocks: str, stop: str) -> Callable[[Mapping[str, str]], Item]:
    return _always(Reply(*blocks, stop=stop, usage=_usage()))


_R = ResponseOutcome
_OVERFLOW: Final = "prompt is too long: 250000 tokens > 200000 maximum"
_REPLIES: Mapping[str, Callable[[Mapping[str, str]], Item]] = {
    _R.TOOL_USE: _always(Reply(tool_use(TOOL), usage=_usage())),
    _R.END_TURN: _answer,
    _R.MAX_TOKENS: _reply("A long ans", stop="max_tokens"),
    _R.PAUSE_TURN: _reply("Half of it.", stop="pause_turn"),
    _R.REFUSAL: _reply(stop="refusal"),
    _R.EMPTY: _reply(stop="end_turn"),
    _R.MALFORMED_TOOL_USE: _reply("I call a tool.", stop="tool_use"),
    _R.UNKNOWN: _reply("What?", stop="solar_flare"),
    _R.PROMPT_TOO_LONG: _error(400, "invalid_request_error", _OVERFLOW),
    _R.MEDIA_REJECTED: _error(400, "invalid_request_error", "Could not process image"),
    _R.RETRYABLE: _error(500, "api_error"),
    _R.OVERLOADED: _error(529, "overloaded_error"),
    _R.MODEL_UNAVAILABLE: _error(404, "not_found_error", "model: unknown"),
    _R.FATAL: _error(400, "invalid_request_error", "This request is wrong."),
    _R.CUT: _always(Stream(["message_start", text("One. "), {"text": "Tw"}, "eof"], usage=_usage())),
    _R.BUDGET_SPENT: _always(Reply(tool_use(TOOL), usage={"input_tokens": ALL_TOKENS, "output_tokens": 1})),
    _R.ABORTED: _always(Stream(["message_start", {"text": "I was about to"}, "silence"])),
}
_SUMMARIES: Mapping[str, Item] = {
    "compacted": Reply("<summary>They talked.</summary>", when="summary"),
    "head_too_long": ApiError(400, "invalid_request_error", _OVERFLOW, when="summary"),
    "failed": ApiError(400, "invalid_request_error", "This request is wrong.", when="summary"),
    "aborted": Stream(["message_start", "silence"], when="summary"),
}
