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
    known = list(places)
    running = [place for place in known if place.stage is Stage.RUNNING]
    if any(place.exclusive for place in running):
        return
    occupied = len(running)
    for position, place in enumerate(known):
        if place.stage is not Stage.WAITING:
            continue
        if occupied >= at_once or not (accepted or place.repeatable):
            return
        if place.exclusive:
            # Never early: it may be repeated, yet what was said before it may still be taken back.
            if accepted and occupied == 0:
                yield position
            return
        occupied += 1
        yield position
