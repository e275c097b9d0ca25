"""One request to the model, for a turn or for a summary: what both have in common."""

from __future__ import annotations

from typing import Any

from fsm_agent.context.tool_result_budget import bounded_blocks
from fsm_agent.log import logger
from fsm_agent.loop.conversation import Conversation, Reply
from fsm_agent.loop.events import Progress, StreamEvent, StreamRequestStart, System
from fsm_agent.loop.visit import Visit
from fsm_agent.model.call import ModelCall
from fsm_agent.model.reply import ReplyAssembler
from fsm_agent.model.request import ModelRequest
from fsm_agent.model.surrogates import mended_text
from fsm_agent.session.message import OpenArray
from fsm_agent.session.validator import InvariantError
from fsm_agent.tools.batch import ToolBatch, ToolNotice


async def announce(visit: Visit, purpose: str) -> None:
    """Tell of the request and count it. An abort while it is told of keeps it from being sent, and from being counted:
    between the count and the sending nothing is awaited."""
    conversation = visit.conversation
    await visit.emit(
        StreamRequestStart.of(
            {
                "type": "stream_request_start",
                "model": conversation.model,
                "request": conversation.requests + 1,
                "attempt": conversation.attempt if purpose == "turn" else 1,
                "purpose": "turn" if purpose == "turn" else "summary",
            }
        )
    )
    conversation.requests += 1


def checked_request(visit: Visit, messages: bytes | OpenArray, **options: Any) -> ModelRequest:
    conversation = visit.conversation
    return conversation.machine.template.request(
        model=conversation.model, messages=messages, system=conversation.system, **options
    )


def turn_request(visit: Visit, **options: Any) -> ModelRequest:
    """The request of a turn. Cache marks of prompts and tool results that the API would not take lose the oldest."""
    history, model = visit.conversation.history, visit.conversation.model
    options["container"] = visit.conversation.container
    request = checked_request(visit, history.encoded(model), **options)
    if request.surplus_cache_marks:
        history.drop_cache_marks(request.surplus_cache_marks)
        request = checked_request(visit, history.encoded(model), **options)
    return request


def check_history(conversation: Conversation) -> None:
    """Run the validator on what is about to be sent. A violation is a fault of ours: told loudly, then repaired."""
    violations = conversation.validator.check(conversation.history, conversation.model)
    if not violations:
        return
    text = "; ".join(str(violation) for violation in violations)
    if conversation.machine.strict:
        raise InvariantError(f"The history that is about to be sent breaks {text}")
    logger.error("history_repaired", run=conversation.run_id, violations=text)
    conversation.history.repair()
    conversation.validator.reset()


async def emit_notices(visit: Visit) -> None:
    """Tell of what tools have done since the last time."""
    notices = visit.conversation.notices
    while (notice := notices.take()) is not None:
        if visit.listening:
            await visit.emit(progress_event(notice))


def progress_event(notice: ToolNotice) -> Progress | System:
    if notice.kind in ("hook_error", "hook_timeout"):
        return System(
            subtype=notice.kind,
            message=mended_text(str(notice.data)),
            detail={"tool": notice.tool, "tool_use_id": notice.tool_use_id},
        )
    return Progress.of(
        {
            "type": "progress",
            "kind": f"tool_{notice.kind}",  # the notice's three kinds, with the prefix of the event
            "tool_use_id": notice.tool_use_id,
            "tool": notice.tool,
            "is_error": notice.is_error,
            "seconds": notice.seconds,
            "discarded": notice.discarded,
            "data": notice.data,
        }
    )


class TurnCall:
    """The request of a turn: its events go to the consumer, its tool calls to a batch."""

    def __init__(self, visit: Visit, request: ModelRequest) -> None:
        self.visit = visit
        self.conversation = visit.conversation
        self.batch = new_batch(visit)
        self.call = ModelCall(
            self.conversation.machine.call_model,
            request,
            limits=visit.limits,
            on_event=self._on_event,
            on_block=self.batch.offer,
            known_ids=self.conversation.call_ids,
            waiting_ids=self.conversation.waiting_server_calls(),
        )
        self.reply = Reply(self.call.reply, "", self.conversation.model, batch=self.batch)
        self.conversation.reply = self.reply

    async def _on_event(self, assembler: ReplyAssembler, event: dict[str, Any]) -> None:
        if not self.reply.message_id:
            self.reply.message_id = self.conversation.unique_message_id(assembler.message_id or "msg")
        if not self.visit.listening:
            return
        if len(self.conversation.notices):
            await emit_notices(self.visit)
        self.reply.shown = True
        await self.visit.emit(
            StreamEvent.of({"type": "stream_event", "message_id": self.reply.message_id, "event": event})
        )


def new_batch(visit: Visit) -> ToolBatch:
    conversation = visit.conversation
    machine = conversation.machine
    return ToolBatch(
        machine.toolbox,
        limits=machine.limits,
        deps=machine.tool_deps,
        run_id=conversation.run_id,
        turn=conversation.turn,
        notify=conversation.notices.put,
        permission=machine.can_use_tool,
        hooks=machine.hooks,
        attempt=conversation.attempt,
    )


def bounded_results(visit: Visit) -> list[dict[str, Any]]:
    """The results in hand as they enter the history: each, and all together, within their budget."""
    results = visit.conversation.results
    return bounded_blocks(
        [result.block() for result in results],
        visit.limits,
        visit.conversation.machine.result_store,
        [result.max_chars for result in results],
    )
