"""Running to the end from code that is not async.

Each thread has one event loop, made when it is first needed and kept for its life: the connections of a client belong
to the loop that made them, so a client that serves `run_sync` twice must meet the same loop.
"""

from __future__ import annotations

import asyncio
import atexit
import contextvars
import os
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _ThreadLoop:
    """The event loop of one thread. It ends with its thread, or with the interpreter."""

    def __init__(self) -> None:
        self.process = os.getpid()
        # With a factory the loop does not become the thread's current one, which is its owner's to choose.
        self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        # A runner would go on with the context variables of its first run.
        return self._runner.run(work, context=contextvars.copy_context())

    def close(self) -> None:
        if self.process != os.getpid():
            return  # made before a fork: its sockets are the parent's
        self._runner.run(_others_ended())
        self._runner.close()

    def __del__(self) -> None:
        self.close()


async def _others_ended() -> None:
    """What garbage collection left to the loop (clients to be closed) gets its time."""
    await asyncio.sleep(0)
    others = asyncio.all_tasks() - {asyncio.current_task()}
    if others:
        await asyncio.wait(others, timeout=1)


class _Loops(threading.local):
    held: _ThreadLoop | None = None


_LOOPS = _Loops()
_OF_OTHER_PROCESSES: list[_ThreadLoop] = []


def run_blocking(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run this to its end in the event loop of this thread, with the caller's context variables.

    An interrupt (Ctrl-C) cancels the work, waits for its clean-up and raises `KeyboardInterrupt`.
    """
    held = _LOOPS.held
    if held is not None and held.process != os.getpid():
        _OF_OTHER_PROCESSES.append(held)
        held = None
    if held is None:
        held = _LOOPS.held = _ThreadLoop()
    return held.run(work())


@atexit.register
def _close() -> None:
    """The main thread's loop: at the interpreter's end it is too late for `__del__`."""
    held, _LOOPS.held = _LOOPS.held, None
    del held
