"""`--json`: one event a line, strict JSON in UTF-8, whatever is in the events."""

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsm_agent.cli.lines import LineWriter, event_line
from fsm_agent.loop.events import Progress
from tests.cli.scenes import raw, terminal


def strict(line: bytes) -> Any:
    def refuse(name: str) -> None:
        raise AssertionError(name)

    return json.loads(line.decode("utf-8", errors="strict"), parse_constant=refuse)


def test_the_terminal_line_has_the_promised_fields():
    assert strict(event_line(terminal(input_tokens=5))).keys() == {
        "type",
        "reason",
        "detail",
        "text",
        "turns",
        "requests",
        "usage",
    }


@given(st.text() | st.floats() | st.dictionaries(st.text(), st.floats()) | st.just(object()))
def test_any_data_of_a_tool_makes_one_line_of_strict_json(data: object):
    line = event_line(Progress(kind="tool_progress", tool_use_id="t", tool="x", data=data))
    assert line.count(b"\n") == 1
    assert strict(line)["tool"] == "x"


def test_lone_surrogates_do_not_break_a_line():
    assert strict(event_line(raw("m", text="a\ud800b")))["event"] == {"text": "a?b"}


def test_each_line_is_flushed_so_that_a_reader_sees_it_at_once():
    flushed: list[bytes] = []

    class Pipe(io.BytesIO):
        def flush(self) -> None:
            flushed.append(self.getvalue())

    LineWriter(Pipe()).show(terminal())
    assert flushed[-1].endswith(b"\n")


def test_a_reader_that_went_away_is_noticed():
    class Closed(io.BytesIO):
        def write(self, _: object) -> int:
            raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        LineWriter(Closed()).show(terminal())
