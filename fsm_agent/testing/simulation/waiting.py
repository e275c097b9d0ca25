"""Says in words what a task waits for: the text of a deadlock, a livelock, a task left behind."""

import asyncio
import functools
import gc
import linecache
import types
from collections.abc import Iterable
from pathlib import Path
from typing import Any

_ASYNCIO = str(Path(asyncio.__file__).parent)


def describe_tasks(tasks: Iterable["asyncio.Task[Any]"]) -> str:
    """One line per task, in the order of their names."""
    lines = sorted((natural(task.get_name()), describe_task(task)) for task in tasks)
    return "\n".join(f"  - {line}" for _, line in lines)


def describe_task(task: "asyncio.Task[Any]") -> str:
    """Name, the line where the task's own code stands, and what it waits for."""
    frames = _await_chain(task.get_coro())
    own = [frame for frame in frames if not frame.f_code.co_filename.startswith(_ASYNCIO)]
    place = describe_frame(own[-1]) if own else "in asyncio"
    return f"task {task.get_name()!r} {place}, waiting for {_awaited(task, frames)}"


def describe_frame(frame: types.FrameType) -> str:
    """Function, file, line and the text of the line."""
    code = frame.f_code
    text = linecache.getline(code.co_filename, frame.f_lineno).strip()
    where = f"in {code.co_qualname} ({Path(code.co_filename).name}:{frame.f_lineno}"
    return f"{where}: {text})" if text else f"{where})"


def describe_handle(handle: asyncio.Handle) -> str:
    """The name of a task if the handle is a step of it, else the name of the function that it calls."""
    callback = getattr(handle, "_callback", None)
    while isinstance(callback, functools.partial):
        callback = callback.func
    owner = getattr(callback, "__self__", None)
    if isinstance(owner, asyncio.Task):
        cancelling = getattr(callback, "__name__", None) == "cancel"
        return f"{'cancel() of ' if cancelling else ''}task {owner.get_name()!r}"
    return f"callback {getattr(callback, '__qualname__', None) or repr(callback)}"


def _awaited(task: "asyncio.Task[Any]", frames: list[types.FrameType]) -> str:
    waiter = getattr(task, "_fut_waiter", None)
    if waiter is None:
        return "its next turn"
    if isinstance(waiter, asyncio.Task):
        return f"task {waiter.get_name()!r}"
    innermost = frames[-1] if frames else None
    if innermost is not None and innermost.f_code.co_filename.startswith(_ASYNCIO):
        function = innermost.f_code.co_qualname
        owner = innermost.f_locals.get("self")
        return f"{function} of {owner!r}" if owner is not None else function
    return repr(waiter)


def _await_chain(awaitable: object) -> list[types.FrameType]:
    """The frames from a task's coroutine down to what it waits for, outermost first."""
    frames: list[types.FrameType] = []
    current: Any = awaitable
    while current is not None:
        frame = next((f for name in ("cr_frame", "gi_frame", "ag_frame") if (f := getattr(current, name, None))), None)
        if frame is not None:
            frames.append(frame)
            current = next(
                (a for name in ("cr_await", "gi_yieldfrom", "ag_await") if (a := getattr(current, name, None))), None
            )
        else:
            current = _generator_behind(current)
    return frames


def _generator_behind(awaitable: object) -> Any:
    """`anext()`, `asend()` and `aclose()` do not name their generator; the garbage collector knows it."""
    if type(awaitable).__name__ not in {"async_generator_asend", "async_generator_athrow", "anext_awaitable"}:
        return None
    referents: list[Any] = gc.get_referents(awaitable)
    return next((referent for referent in referents if hasattr(referent, "ag_frame")), None)


def natural(name: str) -> tuple[str, int]:
    stem = name.rstrip("0123456789")
    return stem, int(name[len(stem) :] or 0)
