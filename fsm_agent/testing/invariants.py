"""The invariants of a run, checked on what it told, what it came to, and what it sent.

I1 to I5 are those of a history (`fsm_agent.session.validator`), held by each request and by what the run leaves. Here
are the others too:

I6  What the run leaves, read again from JSON, is the same history and needs no repair.
I7  Each step is one of the declaration's; there is exactly one terminal event, and it is the last.
I8  Each request is explained by an effect that the declaration allows a request.
I9  No stream is left open. (Tasks, timers and threads: `simulate` finds those.)
I10 Each tool that started finished once, and is silent afterwards; each message that was streamed was kept or
    retracted once, and what was streamed of the kept ones is the text that is stored.
I11 An error is shown at most once, before the end, and never when the run repaired it.
I12 The usage is that of all responses, each counted once.
I13 After an abort there is no new request, and the end comes in time.

Beside them `prefix`: without an edit that was told of, each request begins with the messages of the one before.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from fsm_agent.loop.agent import AgentMachine
from fsm_agent.loop.events import (
    Assistant,
    ContextEdit,
    Event,
    Progress,
    StreamEvent,
    StreamRequestStart,
    System,
    Terminal,
    Tombstone,
    Transition,
    User,
)
from fsm_agent.loop.result import RunResult
from fsm_agent.model.usage import Usage
from fsm_agent.session.history import History
from fsm_agent.session.message import blocks_of, is_server_use
from fsm_agent.session.validator import violations
from fsm_agent.testing.observed import Exchange
from fsm_agent.testing.shapes import as_object
from fsm_agent.verify.conformance import conform

E = TypeVar("E")

__all__ = ["Breach", "ObservedRun", "assert_invariants", "broken_invariants"]


@dataclass(frozen=True, slots=True)
class Breach:
    """One invariant that does not hold."""

    invariant: str
    text: str

    def __str__(self) -> str:
        return f"{self.invariant}: {self.text}"


@dataclass(frozen=True, slots=True)
class ObservedRun:
    """A run, as it can be seen from outside."""

    machine: AgentMachine
    events: Sequence[Event]
    """All events, in order. A consumer that stopped early saw only some: then `whole` is False."""
    result: RunResult
    exchanges: Sequence[Exchange]
    """What went between the run and its model (`ObservedModel`)."""
    aborted_at: float | None = None
    """When it was aborted, by the event loop's clock."""
    ended_at: float | None = None
    patience: float = 1.0
    """Seconds that an abort may take, beside the grace of tools and hooks."""
    whole: bool = True

    def all(self, kind: type[E]) -> list[E]:
        """The events of one class."""
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def net_text(self) -> str:
        """All text that was streamed, less that of messages that were retracted."""
        gone = {event.message_id for event in self.all(Tombstone)}
        return "".join(event.text for event in self.all(StreamEvent) if event.message_id not in gone)


def assert_invariants(run: ObservedRun) -> None:
    """Fail, with all that is broken, unless every invariant holds."""
    found = broken_invariants(run)
    if found:
        told = "\n".join(f"  {breach}" for breach in found)
        raise AssertionError(f"The run ({run.result.reason}; {' '.join(run.result.trace)}) breaks:\n{told}")


def broken_invariants(run: ObservedRun) -> list[Breach]:
    """Every invariant that the run breaks, in words."""
    checks = _ALWAYS if not run.whole else (*_ALWAYS, *_ON_EVENTS)
    return [Breach(name, text) for name, check in checks for text in check(run)]


# ---- what was sent, and what is left


def _requests(run: ObservedRun) -> Iterator[str]:
    for number, exchange in enumerate(run.exchanges, 1):
        for violation in violations(exchange.messages, exchange.model):
            yield f"request {number}: {violation}"


def _left(run: ObservedRun) -> Iterator[str]:
    yield from (f"the history that is left: {violation}" for violation in violations(run.result.messages))
    if run.result.history.open_calls():
        yield "the history that is left has calls without a result"


def _reloaded(run: ObservedRun) -> Iterator[str]:
    text = json.dumps(run.result.messages, ensure_ascii=False, allow_nan=False)
    again = History.load(json.loads(text.encode().decode()))
    if again.repairs:
        yield f"read again, it had to be repaired: {' '.join(again.repairs)}"
    elif again.encode() != run.result.history.encode():
        yield "read again, it makes another request"


def _open(run: ObservedRun) -> Iterator[str]:
    left = sum(exchange.ending is None for exchange in run.exchanges)
    if left:
        yield f"{left} streams of the model are still open"


def _usage(run: ObservedRun) -> Iterator[str]:
    if run.result.requests != len(run.exchanges):
        yield f"{len(run.exchanges)} requests were sent, and {run.result.requests} are reported"
    told = [Usage.from_wire(exchange.usage) for exchange in run.exchanges if exchange.usage]
    for name in ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"):
        sent, reported = sum(getattr(usage, name) for usage in told), getattr(run.result.usage, name)
        if sent != reported:
            yield f"{name}: the responses report {sent} together, and the run {reported}"


def _after_abort(run: ObservedRun) -> Iterator[str]:
    if run.aborted_at is None:
        return
    late = sum(exchange.started > run.aborted_at for exchange in run.exchanges)
    if late:
        yield f"{late} requests were sent after the abort"
    if run.ended_at is not None:
        took = run.ended_at - run.aborted_at
        bound = run.patience + run.machine.limits.abort_grace
        if took > bound:
            yield f"the end came {took:g} s after the abort, which is above {bound:g} s"


# ---- what was told


def _declared(run: ObservedRun) -> Iterator[str]:
    transitions = run.all(Transition)
    bounds = run.machine.automaton.limits
    divergence = conform(run.machine.definition, transitions, bounds)
    if divergence is not None:
        yield str(divergence)
    ends = run.all(Terminal)
    if len(ends) != 1 or not isinstance(run.events[-1], Terminal):
        yield f"there are {len(ends)} terminal events, and the last event is {run.events[-1].type}"
        return
    end, last = ends[0], transitions[-1]
    if not (end.reason == last.reason == str(run.result.reason)):
        yield f"the terminal event says {end.reason}, the last row {last.reason}, the result {run.result.reason}"
    if (end.text, end.turns, end.requests, end.usage) != (
        run.result.text,
        run.result.turns,
        run.result.requests,
        run.result.usage,
    ):
        yield "the terminal event and the result differ"
    if [event.trigger for event in transitions] != list(run.result.trace):
        yield "the transition events are not the trace"


def _explained(run: ObservedRun) -> Iterator[str]:
    definition = run.machine.definition
    inherited: Mapping[str, str] = {}
    allowed = 0
    for row in run.all(Transition):
        new = [effect for effect, outcome in row.facts.items() if inherited.get(effect) != outcome]
        new += [effect for effect in row.facts if effect not in new and effect not in inherited]
        allowed += sum(definition.effect(effect).requests for effect in new)
        inherited = definition.inherited(row.dest, row.facts)
    if len(run.exchanges) > allowed:
        yield f"{len(run.exchanges)} requests were sent, and the effects of the trace allow {allowed}"
    announced = len(run.all(StreamRequestStart))
    kept_back = announced - len(run.exchanges)  # an abort may come between the word and the deed
    if kept_back < 0 or kept_back > (run.result.trace[-1:] == ("abort",)):
        yield f"{len(run.exchanges)} requests were sent, and {announced} announced"


def _prefix(run: ObservedRun) -> Iterator[str]:
    """What was sent stays as it was sent, so that the prompt cache serves it: only an edit that was told of, or another
    model, may change it."""
    sent: tuple[str, str] | None = None
    edited = False
    numbers = iter(run.exchanges)
    for event in run.events:
        edited = edited or isinstance(event, ContextEdit)
        exchange = next(numbers, None) if isinstance(event, StreamRequestStart) else None
        if exchange is None or exchange.kind != "turn":
            continue
        messages = json.dumps(exchange.messages, ensure_ascii=False)[:-1]
        if sent is not None and not edited and sent[0] == exchange.model and not messages.startswith(sent[1]):
            yield f"the request for {exchange.model} changes what the one before it sent, and no edit was told of"
        # A call of the API's own tool that is never answered after a pause is taken out, maybe turns later.
        paused = any(is_server_use(block) for message in exchange.messages for block in blocks_of(message))
        sent, edited = (exchange.model, messages), paused


def _balanced_tools(run: ObservedRun) -> Iterator[str]:
    stage: dict[str, str] = {}
    for event in run.events:
        if isinstance(event, StreamRequestStart):
            still = [call for call, at in stage.items() if at == "started"]
            yield from (f"the call {call} was still running when the next request was made" for call in still)
        if not isinstance(event, Progress):
            continue
        before = stage.get(event.tool_use_id)
        if event.kind == "tool_started":
            if before == "started":
                yield f"the call {event.tool_use_id} started twice"
            stage[event.tool_use_id] = "started"
        elif before != "started":
            yield f"the call {event.tool_use_id} tells {event.kind} when it is {before or 'not started'}"
        elif event.kind == "tool_finished":
            stage[event.tool_use_id] = "finished"
    yield from (f"the call {call} started and never finished" for call, at in stage.items() if at == "started")


def _balanced_messages(run: ObservedRun) -> Iterator[str]:
    streamed: dict[str, dict[object, str]] = {}
    settled: Counter[str] = Counter()
    stored: dict[str, str] = {}
    for event in run.events:
        if isinstance(event, StreamEvent):
            if settled[event.message_id]:
                yield f"the message {event.message_id} was streamed on after it was settled"
            blocks, index = streamed.setdefault(event.message_id, {}), event.event.get("index")
            blocks[index] = blocks.get(index, "") + _text(event)
        elif isinstance(event, Assistant | Tombstone):
            settled[event.message_id] += 1
            if isinstance(event, Assistant):
                stored[event.message_id] = _visible(event.message)
    for message, blocks in streamed.items():
        text = "".join(part for part in blocks.values() if part.strip())  # blank blocks are not sent back
        if settled[message] != 1:
            yield f"the message {message} was streamed, and then settled {settled[message]} times"
        elif message in stored and text != stored[message]:
            yield f"of {message} the text {text!r} was streamed, and {stored[message]!r} stored"
    yield from (f"{message} was settled and never streamed" for message in settled if message not in streamed)


def _text(event: StreamEvent) -> str:
    """The text that an event adds: of a delta, or of a block that begins with some."""
    block = as_object(event.event.get("content_block")) or {}
    return event.text or (str(block.get("text") or "") if block.get("type") == "text" else "")


def _visible(message: Mapping[str, Any]) -> str:
    return "".join(str(block.get("text", "")) for block in blocks_of(message) if block.get("type") == "text")


def _told_history(run: ObservedRun) -> Iterator[str]:
    """Unless the context was edited, the messages that were told are those that are there.

    (A call of the API's own tools that never had its result is taken out at the end.)
    """
    if run.all(ContextEdit):
        return
    told = [event.message for event in run.events if isinstance(event, Assistant | User)]
    if any(map(is_server_use, (block for message in told for block in blocks_of(message)))):
        return
    left = [dict(message) for message in run.result.messages]
    if told and left[len(left) - len(told) :] != told:
        yield "the messages that were told are not the end of the history"


def _errors(run: ObservedRun) -> Iterator[str]:
    errors = [event for event in run.all(System) if event.subtype == "error"]
    if len(errors) > 1:
        yield f"{len(errors)} errors were shown"
    if errors and run.result.ok:
        yield f"an error was shown, and the run completed: {errors[0].message}"
    if errors:
        after = run.events[run.events.index(errors[0]) :]
        if any(isinstance(event, StreamRequestStart | StreamEvent) for event in after):
            yield "the run went on after an error was shown"
    if not errors and str(run.result.reason) in _WITH_ERROR:
        yield f"the run ended with {run.result.reason}, and no error was shown"


_WITH_ERROR = frozenset({"model_error", "prompt_too_long", "image_error", "refusal", "max_output_tokens"})

_Check = Callable[[ObservedRun], Iterator[str]]
_ALWAYS: tuple[tuple[str, _Check], ...] = (
    ("I1-I5", _requests),
    ("I1-I5", _left),
    ("I6", _reloaded),
    ("I9", _open),
    ("I12", _usage),
    ("I13", _after_abort),
)
_ON_EVENTS: tuple[tuple[str, _Check], ...] = (
    ("I7", _declared),
    ("I8", _explained),
    ("prefix", _prefix),
    ("I10", _balanced_tools),
    ("I10", _balanced_messages),
    ("I10", _told_history),
    ("I11", _errors),
)
