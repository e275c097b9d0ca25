"""Server-sent events may be cut anywhere, and end in any way."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsm_agent.model.faults import PROTOCOL, StreamFault
from fsm_agent.model.sse import EventDecoder

EVENTS: list[dict[str, Any]] = [
    {"type": "message_start", "message": {"id": "msg_1"}},
    {"type": "ping"},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "h\u00e9\u2028\U0001f600\n"}},
    {"type": "message_stop"},
]


def encoded(events: list[dict[str, Any]], newline: str = "\n") -> bytes:
    lines = [[f"event: {event['type']}", f"data: {json.dumps(event, ensure_ascii=False)}", "", ""] for event in events]
    return "".join(newline.join(event) for event in lines).encode()


def decoded(stream: bytes, cuts: list[int] | None = None) -> list[dict[str, Any]]:
    decoder, found, before = EventDecoder(), list[dict[str, Any]](), 0
    for cut in [*sorted(cuts or []), len(stream)]:
        found += decoder.feed(stream[before:cut])
        before = cut
    last = decoder.end()
    return found if last is None else [*found, last]


@given(st.sampled_from(["\n", "\r\n", "\r"]), st.lists(st.integers(0, 330)))
def test_events_come_whole_however_the_bytes_are_cut(newline: str, cuts: list[int]):
    assert decoded(encoded(EVENTS, newline), cuts) == EVENTS


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_events_come_whole_byte_by_byte(newline: str):
    stream = encoded(EVENTS, newline)
    assert decoded(stream, list(range(len(stream)))) == EVENTS


@given(st.integers(0, len(encoded(EVENTS))))
def test_a_stream_cut_anywhere_gives_the_events_that_were_whole(cut: int):
    found = decoded(encoded(EVENTS)[:cut])
    assert found == EVENTS[: len(found)]


def test_the_last_event_needs_no_blank_line():
    assert decoded(encoded(EVENTS).rstrip()) == EVENTS
    assert decoded(encoded(EVENTS)[:-1]) == EVENTS


def test_comments_ids_and_a_byte_order_mark_are_passed_over():
    stream = b"\xef\xbb\xbf: hello\n\nid: 7\nretry: 10\nevent: ping\ndata: {}\n\n:\n\n"
    assert decoded(stream) == [{"type": "ping"}]


def test_data_without_an_event_line_tells_its_type_itself():
    assert decoded(b'data: {"type": "ping"}\n\n') == [{"type": "ping"}]


def test_data_may_be_spread_over_lines():
    assert decoded(b'data: {"type":\ndata:"ping"}\n\n') == [{"type": "ping"}]


def test_an_error_event_that_is_no_json_is_still_an_error_event():
    assert decoded(b"event: error\ndata: upstream died\n\n") == [
        {"type": "error", "error": {"message": "upstream died"}}
    ]


@pytest.mark.parametrize(
    "data", [b"{", b"nonsense", b"[1]", b'"ping"', b"\xff\xfe{}", b"null", b'{"a":' * 50_000], ids=lambda data: data[:9]
)
def test_data_that_is_no_json_object_is_a_fault_of_the_stream(data: bytes):
    with pytest.raises(StreamFault) as caught:
        decoded(b"event: message_stop\ndata: " + data + b"\n\n")
    assert caught.value.kind == PROTOCOL
    assert len(caught.value.message) < 500


def test_nothing_is_nothing():
    assert decoded(b"") == decoded(b"\n\n\n") == decoded(b"event: ping\n\n") == []
