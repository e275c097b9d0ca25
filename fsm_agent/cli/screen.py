"""Where a run is shown: a terminal with a live part, anything else line by line."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from types import TracebackType
from typing import Final

from rich.console import Console, RenderableType
from rich.live import Live

from fsm_agent.cli.view import RunView
from fsm_agent.loop.events import Event

FRAME: Final = 0.08
"""Seconds between two drawings. Events only change the view, so that a fast stream costs no drawing per token."""


class Screen:
    """Shows a view on a console for as long as the `async with` lasts."""

    def __init__(self, console: Console, view: RunView, clock: Callable[[], float] = time.monotonic) -> None:
        self.console = console
        self.view = view
        self.clock = clock
        self._waiting: list[RenderableType] = []
        self._live: Live | None = None
        self._painter: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Screen:
        if self.console.is_terminal and not self.console.is_dumb_terminal:
            self._live = Live(console=self.console, auto_refresh=False, transient=True)
            self._live.start()
            self._painter = asyncio.create_task(self._paint_on(), name="fsm_agent screen")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._painter is not None:
            self._painter.cancel()
            await asyncio.wait({self._painter})
        self._print()
        if self._live is not None:
            self._live.update("")
            self._live.stop()

    def show(self, event: Event) -> None:
        """Take an event. On a terminal it is seen with the next frame."""
        self._waiting += self.view.feed(event, self.clock())
        if self._live is None:
            self._print()

    def say(self, notice: str) -> None:
        """A word in the status line."""
        self.view.notice = notice

    async def _paint_on(self) -> None:
        while True:
            self.paint()
            await asyncio.sleep(FRAME)

    def paint(self) -> None:
        """Draw one frame."""
        self._print()
        if self._live is not None:
            self._live.update(self.view.live(self.clock(), width=self.console.width), refresh=True)

    def _print(self) -> None:
        waiting, self._waiting = self._waiting, []
        if waiting:
            self.console.print(*waiting, sep="\n", markup=False, highlight=False)
