"""Watches over a stream that may go silent."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

from fsm_agent.model.faults import STALL, StreamFault

__all__ = ["SilenceWatch"]


class SilenceWatch:
    """Ends the waiting of the current task with `StreamFault("stall")` when a stream says nothing for too long.

    `idle` seconds without a sign of life, or `progress` seconds with nothing but signs of life (pings). Only the time
    between `waiting()` and `heard()` counts: a slow consumer is no silence. There is one timer, and it is set again
    only when it runs out, so that an event costs two looks at the clock.
    """

    def __init__(self, *, idle: float, progress: float) -> None:
        self._idle = idle
        self._progress = progress
        self._loop = asyncio.get_running_loop()
        self._clock = self._loop.time
        self._since: float | None = None
        self._waited = 0.0
        self._fault: StreamFault | None = None

    def waiting(self) -> None:
        """From now on the stream is waited for."""
        self._since = self._clock()

    def heard(self, *, progress: bool) -> None:
        """The stream said something. Without `progress` it was only a sign of life."""
        if progress:
            self._waited = 0.0
        elif self._since is not None:
            self._waited += self._clock() - self._since
        self._since = None

    def __enter__(self) -> Self:
        task = asyncio.current_task()
        assert task is not None
        self._task = task
        self._cancels_before = task.cancelling()
        self._timer = self._loop.call_later(min(self._idle, self._progress), self._look)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()
        if self._fault is None:
            return
        # As in asyncio.timeout: the cancellation was ours, unless somebody else asked for one too.
        others = self._task.uncancel() > self._cancels_before
        if kind is not None and issubclass(kind, asyncio.CancelledError) and not others:
            raise self._fault from None

    def _look(self) -> None:
        """The timer ran out: was it silent all the time?"""
        now = self._clock()
        if self._since is None:
            self._again(now + min(self._idle, self._progress))
            return
        quiet_at, stuck_at = self._since + self._idle, self._since + self._progress - self._waited
        if now < min(quiet_at, stuck_at):
            self._again(min(quiet_at, stuck_at))
        elif self._task.cancelling() <= self._cancels_before:
            # The task waits for the stream at this moment, so the cancellation cannot hit anything else.
            text = f"Nothing came over the stream for {self._idle:g} s."
            if quiet_at > now:
                text = f"Nothing but pings came over the stream for {self._progress:g} s."
            self._fault = StreamFault(STALL, text)
            self._task.cancel()

    def _again(self, when: float) -> None:
        self._timer = self._loop.call_at(when, self._look)
