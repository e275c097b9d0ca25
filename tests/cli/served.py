"""The command line in this process, and the scripted Messages API in a thread beside it."""

import asyncio
import sys
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import pytest

from fsm_agent.cli import main
from fsm_agent.testing.server import MessagesServer


class Done(NamedTuple):
    """What a call of the command line came to."""

    code: int
    out: str
    err: str


class Caller:
    """Calls `fsm-agent` as the shell would."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.monkeypatch = monkeypatch
        self.capsys = capsys

    def __call__(self, *arguments: str) -> Done:
        self.monkeypatch.setattr(sys, "argv", ["fsm-agent", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = self.capsys.readouterr()
        code = ended.value.code
        assert isinstance(code, int)
        return Done(code, captured.out, captured.err)


@contextmanager
def served(script: Sequence[object]) -> Generator[MessagesServer]:
    """A server that plays the script, on a loop and thread of its own."""
    ready: list[MessagesServer] = []
    up, loop = threading.Event(), asyncio.new_event_loop()
    stop = asyncio.Event()

    async def serve() -> None:
        try:
            async with MessagesServer(script, strict=False) as server:  # type: ignore[arg-type]
                ready.append(server)
                up.set()
                await stop.wait()
        finally:
            up.set()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    try:
        up.wait()
        yield ready[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()
