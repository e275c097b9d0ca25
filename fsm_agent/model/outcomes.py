"""Which outcome a reply of the model is: its stop reason and its content decide together."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from fsm_agent.machine.vocabulary import ResponseOutcome
from fsm_agent.model.classify import CONNECTION, TIMEOUT, Failure
from fsm_agent.model.faults import EOF, STALL
from fsm_agent.model.reply import ReplyAssembler

__all__ = ["STOP_REASONS", "outcome_of", "outcome_of_lost"]

_R = ResponseOutcome

STOP_REASONS: Mapping[str, ResponseOutcome] = MappingProxyType(
    {
        "end_turn": _R.END_TURN,
        "stop_sequence": _R.END_TURN,
        "tool_use": _R.TOOL_USE,
        "max_tokens": _R.MAX_TOKENS,
        "pause_turn": _R.PAUSE_TURN,
        "compaction": _R.PAUSE_TURN,  # beta: the API compacted the context, and goes on when the message is sent back
        "refusal": _R.REFUSAL,
        "model_context_window_exceeded": _R.PROMPT_TOO_LONG,
    }
)
"""What each stop reason of the API means, before the content is looked at. Any other is `unknown`."""

_LOST: Final = frozenset({EOF, STALL, CONNECTION, TIMEOUT})


def outcome_of(reply: ReplyAssembler) -> ResponseOutcome:
    """The outcome of a finished reply. Total over all stop reasons and contents.

    A client tool use makes an end or a pause a `tool_use`, for the API wants it answered; a `tool_use` without one is
    malformed. An end with nothing to read, or a pause with nothing to send back, is `empty`.
    """
    outcome = STOP_REASONS.get(reply.stop_reason or "", _R.UNKNOWN)
    if outcome is _R.TOOL_USE:
        return _R.TOOL_USE if reply.tool_calls else _R.MALFORMED_TOOL_USE
    if outcome in (_R.END_TURN, _R.PAUSE_TURN) and reply.tool_calls:
        return _R.TOOL_USE
    if outcome is _R.END_TURN and not reply.has_visible_output:
        return _R.EMPTY
    if outcome is _R.PAUSE_TURN and not reply.message()["content"]:
        return _R.EMPTY
    return outcome


def outcome_of_lost(reply: ReplyAssembler, failure: Failure) -> ResponseOutcome:
    """The outcome of a reply whose stream failed before it was finished.

    `cut` if the connection was lost after a complete text block, with no call complete: the text is worth keeping.
    Otherwise what the failure says; nothing of the reply is kept, so nothing of it can run twice.
    """
    worth_keeping = reply.has_complete_text and not reply.tool_calls
    if failure.outcome is _R.RETRYABLE and failure.kind in _LOST and worth_keeping:
        return _R.CUT
    return failure.outcome
