"""The effects of `recovering` that make a repetition possible: wait, shrink the context, raise the output limit."""

from __future__ import annotations

from fsm_agent.context import collapse
from fsm_agent.context import compaction as compacting
from fsm_agent.context import media as refused_media
from fsm_agent.loop.effects.calling import output_limit
from fsm_agent.loop.effects.preparing import context_view
from fsm_agent.loop.events import System
from fsm_agent.loop.visit import Outcome, Visit
from fsm_agent.model import backoff as waiting


async def backoff(visit: Visit) -> Outcome:
    """Wait as the service asked, or for a drawn time below a ceiling that doubles. An abort ends the wait at once."""
    conversation = visit.conversation
    retry = max(_count(visit, "transport_retries"), _count(visit, "stream_resumes"))
    previous = conversation.last_wait if retry else 0.0
    delay = waiting.delay(retry, conversation.failure, visit.limits, visit.deps.random, previous=previous)
    cause = conversation.failure.message if conversation.failure else ""
    if delay is None:
        asked = conversation.failure.retry_after if conversation.failure else None
        return Outcome(
            "too_long",
            f"The service asks to wait {asked:g} s, which is above the cap of {visit.limits.retry_after_cap:g} s.",
        )
    conversation.last_wait = delay
    await visit.emit(
        System(
            subtype="backoff",
            message=f"The request is repeated in {delay:.1f} s.",
            detail={"seconds": delay, "retry": retry + 1, "cause": cause},
        )
    )
    await visit.deps.sleep(delay)
    return Outcome("elapsed", cause)


def _count(visit: Visit, counter: str) -> int:
    return visit.control[counter] if counter in visit.control.index else 0


async def drain(visit: Visit) -> Outcome:
    """Commit the collapses that were staged: the cheapest way to make room."""
    plan = collapse.drain(context_view(visit))
    visit.conversation.edits = list(plan)
    return Outcome("drained" if plan else "nothing")


async def compact(visit: Visit) -> Outcome:
    """Ask the model for a summary of a prefix; each attempt of the turn takes a shorter one."""
    plan = await compacting.reactive(context_view(visit), attempt=_count(visit, "compact_attempts"))
    visit.conversation.edits = list(plan.edits)
    return Outcome(plan.outcome, plan.detail)


async def media(visit: Visit) -> Outcome:
    """Find the image or document that was refused, and the note that takes its place."""
    failure = visit.conversation.failure
    plan = refused_media.removal(
        visit.conversation.history, failure.message if failure else "", visit.conversation.model
    )
    visit.conversation.edits = list(plan)
    return Outcome("removed" if plan else "nothing")


async def escalation(visit: Visit) -> Outcome:
    """See whether the model allows a longer reply than the one that was cut."""
    ceiling = visit.conversation.machine.output_ceiling(visit.conversation.model)
    higher = min(visit.limits.escalated_max_output_tokens, ceiling)
    return Outcome("raised" if higher > output_limit(visit) else "at_ceiling")
