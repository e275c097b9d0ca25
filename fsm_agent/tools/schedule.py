"""Which calls of a message may start now. Pure: a batch asks again whenever a call came, started or ended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Protocol


class Stage(Enum):
    """Where a call is."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"


class Place(Protocol):
    """What is known of one call, in the order of the calls."""

    @property
    def stage(self) -> Stage: ...
    @property
    def exclusive(self) -> bool:
        """It runs alone: after all calls before it, before all calls after it."""
        ...

    @property
    def repeatable(self) -> bool:
        """It may start before the message is accepted."""
        ...


def startable(places: Iterable[Place], *, accepted: bool, at_once: int) -> Iterator[int]:
    """The positions of the calls that may start now, at most `at_once` running together, in order.

    - A call that is not safe beside others waits for all before it, and holds all after it.
    - While the message still streams (`accepted` is false) only calls that may be repeated start, and none overtakes
      one that may not.
    """
    running = 0
    for position, place in enumerate(places):
        if place.stage is Stage.DONE:
            continue
        if place.stage is Stage.RUNNING:
            running += 1
            if place.exclusive:
                return
            continue
        if running >= at_once or not (accepted or place.repeatable):
            return
        if place.exclusive:
            # An exclusive call is never started early: it may be repeated, yet what follows it may change its world.
            if running == 0 and accepted:
                yield position
            return
        running += 1
        yield position
