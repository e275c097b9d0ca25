"""The effects of `recovering` after a normal end of turn: is the output valid, do the hooks agree, is budget left?"""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from fsm_agent.loop.events import System
from fsm_agent.loop.hooks import StopHookInput, ask_stop_hooks
from fsm_agent.loop.visit import Outcome, Visit
from fsm_agent.tools.calls import copied_input
from fsm_agent.tools.faults import text_of_fault

NEARLY_ALL = 0.9
"""Share of the token budget that counts as used."""
LITTLE_OUTPUT = 500
"""Output tokens of a continuation that count as no progress (the published loop's figure); two such end it."""


async def output(visit: Visit) -> Outcome:
    """Validate the answer against the machine's output type."""
    conversation = visit.conversation
    adapter = conversation.machine.output_adapter
    if adapter is None or conversation.reply is None:
        return Outcome("valid")
    text = conversation.reply.assembler.text
    # A reply that was cut and gone on with is one answer; one that the token budget asked for stands alone.
    faults: list[Exception] = []
    for answer in dict.fromkeys([conversation.answer.with_(text), text]):
        try:
            conversation.output = adapter.validate_json(_bare_json(answer))
        except Exception as error:  # a validator of the user's own may raise anything
            faults.append(error)
        else:
            return Outcome("valid")
    conversation.output_errors = _told(faults[0])
    return Outcome("invalid", f"The reply does not fit the output type: {conversation.output_errors}")


def _told(fault: Exception) -> str:
    try:
        if isinstance(fault, ValidationError):
            lines = (f"- {'.'.join(map(str, item['loc'])) or 'the reply'}: {item['msg']}" for item in fault.errors())
            return "\n".join(lines)
    except ValueError:  # a message that is no Unicode text
        return "- the reply: it is not valid"
    return f"- the reply: {text_of_fault(fault)}"


def _bare_json(text: str) -> str:
    """The JSON of a reply that put it into a code fence."""
    text = text.strip()
    if text.startswith("```") and text.endswith("```"):
        text = text[3:-3].removeprefix("json").strip()
    return text


async def hooks(visit: Visit) -> Outcome:
    """Ask the stop hooks. One that fails or is out of time never blocks, and an event tells of it."""
    conversation = visit.conversation
    stop = conversation.machine.hooks.stop
    if not stop:
        return Outcome("pass")
    assert conversation.reply is not None
    given = StopHookInput(
        stop_hook_active="stop_hook_active" in visit.control.index and bool(visit.control["stop_hook_active"]),
        text=conversation.answer.with_(conversation.reply.assembler.text),
        messages=_copies([*conversation.history.messages, conversation.reply.assembler.message()]),
        turn=conversation.turn,
        run_id=conversation.run_id,
    )
    verdict = await ask_stop_hooks(stop, given, timeout=visit.limits.hook_timeout, grace=visit.limits.abort_grace)
    for subtype, message in verdict.problems:
        await visit.emit(System(subtype=subtype, message=message))
    conversation.feedback = verdict.reasons
    return Outcome(verdict.outcome, "; ".join(verdict.reasons))


def _copies(messages: list[Any]) -> list[dict[str, Any]]:
    """For a host's code, which may change what it is given. Made once for each end of a turn, and only for hooks."""
    return [copied_input(message) for message in messages]


async def budget(visit: Visit) -> Outcome:
    """Weigh the output so far against the token budget. Two continuations in a row with little output end it."""
    conversation = visit.conversation
    wanted = visit.limits.token_budget
    if wanted is None:
        return Outcome("used")
    used = conversation.usage.output_tokens
    if used >= NEARLY_ALL * wanted:
        return Outcome("used", f"{used} of {wanted} output tokens are used.")
    recent = [*conversation.continuation_outputs[1:], used - conversation.output_tokens_before]
    if len(conversation.continuation_outputs) >= 2 and all(count < LITTLE_OUTPUT for count in recent[-2:]):
        return Outcome("used", f"{used} of {wanted} output tokens are used, and the last continuations added little.")
    return Outcome("under")
