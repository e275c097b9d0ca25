"""Where a run is shown: a live part on terminals, plain lines elsewhere."""

import io

import pytest
from rich.console import Console

from fsm_agent.cli.screen import Screen
from tests.cli.scenes import started, text, view


@pytest.fixture(autouse=True)
def able_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")


def console(*, terminal: bool) -> Console:
    return Console(file=io.StringIO(), width=80, force_terminal=terminal, color_system=None, legacy_windows=False)


def written(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


async def test_a_file_gets_each_whole_paragraph_at_once_and_no_status():
    target = console(terminal=False)
    async with Screen(target, view(), clock=lambda: 0.0) as screen:
        for event in (*started(), *text("one\ntw", stop=False)):
            screen.show(event)
        assert written(target) == "● one\n"
        for event in text("o"):
            screen.show(event)
    assert written(target) == "● one\n  two\n"


async def test_a_terminal_is_drawn_by_frames_not_by_events():
    target = console(terminal=True)
    async with Screen(target, view(), clock=lambda: 0.0) as screen:
        screen.paint()
        before = written(target)
        for event in [*started(), *text("one\ntw", stop=False)]:
            screen.show(event)
        assert written(target) == before
        screen.paint()
        drawn = written(target)[len(before) :]
    assert "● one" in drawn
    assert "tw" in drawn
    assert "turn 1 · preprocess" in drawn


async def test_a_terminal_is_left_as_it_was_with_the_cursor_visible():
    target = console(terminal=True)
    async with Screen(target, view(), clock=lambda: 0.0) as screen:
        for event in text("the end"):
            screen.show(event)
        screen.say("ending")
        screen.paint()
    hidden, shown = written(target).rfind("\x1b[?25l"), written(target).rfind("\x1b[?25h")
    assert 0 <= hidden < shown
    assert "● the end" in written(target)


async def test_a_terminal_that_cannot_move_its_cursor_gets_plain_lines(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TERM", "dumb")
    target = console(terminal=True)
    async with Screen(target, view(), clock=lambda: 0.0) as screen:
        for event in text("the end"):
            screen.show(event)
        screen.paint()
    assert written(target) == "● the end\n"
