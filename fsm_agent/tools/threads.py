"""Functions that block run in threads of their own, so that the event loop goes on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Final, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class DaemonThreads(Executor):
    """One daemon thread per job: a job that never returns blocks neither another job nor the interpreter's exit.

    The standard `ThreadPoolExecutor` joins its threads at exit. How many jobs there may be at once is bounded by who
    submits them (`LoopLimits.max_concurrent_tools`).
    """

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Start the job now. What it raises, whatever it is, is in the future."""
        future: Future[T] = Future()

        def job() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                result = fn(*args, **kwargs)
            except BaseException as fault:  # a thread has nobody else to tell
                future.set_exception(fault)
            else:
                future.set_result(result)

        threading.Thread(target=job, name="fsm_agent tool", daemon=True).start()
        return future


DAEMON_THREADS: Final = DaemonThreads()
