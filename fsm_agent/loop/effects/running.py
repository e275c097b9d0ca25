"""The effect of `executing_tools`: the calls of the message, folded to one outcome."""

from __future__ import annotations

from functools import partial

from fsm_agent.loop.effects.asking import bounded_results, emit_notices, new_batch
from fsm_agent.loop.visit import Outcome, Visit
from fsm_agent.tools.batch import ToolBatch


async def tools(visit: Visit) -> Outcome:
    """Run what has not started while the reply streamed, and wait for all. Results are in the order of the calls."""
    conversation = visit.conversation
    batch = _batch(visit)
    try:
        outcome = await batch.run(conversation.calls, meanwhile=partial(emit_notices, visit))
    finally:
        _take_results(visit, batch)
    await emit_notices(visit)
    return Outcome(outcome, batch.detail)


async def stop_tools(visit: Visit) -> None:
    """The run was aborted before the calls were to run: stop those that started early, answer all of them."""
    batch = _batch(visit)
    await batch.stop(visit.conversation.calls)
    _take_results(visit, batch)


def _batch(visit: Visit) -> ToolBatch:
    reply = visit.conversation.reply
    assert reply is not None
    if reply.batch is None:
        reply.batch = new_batch(visit)
    return reply.batch


def _take_results(visit: Visit, batch: ToolBatch) -> None:
    visit.conversation.results = batch.results()
    visit.conversation.result_blocks = bounded_results(visit)
