"""Runs a program on a fresh simulated loop, to its end and to nothing left."""

import asyncio
import contextlib
import gc
import math
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import FrameType
from typing import Any, Generic, TypeVar

from fsm_agent.testing.simulation.choices import FIFO, Choices, Schedule
from fsm_agent.testing.simulation.errors import BackgroundFailure, LeftBehind, SimulationError
from fsm_agent.testing.simulation.patience import Patience
from fsm_agent.testing.simulation.virtual_loop import MAX_STEPS, VirtualLoop
from fsm_agent.testing.simulation.waiting import describe_frame, describe_handle, describe_task

T = TypeVar("T")

_STEPS_TO_WIND_UP = 100_000


@dataclass(frozen=True)
class Simulation(Generic[T]):
    """What a simulated run was."""

    result: T
    """What the program returned."""
    elapsed: float
    """Virtual seconds from its start to its end."""
    steps: int
    """Callbacks executed, and jumps of the clock, until its end."""
    schedule: Schedule
    """The order that it ran in: with this schedule it runs so again."""


def simulate(
    program: Callable[[], Coroutine[Any, Any, T]],
    *,
    choices: Choices = FIFO,
    max_steps: int = MAX_STEPS,
    max_time: float = math.inf,
    patience: Patience | None = None,
    before_step: Mapping[int, Callable[[], object]] | None = None,
) -> Simulation[T]:
    """Runs the coroutine function `program` on a fresh loop with a virtual clock, in the order that `choices` describe.

    `max_steps` bounds the callbacks of the run, `max_time` its virtual seconds; `patience` says how long, really, to
    wait for the outside world; `before_step` are calls made just before a step, unless the program has ended.

    Raises what the program raises. If it hangs, `Deadlock`, `Livelock` or `OutOfTime`. If it ends but leaves a task, a
    timer, an unfinished asynchronous generator, a watched socket or an executor job behind, `LeftBehind`; if the loop's
    exception handler was called, `BackgroundFailure`. `SimulationError` inside a running loop. A note on the exception
    has the schedule that repeats the run.

    >>> import asyncio
    >>> async def program():
    ...     async with asyncio.timeout(600):
    ...         await asyncio.sleep(599.5)
    ...     return "in time"
    >>> run = simulate(program)
    >>> run.result, run.elapsed
    ('in time', 599.5)
    """
    _expect_no_loop()
    loop = VirtualLoop(choices, max_steps=max_steps, max_time=max_time, patience=patience)
    failures: list[dict[str, Any]] = []
    loop.set_exception_handler(lambda _, context: failures.append(context))
    ended = 0

    async def watched() -> T:
        nonlocal ended
        try:
            return await program()
        finally:
            ended = loop.steps

    try:
        main = loop.create_task(watched(), name="main")
        for step, call in (before_step or {}).items():
            loop.call_before_step(step, _unless_done(main, call))
        result: T = loop.run_until_complete(main)
        run = Simulation(result, loop.time(), ended, loop.order.schedule)
        expect_nothing_left(loop)
        expect_no_failure(failures)
    except BaseException as error:
        error.add_note(_note(loop, [] if isinstance(error, BackgroundFailure) else failures))
        raise
    else:
        return run
    finally:
        wind_up(loop)


def _expect_no_loop() -> None:
    with contextlib.suppress(RuntimeError):
        asyncio.get_running_loop()
        raise SimulationError(
            "simulate() makes its own event loop and cannot be called inside a running one: "
            "call it from a plain function (a test without `async`), or await the program itself."
        )


def _unless_done(main: "asyncio.Task[Any]", call: Callable[[], object]) -> Callable[[], None]:
    def guarded() -> None:
        if not main.done():
            call()

    return guarded


def _note(loop: VirtualLoop, failures: list[dict[str, Any]]) -> str:
    head = f"Simulated {loop.time():g} s in {loop.steps} steps. The same again: choices={loop.order.schedule!r}"
    return "\n  ".join([head, *loop.order.story, *(f"Besides: {_told(failure)}" for failure in failures)])


def _told(failure: dict[str, Any]) -> str:
    return f"{failure['message']}: {failure.get('exception')!r}"


def expect_nothing_left(loop: VirtualLoop) -> None:
    """Lets end what is about to, and raises `LeftBehind` for what is not."""
    loop.settle()
    if loop.has_unseen_error() or _left(loop):
        gc.collect()  # what only a reference cycle keeps is not left behind, but speaks up if it failed
        loop.settle()
    if left := _left(loop):
        raise LeftBehind("The program ended and left behind:\n" + "\n".join(left))


def _left(loop: VirtualLoop) -> list[str]:
    left = [f"  - {describe_task(task)}" for task in loop.unfinished_tasks()]
    left += [f"  - a timer due at {timer.when():g} s for {describe_handle(timer)}" for timer in loop.timers.live()]
    left += [f"  - an asynchronous generator suspended {describe_frame(frame)}" for frame in _open_generators(loop)]
    left += [f"  - file descriptor {descriptor}, still watched" for descriptor in loop.watched()]
    if jobs := loop.running_jobs():
        left.append(f"  - {jobs} executor job{'s' if jobs > 1 else ''}, still running")
    return left


def _open_generators(loop: VirtualLoop) -> list[FrameType]:
    known: list[Any] = list(getattr(loop, "_asyncgens", ()))  # all that were begun and still exist
    return [generator.ag_frame for generator in known if generator.ag_frame is not None]


def expect_no_failure(failures: list[dict[str, Any]]) -> None:
    """Raises `BackgroundFailure` if the loop's exception handler was given these."""
    if failures:
        told = "\n".join(f"  - {_told(failure)}" for failure in failures)
        raise BackgroundFailure(f"The loop's exception handler was called:\n{told}") from failures[0].get("exception")


def _ignore(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """What is said about the ruins of a failed program is of no use."""


def wind_up(loop: VirtualLoop) -> None:
    """Ends what a failed program left, so that it does not speak up in a later test, and closes the loop."""
    loop.set_exception_handler(_ignore)
    loop.allow_steps(_STEPS_TO_WIND_UP)
    with contextlib.suppress(SimulationError):
        if tasks := loop.unfinished_tasks():
            for task in tasks:
                task.cancel()
            loop.run_until_complete(asyncio.wait(tasks))
        if _open_generators(loop):
            loop.run_until_complete(loop.shutdown_asyncgens())
    pool: ThreadPoolExecutor | None = getattr(loop, "_default_executor", None)
    if pool is not None:
        pool.shutdown(wait=not loop.running_jobs(), cancel_futures=True)
    loop.close()
