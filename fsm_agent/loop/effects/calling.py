"""The effect of `calling_model`: one streamed request."""

from __future__ import annotations

from fsm_agent.loop import texts
from fsm_agent.loop.conversation import Conversation
from fsm_agent.loop.effects.asking import (
    TurnCall,
    announce,
    bounded_results,
    check_history,
    emit_notices,
    turn_request,
)
from fsm_agent.loop.visit import Outcome, Visit
from fsm_agent.machine import ResponseOutcome


async def response(visit: Visit) -> Outcome:
    """Send the history, stream the reply, start the tools that may start early."""
    conversation = visit.conversation
    conversation.reply = None
    conversation.failure = None
    spent = conversation.spent()
    if spent:
        return Outcome(ResponseOutcome.BUDGET_SPENT, spent)
    conversation.begin_attempt()
    await announce(visit, "turn")
    check_history(conversation)
    request = turn_request(visit, max_tokens=output_limit(visit), think=_may_think(conversation))
    turn = TurnCall(visit, request)
    try:
        return await _performed(visit, turn)
    except BaseException:  # wherever an abort came: what was started early does not outlive it
        await turn.batch.discard()
        raise


async def _performed(visit: Visit, turn: TurnCall) -> Outcome:
    conversation = visit.conversation
    try:
        outcome = await turn.call.perform()
    finally:
        _account(visit, turn)
    conversation.failure = turn.call.failure
    detail = turn.call.failure.message if turn.call.failure else ""
    if outcome is ResponseOutcome.TOOL_USE:
        spent = conversation.spent()
        if spent:
            outcome, detail = ResponseOutcome.BUDGET_SPENT, spent
            await _answer_spent(visit, turn)
    else:
        await turn.batch.discard()
    await emit_notices(visit)
    return Outcome(outcome, detail)


def _may_think(conversation: Conversation) -> bool:
    """After a change of the model in the middle of a tool loop, the thinking of that turn is another model's and is
    left out; the API then takes no `thinking.type: enabled` before the turn is over."""
    if not conversation.machine.template.needs_leading_thinking:
        return True
    return conversation.history.begins_with_thinking(conversation.model)


def output_limit(visit: Visit) -> int:
    """The `max_tokens` of the next request: raised after a truncation in this turn, never above the model's own."""
    limits = visit.limits
    escalated = "escalated" in visit.control.index and visit.control["escalated"]
    wanted = limits.escalated_max_output_tokens if escalated else limits.max_output_tokens
    return min(wanted, visit.conversation.machine.output_ceiling(visit.conversation.model))


def _account(visit: Visit, turn: TurnCall) -> None:
    visit.conversation.count(turn.call.reply.usage, visit.conversation.model)


async def _answer_spent(visit: Visit, turn: TurnCall) -> None:
    """The calls of a reply that spent the budget do not run; one that has already run keeps its true result."""
    calls = turn.call.reply.tool_calls
    await turn.batch.stop(calls)
    conversation = visit.conversation
    conversation.results = turn.batch.results()
    conversation.result_blocks = [
        {**block, "content": texts.BUDGET_REFUSAL} if result.status == "not_run" else block
        for result, block in zip(conversation.results, bounded_results(visit), strict=True)
    ]
