"""What a batch of calls tells while it runs, and a buffer for it that is bounded without losing a start or an end."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

PROGRESS_TEXT_MAX: Final = 16_384
"""Characters of text that wait to be read, per call; older ones are dropped first."""
_MISSING: Final = object()


@dataclass(frozen=True, slots=True)
class ToolNotice:
    """A call has started, has come further, or has finished (each start has exactly one finish); or a hook or a
    permission around it failed or was out of time, and `data` says so."""

    kind: Literal["started", "progress", "finished", "hook_error", "hook_timeout"]
    tool_use_id: str
    tool: str
    is_error: bool | None = None
    """Known when finished."""
    seconds: float | None = None
    """Time from start to finish, by the event loop's clock."""
    discarded: bool = False
    """The message with the call was discarded, and the result with it."""
    data: Any = None


def merged(older: Any, newer: Any) -> Any:
    """Two pieces of progress as one: texts are joined and cut to the newest, of other values the newer stays.

    >>> merged("reading ", "a.txt"), merged({"done": 1}, {"done": 2})
    ('reading a.txt', {'done': 2})
    """
    if isinstance(older, str) and isinstance(newer, str):
        return (older + newer)[-PROGRESS_TEXT_MAX:]
    return newer


class NoticeQueue:
    """Notices in order for one reader, who may be slow: what waits is at most three notices per call, and one for each
    hook that failed."""

    def __init__(self) -> None:
        self._waiting: deque[list[ToolNotice]] = deque()
        self._mergeable: dict[str, list[ToolNotice]] = {}
        """By call, the cell of a progress notice that nothing of the call came after."""
        self._reader: asyncio.Future[None] | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, notice: ToolNotice) -> None:
        """Add a notice; progress that has not been read yet is merged with it. On the event loop's thread only."""
        older = self._mergeable.pop(notice.tool_use_id, None)
        if notice.kind == "progress" and older is not None:
            older[0] = replace(notice, data=merged(older[0].data, notice.data))
            self._mergeable[notice.tool_use_id] = older
            return
        cell = [notice]
        self._waiting.append(cell)
        if notice.kind == "progress":
            self._mergeable[notice.tool_use_id] = cell
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    def take(self) -> ToolNotice | None:
        """The oldest notice, or None."""
        if not self._waiting:
            return None
        cell = self._waiting.popleft()
        if self._mergeable.get(cell[0].tool_use_id) is cell:
            del self._mergeable[cell[0].tool_use_id]
        return cell[0]

    async def wait(self) -> None:
        """Wait until there is a notice to take."""
        while not self._waiting:
            self._reader = asyncio.get_running_loop().create_future()
            await self._reader

    async def get(self) -> ToolNotice:
        """The oldest notice; waits for one."""
        while (notice := self.take()) is None:
            await self.wait()
        return notice


class ProgressFeed:
    """Progress of one call, from any thread to the loop's: at most one piece per step of the loop, none after the end.

    A tool that reports in a tight loop so costs one joined text, and no queue that grows.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, tell: Callable[[Any], None]) -> None:
        self._loop = loop
        self._tell = tell
        self._lock = threading.Lock()
        self._pending: Any = _MISSING
        self._closed = False

    def report(self, data: Any) -> None:
        """Take a piece of progress. Never waits, never raises."""
        with self._lock:
            if self._closed:
                return
            scheduled = self._pending is not _MISSING
            self._pending = merged(self._pending, data) if scheduled else data
        if not scheduled:
            try:
                self._loop.call_soon_threadsafe(self.flush)
            except RuntimeError:  # the loop is closed: nobody is left to be told
                self._closed = True

    def flush(self) -> None:
        """Tell what waits, now. On the loop's thread."""
        with self._lock:
            data, self._pending = self._pending, _MISSING
        if data is not _MISSING and not self._closed:
            self._tell(data)

    def close(self) -> None:
        """Tell what waits; what comes later is dropped."""
        self.flush()
        with self._lock:
            self._closed = True
