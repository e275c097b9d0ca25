"""What the tests of this folder share: the shipped machine checked once, and how a run is compared with a witness."""

from functools import cache
from itertools import pairwise

from fsm_agent import AGENT_LOOP, LoopLimits
from fsm_agent.testing.witness import Rehearsal, Rehearsed
from fsm_agent.testing.witness_cover import Cover, Key, Pair, covering_witnesses
from fsm_agent.verify import Report, check

COUNTED = {counter.limit: 2 for counter in AGENT_LOOP.counters}
SMALL = LoopLimits(**{**COUNTED, "max_turns": 4, "overload_retries_before_fallback": 1})  # type: ignore[arg-type]
"""Limits under which everything can happen that can happen at all, within short runs."""


@cache
def report() -> Report:
    return check(AGENT_LOOP)


@cache
def cover() -> Cover:
    """Each run goes on to `completed` where it can: so what it has left must be good for another request."""
    return covering_witnesses(AGENT_LOOP, SMALL, ending="completed")


def fired(done: Rehearsed) -> list[Key]:
    return [(event.source, event.trigger) for event in done.events if event.type == "transition"]


def fired_pairs(done: Rehearsed) -> set[Pair]:
    return set(pairwise(fired(done)))


def was_followed(rehearsal: Rehearsal, done: Rehearsed) -> bool:
    """Move by move: states, triggers, and the outcomes that each step rests on."""
    moves = [event for event in done.events if event.type == "transition"]
    return len(moves) == len(rehearsal.word) and all(
        (move.source, move.trigger, move.dest, move.reason) == (step.state, step.trigger, step.dest, step.reason)
        and dict(step.outcomes).items() <= move.facts.items()
        for move, step in zip(moves, rehearsal.steps, strict=False)
    )
