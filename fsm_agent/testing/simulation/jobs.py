"""Executor jobs of a simulated loop: they run in real threads, and their results arrive when the loop asks for them."""

import asyncio
import concurrent.futures
from collections.abc import Callable
from typing import Any


class Jobs:
    """The jobs of one loop, in the order of their submission.

    Threads end in an order that nobody can repeat. A completion is therefore not delivered when it happens but when the
    loop has nothing else to do, and which one comes first is a choice point.
    """

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._waited: dict[concurrent.futures.Future[Any], asyncio.Future[Any]] = {}
        self._abandoned: set[concurrent.futures.Future[Any]] = set()

    def submit(
        self, executor: concurrent.futures.Executor, target: "asyncio.Future[Any]", func: Callable[..., Any], *args: Any
    ) -> None:
        """Starts `func(*args)` in the executor; its outcome will be set on `target`, on delivery."""
        job = executor.submit(func, *args)
        self._waited[job] = target
        target.add_done_callback(lambda _: self._forget(job))
        job.add_done_callback(lambda _: self._wake())  # in the thread of the job

    @property
    def finished(self) -> int:
        """How many jobs have finished and wait to be delivered."""
        return sum(job.done() for job in self._waited)

    @property
    def running(self) -> int:
        """How many jobs that somebody waits for have not finished."""
        return sum(not job.done() for job in self._waited)

    @property
    def abandoned(self) -> int:
        """How many jobs still run though nobody waits for them any more: a thread cannot be cancelled."""
        return sum(not job.done() for job in self._abandoned)

    def deliver(self, choose: Callable[[int], int]) -> None:
        """Sets the outcome of one finished job, chosen by `choose`, on the future that waits for it."""
        ready = [job for job in self._waited if job.done()]
        job = ready[choose(len(ready))]
        target = self._waited.pop(job)
        if job.cancelled():
            target.cancel()
        elif (error := job.exception()) is not None:
            target.set_exception(_settable(error))
        else:
            target.set_result(job.result())

    def _forget(self, job: concurrent.futures.Future[Any]) -> None:
        if self._waited.pop(job, None) is not None and not job.cancel():
            self._abandoned.add(job)


def _settable(error: BaseException) -> BaseException:
    # A future refuses StopIteration: it would silently end the coroutine that awaits it.
    if isinstance(error, StopIteration):
        wrapped = RuntimeError("The executor job raised StopIteration.")
        wrapped.__cause__ = error
        return wrapped
    return error
