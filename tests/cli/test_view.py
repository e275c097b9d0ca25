"""What a person sees of a run: text as it streams, tools, recoveries, a status line, and how it ended."""

import pytest

from fsm_agent.cli.entries import PLAIN_MARKS
from fsm_agent.cli.words import PLAIN, WORDS
from fsm_agent.loop.events import ContextEdit, Event, Progress, System
from fsm_agent.machine import AGENT_LOOP, Row
from tests.cli.scenes import (
    MODEL,
    as_text,
    assistant,
    call,
    printed,
    raw,
    results,
    started,
    terminal,
    text,
    tombstone,
    tool_finished,
    tool_started,
    transition,
    view,
)

TURN_WITH_TOOLS = [
    transition("preprocess", "context_ready"),
    *started(),
    *text("I look at the te", "sts.\n\nThen I mend", " them."),
    *call("t1", "read_file", '{"path": "tests/', 'test_a.py", "limit": 20}'),
    *call("t2", "run_command", '{"command": "python -m pytest -q"}'),
    assistant(
        {"type": "tool_use", "id": "t1", "name": "read_file", "input": {}},
        {"type": "tool_use", "id": "t2", "name": "run_command", "input": {}},
    ),
    transition("calling_model", "tools_requested"),
    tool_started("t1", "read_file"),
    tool_finished("t1", "read_file", 0.003),
    tool_started("t2", "run_command"),
    tool_finished("t2", "run_command", 1.26, is_error=True),
    results(("t1", "1: import a", False), ("t2", "Exit code 1\n\nE  assert 2 == 3\n1 failed\n", True)),
    transition("executing_tools", "next_turn", turn=2),
]


def test_a_turn_with_tools_reads_as_a_story():
    assert printed(TURN_WITH_TOOLS) == (
        "● I look at the tests.\n"
        "\n"
        "  Then I mend them.\n"
        "✓ read_file tests/test_a.py 20 (3 ms)\n"
        "✗ run_command python -m pytest -q (1.3 s)\n"
        "    Exit code 1\n"
        "    E  assert 2 == 3\n"
        "    1 failed\n"
    )


def test_long_paragraphs_are_wrapped_beside_their_mark():
    assert printed(text("one two three four five six"), width=14) == "● one two\n  three four\n  five six\n"


def test_recoveries_are_told_with_what_is_left_of_their_limit():
    events = [
        transition("recovering", "transport_retry", transport_retries=2),
        transition("recovering", "max_output_tokens_escalate", escalated=1),
        transition("recovering", "stop_hook_blocking", stop_hook_blocks=1, turn=2),
    ]
    assert printed(events) == (
        "↻ transport_retry: the request failed; it is sent again (2 of 10)\n"
        "↻ max_output_tokens_escalate: the reply was cut by its output limit; it\n"
        "  is asked for with a higher one\n"
        "↻ stop_hook_blocking: a stop hook objected; the model goes on (1 of 8)\n"
    )


@pytest.mark.parametrize("trigger", ["abort", "complete"])
def test_the_row_that_ends_the_run_is_left_to_the_summary(trigger: str):
    assert printed([transition("recovering", trigger, reason="x")]) == ""


def test_text_of_a_discarded_reply_is_called_withdrawn():
    events = [*started(), *text("Half an ans", stop=False), tombstone()]
    assert printed(events) == "● Half an ans\n↻ withdrawn: the text above is not part of the answer\n"


def test_a_discarded_reply_that_showed_nothing_is_not_mentioned():
    assert printed([*started(), *call("t1", "read_file", "{}"), tombstone()]) == ""


def test_errors_and_context_edits_are_told():
    events: list[Event] = [
        System(subtype="error", message="529 Overloaded"),
        System(subtype="model_fallback", message="The model a did not answer; b goes on."),
        ContextEdit(stage="autocompact", tokens_before=160_000, tokens_after=9_400, removed="14 messages"),
    ]
    assert printed(events) == (
        "✗ 529 Overloaded\n"
        "↻ The model a did not answer; b goes on.\n"
        "≡ autocompact: 14 messages (160.0k → 9.4k tokens)\n"
    )


def test_a_call_that_never_started_has_its_answer_shown():
    events = [*call("t9", "nope", "{}"), results(("t9", "There is no tool named 'nope'.", True))]
    assert printed(events) == "✗ nope\n    There is no tool named 'nope'.\n"


def test_nothing_that_a_model_or_a_tool_writes_acts_on_the_terminal():
    hostile = "\x1b[2J\x07red\r\n\x9bmore\u202e\ud800 [bold]no markup[/bold] :smile:"
    shown = printed(
        [*text(hostile), *call("t", "a\x1b[31m", '{"x": "\x1b]0;title\x07"}'), results(("t", hostile, True))]
    )
    assert not {char for char in shown if not char.isprintable()} - {"\n"}
    assert "[bold]no markup[/bold] :smile:" in shown


def test_a_terminal_without_unicode_gets_plain_marks():
    shown = printed([*TURN_WITH_TOOLS, transition("recovering", "transport_retry")], marks=PLAIN_MARKS)
    assert shown.isascii()
    assert shown.startswith("* I look")


def test_the_live_part_shows_the_open_paragraph_the_calls_at_work_and_the_status():
    shown = view()
    events = [
        *started(input_tokens=1_200),
        *call("t1", "run_command", '{"command": "make"}'),
        *call("t2", "read_file", '{"path": "a"}'),
        raw("m1", type="message_delta", usage={"output_tokens": 45}),
        transition("calling_model", "tools_requested", turn=3),
        tool_started("t1", "run_command"),
        tool_started("t2", "read_file"),
        tool_finished("t2", "read_file", 0.05),
        Progress(kind="tool_progress", tool_use_id="t1", tool="run_command", data="cc a.c\ncc b.c\n"),
        *text("And mean", "while", stop=False),
    ]
    for event in events:
        assert shown.feed(event, 10.0) == []
    assert as_text(shown.live(12.0, width=72)) == (
        "● And meanwhile\n"
        "⠋ run_command make 2.0 s · cc b.c\n"
        "✓ read_file a (50 ms)\n"
        f"⠋ turn 3 · executing tools · {MODEL} · 1.2k tokens · 0:12\n"
    )


def test_the_live_part_stays_small_whatever_comes():
    shown = view()
    for i in range(50):
        for event in (
            *call(f"t{i}", "read_file", '{"path": "' + "x" * 5_000 + '"}'),
            tool_started(f"t{i}", "read_file"),
        ):
            shown.feed(event, 0.0)
    for event in text("word " * 10_000, stop=False):
        shown.feed(event, 0.0)
    lines = as_text(shown.live(1.0, width=40), width=40).splitlines()
    assert len(lines) <= 20
    assert all(len(line) <= 40 for line in lines)
    assert "and 42 more calls" in "\n".join(lines)


def test_the_status_says_what_a_wait_is_for():
    shown = view()
    shown.feed(System(subtype="backoff", message="The request is repeated in 3.2 s."), 0.0)
    assert "The request is repeated in 3.2 s." in as_text(shown.live(0.0, width=100), width=100)
    shown.feed(transition("recovering", "transport_retry", transport_retries=1), 4.0)
    assert "calling model" in as_text(shown.live(4.0, width=100), width=100)


def test_tokens_of_each_request_are_counted_once_while_it_streams():
    shown = view()
    usage = {"input_tokens": 100, "cache_read_input_tokens": 1_000, "output_tokens": 20}
    for event in (
        *started(),
        raw("m1", type="message_delta", usage=usage),
        raw("m1", type="message_delta", usage=usage),
    ):
        shown.feed(event, 0.0)
    assert shown.tokens == 1_120
    for event in started("m2"):
        shown.feed(event, 0.0)
    assert shown.tokens == 1_221


def test_the_summary_has_reason_turns_requests_tokens_time_and_path():
    shown = view()
    for trigger in ("context_ready", "tools_requested", "next_turn") * 2:
        source = {"context_ready": "preprocess", "tools_requested": "calling_model", "next_turn": "executing_tools"}
        shown.feed(transition(source[trigger], trigger), 0.0)
    usage = {"input_tokens": 2_000, "cache_read_input_tokens": 8_000, "output_tokens": 345}
    shown.feed(terminal("max_turns", "The limit of 2 turns is reached.", **usage), 64.0)
    assert as_text(shown.summary(64.0)) == (
        "\n"
        "reason   max_turns\n"
        "detail   The limit of 2 turns is reached.\n"
        "turns    2\n"
        "requests 3\n"
        "tokens   10,345 (10,000 in, 8,000 of them cached, 345 out)\n"
        "time     1:04\n"
        "path     2 x (context_ready → tools_requested → next_turn)\n"
    )


def test_an_error_that_was_shown_is_not_repeated_in_the_summary():
    shown = view()
    shown.feed(System(subtype="error", message="401 no such key"), 0.0)
    shown.feed(terminal("model_error", "401 no such key"), 1.0)
    assert "detail" not in as_text(shown.summary(1.0))


@pytest.mark.parametrize("row", [row for row in AGENT_LOOP.rows if row.reason is None], ids=lambda row: row.trigger)
def test_every_row_that_goes_on_is_plain_or_has_words(row: Row):
    assert (row.trigger in PLAIN) != (row.trigger in WORDS)
