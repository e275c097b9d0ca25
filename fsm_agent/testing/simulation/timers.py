"""The timers of a simulated loop, by deadline and then by the order in which they were set."""

import asyncio
import heapq
import itertools
import math


class Timers:
    """A heap of timers. Cancelled ones are dropped when they are met, or when they are the most."""

    def __init__(self) -> None:
        self.heap: list[tuple[float, int, asyncio.TimerHandle]] = []
        """The deadlines, cancelled ones among them; the first is the earliest."""
        self._numbers = itertools.count()
        self._cancelled = 0

    def add(self, timer: asyncio.TimerHandle) -> None:
        """Sets the timer."""
        heapq.heappush(self.heap, (timer.when(), next(self._numbers), timer))

    def note_cancelled(self) -> None:
        """Takes notice that one of the timers has been cancelled."""
        self._cancelled += 1
        if self._cancelled > 100 and self._cancelled * 2 > len(self.heap):
            self.heap = [entry for entry in self.heap if not entry[2].cancelled()]
            heapq.heapify(self.heap)
            self._cancelled = 0

    def next_deadline(self) -> float:
        """The deadline of the next timer that will fire; infinite if there is none."""
        while self.heap and self.heap[0][2].cancelled():
            heapq.heappop(self.heap)
        return self.heap[0][0] if self.heap else math.inf

    def pop_due(self, limit: float) -> list[asyncio.TimerHandle]:
        """Takes out the timers of the next deadline, if that is not after `limit`. They are tied."""
        deadline = self.next_deadline()
        tied: list[asyncio.TimerHandle] = []
        while deadline <= limit and self.heap and self.heap[0][0] == deadline:
            timer = heapq.heappop(self.heap)[2]
            if not timer.cancelled():
                tied.append(timer)
        return tied

    def live(self) -> list[asyncio.TimerHandle]:
        """The timers that will fire, in their order."""
        return [timer for when, _, timer in sorted(self.heap) if not timer.cancelled() and when < math.inf]
