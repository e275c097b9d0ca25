"""Whatever a stream does, it is one declared outcome, and what is kept of it can be sent back."""

import asyncio
import json
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from fsm_agent.machine.vocabulary import ResponseOutcome as R
from fsm_agent.model.classify import classify
from fsm_agent.model.outcomes import STOP_REASONS, outcome_of, outcome_of_lost
from fsm_agent.model.sse import EventDecoder
from fsm_agent.session.validator import violations
from tests.model.streams import (
    PING,
    STOPPED,
    Event,
    begin,
    call,
    delta,
    end,
    fed,
    model,
    performed,
    server_call,
    server_result,
    start,
    stop,
    thinking,
)

KEPT_WHOLE = {R.TOOL_USE, R.END_TURN, R.PAUSE_TURN}

texts = st.text(max_size=8) | st.just("\ud83d") | st.just(" ")
raw_inputs = st.sampled_from(["", "{}", '{"a": 1}', '{"a', "[1]", '{"a": NaN}', '{"\\ud83d": "\\udc00"}', "null"])
ids = st.sampled_from(["t1", "t2", "t1", "odd id", ""])
reasons = st.sampled_from([*STOP_REASONS, "something_new"])


def streamed_text(pieces: list[str], index: int) -> list[Event]:
    deltas = [delta(index, type="text_delta", text=piece) for piece in pieces]
    return [begin(index, {"type": "text", "text": ""}), *deltas, end(index)]


@st.composite
def blocks(draw: st.DrawFn, index: int) -> list[Event]:
    kind = draw(st.sampled_from(["text", "thinking", "unsigned", "redacted", "call", "server", "unknown"]))
    match kind:
        case "text":
            return streamed_text(draw(st.lists(texts, max_size=3)), index)
        case "thinking":
            return thinking(draw(texts), index)
        case "unsigned":
            return thinking(draw(texts), index, "")
        case "redacted":
            return [begin(index, {"type": "redacted_thinking", "data": "EmwK"}), end(index)]
        case "call":
            return call(draw(raw_inputs), index, call_id=draw(ids))
        case "server":
            name = f"srvtoolu_{index}"
            answered = draw(st.booleans())
            return [*server_call(index, name), *(server_result(index + 100, name) if answered else [])]
        case _:
            return [begin(index, {"type": "hologram"}), delta(index, type="colour_delta", colour="red"), end(index)]


@st.composite
def replies(draw: st.DrawFn) -> list[Event]:
    """Well-formed streams of any content, with pings anywhere."""
    count = draw(st.integers(0, 4))
    events = [start(), *(event for index in range(count) for event in draw(blocks(index)))]
    events += [stop(draw(reasons)), STOPPED]
    for place in draw(st.lists(st.integers(0, len(events)), max_size=2)):
        events.insert(place, PING)
    return events


junk: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | texts, lambda inner: st.lists(inner) | st.dictionaries(texts, inner)
)


def run(events: list[Any]) -> Any:
    return asyncio.run(performed(model(*events), waiting_ids=()))


def check_kept(outcome: R, reply: Any) -> None:
    """Whatever a row keeps of the reply is a valid part of a history."""
    prompt, after = {"role": "user", "content": "Go."}, {"role": "user", "content": "Go on."}
    partial = reply.text_message()
    if partial is not None:
        assert violations([prompt, partial, after]) == []
    if outcome in KEPT_WHOLE:
        message = reply.message()
        assert message["content"]
        results = [{"type": "tool_result", "tool_use_id": one.id, "content": "ok"} for one in reply.tool_calls]
        answered = [{"role": "user", "content": results}] if results else [after]
        paused = outcome is R.PAUSE_TURN
        assert violations([prompt, message, *([] if paused else answered)]) == []


@given(replies())
def test_a_whole_reply_is_a_declared_outcome_without_a_failure(events: list[Event]):
    done = run(events)
    assert done.outcome in R
    assert done.outcome not in (R.RETRYABLE, R.CUT, R.FATAL)
    assert done.made.failure is None
    check_kept(done.outcome, done.made.reply)


@given(replies(), st.data())
def test_any_prefix_of_a_reply_is_a_declared_outcome_and_keeps_nothing_invalid(
    events: list[Event], data: st.DataObject
):
    told = next(at for at, event in enumerate(events) if event["type"] == "message_delta")
    cut = data.draw(st.integers(0, len(events)))
    done = run(events[:cut])
    assert (done.made.failure is None) == (cut > told)
    assert cut > told or done.outcome in (R.RETRYABLE, R.CUT)
    check_kept(done.outcome, done.made.reply)


@given(replies(), st.data())
def test_any_event_replaced_by_junk_is_a_declared_outcome(events: list[Any], data: st.DataObject):
    place = data.draw(st.integers(0, len(events) - 1))
    events[place] = data.draw(junk | st.sampled_from(events))
    done = run(events)
    assert done.outcome in R
    check_kept(done.outcome, done.made.reply)


@given(st.lists(st.sampled_from([start(), *call("{}"), *thinking("x"), stop("tool_use"), stop("end_turn"), STOPPED])))
@example([start(), stop("end_turn")])
def test_any_order_of_events_is_a_declared_outcome(events: list[Event]):
    done = run(events)
    assert done.outcome in R
    check_kept(done.outcome, done.made.reply)


@given(replies(), st.data())
def test_how_the_bytes_are_cut_makes_no_difference(events: list[Event], data: st.DataObject):
    stream = b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    decoder, found, before = EventDecoder(), list[Event](), 0
    for cut in [*cuts, len(stream)]:
        found += decoder.feed(stream[before:cut])
        before = cut
    assert decoder.end() is None
    once, again = run(events), run(found)
    assert (again.outcome, again.events) == (once.outcome, once.events)


@given(st.lists(texts, max_size=6), st.lists(texts, max_size=6))
def test_how_a_text_is_cut_into_deltas_makes_no_difference(one: list[str], two: list[str]):
    pieces = [piece for piece in [*one, *two] if piece.isprintable() and "\ud83d" not in piece]
    joined = fed([start(), *streamed_text(["".join(pieces)], 0)])
    split = fed([start(), *streamed_text(pieces, 0)])
    assert split.text == joined.text == "".join(pieces)


@given(replies(), junk)
def test_every_failure_of_every_reply_is_a_declared_outcome(events: list[Event], error: Any):
    reply = fed(events[:-2])
    failure = classify({"type": "error", "error": error})
    assert outcome_of_lost(reply, failure) in R
    assert failure.message


@given(replies(), reasons)
def test_the_outcome_of_a_reply_depends_on_nothing_but_the_reply(events: list[Event], reason: str):
    assert outcome_of(fed(events)) is outcome_of(fed(events))
    assert fed(events).message() == fed(events).message()
