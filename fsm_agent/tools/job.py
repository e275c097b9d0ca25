"""Code of others, run in a task of its own and bounded in time: it can neither raise through us nor hold us up."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeAlias, TypeVar

from fsm_agent.log import logger

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Returned(Generic[T]):
    """It ended with a value."""

    value: T


@dataclass(frozen=True, slots=True)
class Raised:
    """It ended with an exception; a cancellation is one too."""

    fault: BaseException


Ending: TypeAlias = Returned[T] | Raised

_LEFT_BEHIND: Final[set[asyncio.Task[Any]]] = set()
"""Tasks that went on although they were cancelled. The event loop itself holds tasks only weakly."""


class Job(Generic[T]):
    """A task whose end is a value: it never raises, not even `SystemExit`, which would end the event loop."""

    def __init__(
        self, work: Callable[[], Awaitable[T]], *, name: str, on_stop: Callable[[], None] | None = None
    ) -> None:
        """Start it. `on_stop` is called before it is cancelled."""
        self.stopped = False
        """It was cancelled by us: what it ended with came after that."""
        self._on_stop = on_stop
        self._task = asyncio.create_task(_ending_of(work), name=name)

    @property
    def ending(self) -> Ending[T] | None:
        """How it ended, or None while it has not."""
        if not self._task.done():
            return None
        if self._task.cancelled():  # before its first step
            return Raised(asyncio.CancelledError())
        return self._task.result()

    async def within(self, seconds: float, *, grace: float) -> Ending[T] | None:
        """Wait for the end; None when the time is over. If we are cancelled, or out of time, the job is stopped."""
        try:
            await asyncio.wait({self._task}, timeout=None if seconds == float("inf") else seconds)
        except asyncio.CancelledError:
            if not self._task.done():
                await self._stop(grace)
            raise
        if self._task.done():
            return self.ending
        await self._stop(grace)
        return None

    async def _stop(self, grace: float) -> None:
        """Cancel it and wait `grace` seconds for its clean-up; then it is left behind, its result dropped.

        A cancellation of ours in that time does not shorten the wait (the clean-up has begun), a second one does.
        """
        self.stopped = True
        if self._on_stop is not None:
            self._on_stop()
        self._task.cancel()
        clock = asyncio.get_running_loop()
        until = clock.time() + grace
        try:
            await asyncio.wait({self._task}, timeout=grace)
        except asyncio.CancelledError:
            if not self._task.done():
                await asyncio.wait({self._task}, timeout=max(0.0, until - clock.time()))
            raise
        finally:
            if not self._task.done():
                self._leave_behind()

    def _leave_behind(self) -> None:
        logger.warning("left_behind", task=self._task.get_name())
        _LEFT_BEHIND.add(self._task)
        self._task.add_done_callback(_came_late)


async def _ending_of(work: Callable[[], Awaitable[T]]) -> Ending[T]:
    try:
        return Returned(await work())
    except BaseException as fault:  # told to whoever asks how it ended
        return Raised(fault)


def _came_late(task: asyncio.Task[Any]) -> None:
    _LEFT_BEHIND.discard(task)
    logger.debug("late_result_dropped", task=task.get_name())
