# ruff: noqa: ARG001 - every action has the same signature, whether or not it looks at the row
"""What rows do to the conversation: one small function for each action of the declaration.

An action has no choice of what happens next and never waits. It edits the history and returns the events that tell of
it. What it applies was proposed by an effect before.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

from fsm_agent.loop import texts
from fsm_agent.loop.conversation import Conversation
from fsm_agent.loop.events import Assistant, Attachment, ContextEdit, Event, System, Tombstone, ToolUseSummary, User
from fsm_agent.machine import Action, ContextOutcome, Row
from fsm_agent.model.json_types import as_text

ActionFunction: TypeAlias = Callable[[Conversation, Row], Iterable[Event]]


def _say(conversation: Conversation, text: str, purpose: str) -> User:
    return _add(conversation, text, purpose)


def _add(conversation: Conversation, content: Any, purpose: str) -> User:
    message: dict[str, Any] = {"role": "user", "content": content}
    entry = conversation.history.append(message, purpose=purpose)
    if entry is not None:
        message = dict(entry.message)
    conversation.settle_server_calls(paused=False)
    return User.of({"type": "user", "message": message, "purpose": purpose})


def _keep(conversation: Conversation, row: Row, message: dict[str, Any], *, partial: bool) -> Assistant | Tombstone:
    reply = conversation.reply
    assert reply is not None
    assembler = reply.assembler
    reply.settled = True
    entry = conversation.history.append(message, model=reply.model)
    if entry is None:
        return Tombstone(message_id=reply.message_id, cause=row.trigger)
    conversation.call_ids.update(entry.calls)
    conversation.last_usage = assembler.usage
    conversation.container = as_text((assembler.container or {}).get("id")) or conversation.container
    conversation.settle_server_calls(paused=True)
    conversation.server_calls = conversation.server_calls or bool(entry.open_server_uses)
    conversation.answer.add(assembler.text)
    return Assistant.of(
        {
            "type": "assistant",
            "message": dict(entry.message),  # a consumer may do with it what it likes
            "message_id": reply.message_id,
            "model": assembler.model or reply.model,
            "stop_reason": assembler.stop_reason,
            "usage": assembler.usage,
            "partial": partial,
        }
    )


def keep_reply(conversation: Conversation, row: Row) -> Iterable[Event]:
    reply = conversation.reply
    if reply is None or reply.settled:
        return []
    return [_keep(conversation, row, reply.assembler.message(), partial=False)]


def keep_text(conversation: Conversation, row: Row) -> Iterable[Event]:
    reply = conversation.reply
    if reply is None or reply.settled:
        return []
    message = reply.assembler.text_message()
    if message is None:
        return discard_reply(conversation, row)
    return [_keep(conversation, row, message, partial=True)]


def discard_reply(conversation: Conversation, row: Row) -> Iterable[Event]:
    reply = conversation.reply
    if reply is None or reply.settled:
        return []
    reply.settled = True
    return [Tombstone(message_id=reply.message_id, cause=row.trigger)] if reply.shown else []


def answer_calls(conversation: Conversation, row: Row) -> Iterable[Event]:
    conversation.answer.starts_anew()
    if not conversation.result_blocks:
        return []
    told = _add(conversation, conversation.result_blocks, "tool_results")
    results, conversation.results, conversation.result_blocks = conversation.results, [], []
    names = {call.id: call.name for call in conversation.calls}
    summary = ", ".join(f"{names.get(result.tool_use_id, '?')}: {result.status}" for result in results)
    return [
        told,
        ToolUseSummary.of(
            {
                "type": "tool_use_summary",
                "tool_use_ids": [result.tool_use_id for result in results],
                "summary": summary,
            }
        ),
    ]


def refuse_calls(conversation: Conversation, row: Row) -> Iterable[Event]:
    """Calls that were not run are answered so; one that ran while the reply streamed has its true result."""
    if conversation.result_blocks:
        return answer_calls(conversation, row)
    blocks = [
        {"type": "tool_result", "tool_use_id": call, "content": texts.BUDGET_REFUSAL, "is_error": True}
        for call in conversation.history.open_calls()
    ]
    return [_add(conversation, blocks, "tool_results")] if blocks else []


def attach(conversation: Conversation, row: Row) -> Iterable[Event]:
    events: list[Event] = []
    while conversation.queued:
        content = conversation.queued.popleft()
        events += [Attachment(kind="queued_message", content=content), _add(conversation, content, "queued")]
    return events


def note_interruption(conversation: Conversation, row: Row) -> Iterable[Event]:
    return [_say(conversation, texts.INTERRUPTED, row.trigger)]


def switch_model(conversation: Conversation, row: Row) -> Iterable[Event]:
    before = conversation.model
    conversation.model_index = min(conversation.model_index + 1, len(conversation.models) - 1)
    why = conversation.details.get("response", "")
    return [
        System(
            subtype="model_fallback",
            message=f"The model {before} did not answer; {conversation.model} goes on.",
            detail={"from": before, "to": conversation.model, "why": why},
        )
    ]


def apply_context(conversation: Conversation, row: Row) -> Iterable[Event]:
    plan = conversation.plan
    if plan is None:
        return []
    conversation.plan = None
    conversation.edits = list(plan.edits)
    if plan.outcome in (ContextOutcome.COMPACTED, ContextOutcome.REFILLED):
        return apply_compaction(conversation, row)
    return _apply_edits(conversation)


def apply_compaction(conversation: Conversation, row: Row) -> Iterable[Event]:
    conversation.last_compaction_turn = conversation.turn
    conversation.last_usage = None
    return _apply_edits(conversation)


def apply_edits(conversation: Conversation, row: Row) -> Iterable[Event]:
    return _apply_edits(conversation)


def _apply_edits(conversation: Conversation) -> list[Event]:
    events: list[Event] = []
    for edit in conversation.edits:
        conversation.history.replace(edit.start, edit.stop, edit.messages)
        events.append(
            ContextEdit(
                stage=edit.stage,
                tokens_before=edit.tokens_before,
                tokens_after=edit.tokens_after,
                removed=edit.removed,
            )
        )
    conversation.edits = []
    return events


def ask_to_continue_truncated(conversation: Conversation, row: Row) -> Iterable[Event]:
    conversation.answer.goes_on()
    return [_say(conversation, texts.CONTINUE_TRUNCATED, row.trigger)]


def ask_to_continue_cut(conversation: Conversation, row: Row) -> Iterable[Event]:
    conversation.answer.goes_on()
    return [_say(conversation, texts.CONTINUE_CUT, row.trigger)]


def ask_for_visible_output(conversation: Conversation, row: Row) -> Iterable[Event]:
    return [_say(conversation, texts.VISIBLE_OUTPUT, row.trigger)]


def ask_for_valid_output(conversation: Conversation, row: Row) -> Iterable[Event]:
    conversation.answer.starts_anew()
    schema = json.dumps(conversation.machine.output_schema, ensure_ascii=False, sort_keys=True)
    text = texts.INVALID_OUTPUT.format(errors=conversation.output_errors, schema=schema)
    return [_say(conversation, text, row.trigger)]


def say_hook_feedback(conversation: Conversation, row: Row) -> Iterable[Event]:
    conversation.answer.starts_anew()
    return [_say(conversation, texts.HOOK_FEEDBACK.format(reasons="\n".join(conversation.feedback)), row.trigger)]


def say_budget_left(conversation: Conversation, row: Row) -> Iterable[Event]:
    conversation.answer.goes_on("\n\n")
    conversation.continuation_outputs.append(conversation.usage.output_tokens - conversation.output_tokens_before)
    conversation.output_tokens_before = conversation.usage.output_tokens
    text = texts.BUDGET_LEFT.format(
        used=conversation.usage.output_tokens, budget=conversation.machine.limits.token_budget
    )
    return [_say(conversation, text, row.trigger)]


ACTIONS: Mapping[str, ActionFunction] = MappingProxyType(
    {
        Action.APPLY_CONTEXT: apply_context,
        Action.KEEP_REPLY: keep_reply,
        Action.KEEP_TEXT: keep_text,
        Action.DISCARD_REPLY: discard_reply,
        Action.ANSWER_CALLS: answer_calls,
        Action.REFUSE_CALLS: refuse_calls,
        Action.ATTACH: attach,
        Action.NOTE_INTERRUPTION: note_interruption,
        Action.SWITCH_MODEL: switch_model,
        Action.APPLY_DRAIN: apply_edits,
        Action.APPLY_COMPACTION: apply_compaction,
        Action.REMOVE_MEDIA: apply_edits,
        Action.ASK_TO_CONTINUE_TRUNCATED: ask_to_continue_truncated,
        Action.ASK_TO_CONTINUE_CUT: ask_to_continue_cut,
        Action.ASK_FOR_VISIBLE_OUTPUT: ask_for_visible_output,
        Action.ASK_FOR_VALID_OUTPUT: ask_for_valid_output,
        Action.SAY_HOOK_FEEDBACK: say_hook_feedback,
        Action.SAY_BUDGET_LEFT: say_budget_left,
    }
)
"""Every action of the shipped declaration."""
