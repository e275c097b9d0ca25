"""The effect of `preprocess`: assemble the context."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, cast

from fsm_agent.context.pipeline import ContextView, SummaryRequest, SummaryResult
from fsm_agent.context.system_prompt import assembled
from fsm_agent.loop.effects.asking import announce, checked_request
from fsm_agent.loop.visit import Outcome, Visit
from fsm_agent.machine import ContextOutcome
from fsm_agent.model.call import ModelCall
from fsm_agent.tools.declare import called
from fsm_agent.tools.faults import text_of_fault
from fsm_agent.tools.job import Job, Raised


async def context(visit: Visit) -> Outcome:
    """Resolve the system prompt once, then run the pipeline: at most one summary is asked for."""
    conversation = visit.conversation
    fault = await _resolve_system(visit)
    if fault is not None:
        return Outcome(ContextOutcome.FAILED, f"The system prompt could not be made: {text_of_fault(fault)}")
    plan = await conversation.machine.pipeline.prepare(context_view(visit))
    conversation.plan = plan
    conversation.autocompact_failures = plan.autocompact_failures
    return Outcome(plan.outcome, plan.detail)


async def _resolve_system(visit: Visit) -> BaseException | None:
    """Ask for the system prompt, if that was not done yet; the fault, if it cannot be had."""
    conversation = visit.conversation
    if conversation.system is not None:
        return None
    system = conversation.machine.system
    if callable(system):
        job = Job(partial(called, system, on_the_loop=True), name="system prompt")
        ending = await job.within(math.inf, grace=visit.limits.abort_grace)
        assert ending is not None, "no time is set"
        if isinstance(ending, Raised):
            return ending.fault
        system = ending.value
    try:
        conversation.system = system if isinstance(system, str) else assembled(cast("Any", system))
    except Exception as error:  # what the host's function returned is no system prompt
        return error
    return None


def context_view(visit: Visit) -> ContextView:
    """What the context pipeline may see of the run."""
    conversation = visit.conversation

    async def summarise(request: SummaryRequest) -> SummaryResult:
        return await summary(visit, request)

    return ContextView(
        history=conversation.history,
        model=conversation.model,
        limits=visit.limits,
        turn=conversation.turn,
        last_usage=conversation.last_usage,
        last_compaction_turn=conversation.last_compaction_turn,
        autocompact_failures=conversation.autocompact_failures,
        summarise=summarise,
        microcompact=visit.deps.microcompact,
        autocompact=visit.deps.autocompact,
        store=conversation.machine.result_store,
        fixed_tokens=conversation.machine.template.fixed_tokens(conversation.system),
    )


async def _unheard(reply: Any, event: dict[str, Any]) -> None:
    """Nobody listens to the stream of a summary."""


async def summary(visit: Visit, request: SummaryRequest) -> SummaryResult:
    """One request for a summary. It counts as a request of the run, and its usage is the run's."""
    conversation = visit.conversation
    if conversation.spent():
        return SummaryResult(failure=None, detail=conversation.spent())
    await announce(visit, "summary")
    call = ModelCall(
        conversation.machine.call_model,
        checked_request(visit, request.body, max_tokens=request.max_tokens, purpose="summary"),
        limits=visit.limits,
        on_event=_unheard,
        on_block=None,
    )
    try:
        outcome = await call.perform()
    finally:
        conversation.count(call.reply.usage, conversation.model)
    return SummaryResult(outcome=outcome, text=call.reply.text, failure=call.failure, usage=call.reply.usage)
