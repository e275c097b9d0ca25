"""Script items played: their actions with the fault and the delays that they carry."""

from collections.abc import Iterable, Iterator

from fsm_agent.testing.events import (
    GARBAGE,
    Action,
    Answer,
    Chunking,
    Ending,
    Partial,
    Pause,
    error_event,
    reply_actions,
)
from fsm_agent.testing.script import Fault, Reply, Stream
from fsm_agent.testing.stream_steps import stream_actions

__all__ = ["answer_actions", "break_at", "count_events"]


def answer_actions(item: Reply | Stream, answer: Answer, chunking: Chunking) -> Iterator[Action]:
    """The actions of an item, with its fault and its delays."""
    if isinstance(item, Reply):
        actions = reply_actions(item, answer, chunking)
    else:
        actions = stream_actions(item, answer, chunking)
    if item.fault is not None:
        actions = break_at(actions, item.fault, answer.request_id)
    return _delayed(actions, chunking.delay) if chunking.delay else actions


def _delayed(actions: Iterable[Action], seconds: float) -> Iterator[Action]:
    for action in actions:
        if isinstance(action, dict | bytes):
            yield Pause(seconds)
        yield action


def break_at(actions: Iterable[Action], fault: Fault, request_id: str | None) -> Iterator[Action]:
    """The actions up to the event that the fault replaces, then the fault. Pauses are no events."""
    position = 0
    for action in actions:
        if isinstance(action, dict | bytes):
            if position == fault.at_event:
                if fault.after_bytes:
                    yield Partial(action, fault.after_bytes)
                yield from _fault_actions(fault, request_id)
                return
            position += 1
        yield action


def _fault_actions(fault: Fault, request_id: str | None) -> Iterator[Action]:
    if fault.kind == "error":
        yield error_event(fault.error_type, fault.message, request_id)
        yield Ending.EOF
    elif fault.kind == "garbage":
        yield GARBAGE
        yield Ending.EOF
    else:
        yield Ending(fault.kind)


def count_events(item: Reply | Stream, chunking: Chunking) -> int:
    """How many events an answer has, so that a driver can put a fault in the place of each.

    >>> count_events(Reply("hi"), Chunking(pings=False))
    6
    """
    actions = answer_actions(item, Answer("msg_0", "req_0", "claude-sonnet-5-5"), chunking)
    return sum(1 for action in actions if isinstance(action, dict | bytes))
