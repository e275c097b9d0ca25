"""Hands the events of a run to its consumer, one at a time.

Nothing is produced that was not asked for: the producer goes on only when the consumer asks for the next event. So
there is no buffer that could grow, and a consumer that stops stops production.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Channel(Generic[T]):
    """A rendezvous between one producer and one consumer of the same event loop."""

    __slots__ = ("_delivery", "_ready", "_wanted", "listening")

    def __init__(self) -> None:
        self.listening = True
        """False once nobody wants the events: `emit` then returns at once."""
        self._ready: deque[T] = deque()
        self._delivery: asyncio.Future[T | None] | None = None
        self._wanted: asyncio.Future[None] | None = None

    async def emit(self, event: T) -> None:
        """Deliver an event, and wait until the next one is asked for."""
        await self._demand()
        delivery, self._delivery = self._delivery, None
        if not self.listening or delivery is None:
            return
        if not delivery.done():
            delivery.set_result(event)
        await self._demand()

    async def emit_all(self, events: Iterable[T]) -> None:
        """Deliver events (one or more) that are there already, and wait until one more is asked for.

        The consumer takes them without a change of task between them.
        """
        first, *rest = events
        await self._demand()
        delivery, self._delivery = self._delivery, None
        if not self.listening or delivery is None:
            return
        self._ready.extend(rest)
        if not delivery.done():
            delivery.set_result(first)
        await self._demand()

    def ready(self) -> T | None:
        """An event that can be had without waiting, if there is one."""
        return self._ready.popleft() if self._ready else None

    async def _demand(self) -> None:
        if self._delivery is not None or not self.listening:
            return
        self._wanted = asyncio.get_running_loop().create_future()
        try:
            await self._wanted
        finally:
            self._wanted = None

    def request(self) -> asyncio.Future[T | None]:
        """Ask for the next event; None says that there is none any more."""
        self._delivery = asyncio.get_running_loop().create_future()
        self._wake()
        return self._delivery

    def stop_listening(self) -> None:
        """From now on events are dropped, and the producer never waits. Who waits for one is told that none comes."""
        self.listening = False
        self._ready.clear()
        self._answer(None)
        self._wake()

    def producer_ended(self, task: asyncio.Task[Any]) -> None:
        """Done callback of the producer's task: nobody may wait for an event that cannot come any more."""
        self.listening = False
        self._answer(None if task.cancelled() else task.exception())

    def _answer(self, error: BaseException | None) -> None:
        delivery, self._delivery = self._delivery, None
        if delivery is None or delivery.done():
            return
        if error is None:
            delivery.set_result(None)
        else:
            delivery.set_exception(error)

    def _wake(self) -> None:
        if self._wanted is not None and not self._wanted.done():
            self._wanted.set_result(None)
