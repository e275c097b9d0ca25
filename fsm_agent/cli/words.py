"""What the rows that a person should hear of mean, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fsm_agent.loop.events import Transition
from fsm_agent.machine import Definition, Increment, Trigger

PLAIN: Final = frozenset((Trigger.CONTEXT_READY, Trigger.TOOLS_REQUESTED, Trigger.RESPONSE_ENDED, Trigger.NEXT_TURN))
"""Rows that nobody needs to be told of. Those that end the run are told by its summary."""

WORDS: Final[Mapping[str, str]] = {
    Trigger.CONTEXT_COMPACTED: "the context was nearly full; older messages were summarised",
    Trigger.CONTEXT_REFILLED: "the context was full again soon; older messages were summarised once more",
    Trigger.TRANSPORT_RETRY: "the request failed; it is sent again",
    Trigger.OVERLOAD_RETRY: "the service is overloaded; the request is sent again",
    Trigger.MODEL_FALLBACK: "the model did not answer; the next one is asked",
    Trigger.STREAM_RESUME: "the stream was lost; the model goes on from what arrived",
    Trigger.COLLAPSE_DRAIN_RETRY: "the request was too long; early messages were folded",
    Trigger.MEDIA_REMOVED_RETRY: "the service refused an image or document; a note takes its place",
    Trigger.REACTIVE_COMPACT_RETRY: "the request was too long; older messages were summarised",
    Trigger.COMPACT_SHORTER_RETRY: "the request for a summary was too long; a shorter part is summarised",
    Trigger.MAX_OUTPUT_TOKENS_ESCALATE: "the reply was cut by its output limit; it is asked for with a higher one",
    Trigger.MAX_OUTPUT_TOKENS_RECOVERY: "the reply was cut by its output limit; the model goes on from there",
    Trigger.PAUSE_TURN: "the service paused the reply; the model goes on",
    Trigger.MALFORMED_TOOL_USE_RETRY: "the reply announced a tool call and held none; it is asked for again",
    Trigger.EMPTY_RESPONSE_NUDGE: "the reply was empty; the model is asked for an answer",
    Trigger.OUTPUT_RETRY: "the answer does not fit the output type; the model is told so",
    Trigger.STOP_HOOK_BLOCKING: "a stop hook objected; the model goes on",
    Trigger.TOKEN_BUDGET_CONTINUATION: "the token budget is not used up; the model goes on",
}


def told(transition: Transition) -> bool:
    """Whether a person who watches the run should hear of this row."""
    return transition.reason is None and transition.trigger not in PLAIN


def sentence(transition: Transition, definition: Definition, bounds: Mapping[str, int | None]) -> str:
    """What the row did, and how much of its limit is used: `the request failed; it is sent again (2 of 10)`."""
    facts = ", ".join(f"{effect}: {outcome}" for effect, outcome in transition.facts.items())
    text = WORDS.get(transition.trigger, f"{facts}; on to {transition.dest}")
    used = _used(transition, definition, bounds)
    return f"{text} ({used})" if used else text


def _used(transition: Transition, definition: Definition, bounds: Mapping[str, int | None]) -> str:
    """The first counter that the row raised, against its limit. Turns have a place of their own."""
    limits = {counter.name: counter.limit for counter in definition.counters}
    for update in definition.row(transition.source, transition.trigger).update:
        if isinstance(update, Increment) and update.counter != "turn":
            limit = limits[update.counter]
            bound = limit if isinstance(limit, int) else bounds.get(limit)
            return f"{transition.control[update.counter]} of {bound}" if bound is not None else ""
    return ""
