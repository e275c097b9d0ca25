"""Drivers: one scenario, disturbed once at each of its points.

`abort_points` calls something at every suspension point of a program, `every_event` runs a program once for every
fault at every event of a script. Both are `each_point` over their own kind of point; *kill at every effect* (points:
the effect keys of a journal) and *cut at every byte* (points: the lengths of a journal file) join them in the same
way.
"""

import asyncio
import math
from collections.abc import Callable, Collection, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, Protocol, TypeVar

from fsm_agent.testing.simulation.choices import FIFO, Choices
from fsm_agent.testing.simulation.patience import Patience
from fsm_agent.testing.simulation.run import simulate
from fsm_agent.testing.simulation.virtual_loop import MAX_STEPS

P = TypeVar("P")


class Scenario(Protocol):
    """A program that can be disturbed. A fresh one is made for every run."""

    def start(self) -> Coroutine[Any, Any, object]:
        """The program. It ends by checking, with `assert`, what must hold wherever it was disturbed."""
        ...

    def inject(self) -> None:
        """The disturbance, such as `run.abort()` or `task.cancel()`. The loop calls it once, between two steps."""
        ...


@dataclass(frozen=True)
class Failure(Generic[P]):
    """A point at which the disturbed scenario failed."""

    point: P
    error: BaseException

    def __str__(self) -> str:
        notes = "".join(f"\n{note}" for note in getattr(self.error, "__notes__", ()))
        text = f"{type(self.error).__name__}: {self.error}{notes}"
        return f"at {self.point}: " + text.replace("\n", "\n    ")


@dataclass(frozen=True)
class DriverReport(Generic[P]):
    """What a driver found: `assert report.ok, report`."""

    driver: str
    points: tuple[P, ...]
    """The points at which the scenario was disturbed."""
    failures: tuple[Failure[P], ...]
    missed: tuple[P, ...] = ()
    """Points that the run did not reach: its order differs from run to run, as that of real sockets does."""

    @property
    def ok(self) -> bool:
        """Whether at least one point was tried and none failed."""
        return bool(self.points) and not self.failures

    def __str__(self) -> str:
        missed = f", {len(self.missed)} not reached" if self.missed else ""
        head = f"{self.driver}: {len(self.points)} points, {len(self.failures)} failed{missed}"
        return "\n".join([head, *(f"  {failure}" for failure in self.failures)])


def each_point(driver: str, points: Iterable[P], run: Callable[[P], bool]) -> DriverReport[P]:
    """Calls `run(point)` for each point. It raises if the scenario fails, and says whether the point was reached."""
    tried: list[P] = []
    missed: list[P] = []
    failures: list[Failure[P]] = []
    for point in points:
        reached = True
        try:
            reached = run(point)
        except (Exception, asyncio.CancelledError) as error:
            failures.append(Failure(point, error))
        (tried if reached else missed).append(point)
    return DriverReport(driver, tuple(tried), tuple(failures), tuple(missed))


def abort_points(
    make_scenario: Callable[[], Scenario],
    *,
    choices: Choices = FIFO,
    points: Collection[int] | None = None,
    at_most: int | None = None,
    max_steps: int = MAX_STEPS,
    max_time: float = math.inf,
    patience: Patience | None = None,
) -> DriverReport[int]:
    """Runs a scenario once undisturbed, and then once for each of its suspension points, calling `inject()` there.

    A suspension point is the moment before a step of the loop (a callback, or a jump of the clock: a sleeping program
    is disturbed in its sleep) at which the program has begun, has not ended and does not run. `at_most` of them are
    tried, evenly spaced, if given; `points` names them instead. All runs take the same `choices`.

    Raises what the undisturbed scenario raises: it has to pass first.
    """

    def run(scenario: Scenario, point: int | None) -> tuple[int, bool]:
        reached = False

        def inject() -> None:
            nonlocal reached
            reached = True
            scenario.inject()

        simulation = simulate(
            scenario.start,
            choices=choices,
            max_steps=max_steps,
            max_time=max_time,
            patience=patience,
            before_step=None if point is None else {point: inject},
        )
        return simulation.steps, reached

    steps, _ = run(make_scenario(), None)
    chosen = _evenly(range(1, steps), at_most) if points is None else sorted(points)
    return each_point("abort at every suspension point", chosen, lambda point: run(make_scenario(), point)[1])


def _evenly(points: Sequence[int], at_most: int | None) -> Sequence[int]:
    if at_most is None or len(points) <= at_most:
        return points
    return [points[index * len(points) // at_most] for index in range(at_most)]


class FaultKind(StrEnum):
    """What can take the place of an event of a stream."""

    EOF = "eof"
    """The connection ends in good order."""
    RESET = "reset"
    """The connection breaks."""
    ERROR = "error"
    """An error event arrives instead."""
    SILENCE = "silence"
    """Nothing arrives any more, and the connection stays open."""


@dataclass(frozen=True)
class EventFault:
    """`kind` in the place of event number `event` (from 0)."""

    event: int
    kind: FaultKind

    def __str__(self) -> str:
        return f"event {self.event} ({self.kind})"


def every_event(
    scenario: Callable[[EventFault], Coroutine[Any, Any, object]],
    *,
    events: int,
    kinds: Iterable[FaultKind] = tuple(FaultKind),
    choices: Choices = FIFO,
    max_steps: int = MAX_STEPS,
    max_time: float = math.inf,
    patience: Patience | None = None,
) -> DriverReport[EventFault]:
    """Runs a scenario once for each kind of fault at each of its `events` events.

    `scenario(fault)` plays its script with the fault in it, and ends by checking what must hold whatever the fault was.
    """

    def run(fault: EventFault) -> bool:
        simulate(lambda: scenario(fault), choices=choices, max_steps=max_steps, max_time=max_time, patience=patience)
        return True

    kinds = tuple(kinds)
    faults = [EventFault(event, kind) for event in range(events) for kind in kinds]
    return each_point("every stream event replaced", faults, run)
