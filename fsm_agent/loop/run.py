"""One run, as its user holds it: an async iterator of events, a context manager, and something to await."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Generator
from types import TracebackType
from typing import TYPE_CHECKING, Any

from fsm_agent.loop.channel import Channel
from fsm_agent.loop.events import Event, Terminal
from fsm_agent.loop.prompt import user_content
from fsm_agent.model.surrogates import mended_text

if TYPE_CHECKING:
    from fsm_agent.loop.driver import Driver
    from fsm_agent.loop.result import RunResult


class Run(AsyncIterator[Event]):
    """A run of an `AgentMachine`. Made by `machine.run()`; nothing happens before it is iterated or awaited.

    ```python
    async with machine.run("...") as run:
        async for event in run:
            ...
    result = run.result
    ```

    Leaving the `async with`, `aclose()`, a `break` that drops the run, and garbage collection all end it: the model's
    stream is closed and the tools are cancelled. One task may iterate it; `abort` and `send` may be called from
    anywhere.
    """

    def __init__(self, driver: Driver, channel: Channel[Event]) -> None:
        self._driver = driver
        self._channel = channel
        self._task: asyncio.Task[RunResult] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ended = False
        self._iterating = False

    # ---- what it came to

    @property
    def result(self) -> RunResult:
        """How the run ended. Raises `RuntimeError` while it goes on."""
        if self._driver.result is not None:
            return self._driver.result
        if self._task is None or not self._task.done():
            raise RuntimeError("The run has not ended yet; iterate it to its end, or await it, to have a result.")
        if self._task.cancelled():
            raise RuntimeError("The run was cancelled together with its event loop, so there is no result.")
        return self._task.result()

    @property
    def id(self) -> str:
        return self._driver.conversation.run_id

    @property
    def state(self) -> str:
        """The state that the machine is in now."""
        return self._driver.cursor.control.state

    # ---- acting on it

    def abort(self, why: str = "The run was aborted.") -> None:
        """End the run: no further request is made, tools are cancelled, the history stays valid.

        May be called at any time, from any task or thread, more than once. The run still ends with its terminal event,
        within `limits.abort_grace` of the slowest tool. `why` becomes the result's `detail` (an exception is told in
        its own words).
        """
        self._call(self._driver.abort, mended_text(str(why)))

    def send(self, message: str | list[dict[str, Any]]) -> None:
        """Queue a message of the user: the model gets it after the tool results of this turn.

        If the run ends before that, the message is in `result.undelivered`. May be called from any thread. Raises
        `ValueError` for a blank message, `RuntimeError` when the run has ended.
        """
        content = user_content(message, "message")
        if self._task is not None and self._task.done():
            raise RuntimeError("The run has ended; give the message to the next one: machine.run(..., history=result).")
        # A deque is safe to append to from any thread.
        self._driver.conversation.queued.append(content)

    def _call(self, function: Any, *args: Any) -> None:
        if self._loop is None or self._loop.is_closed() or _running_loop() is self._loop:
            function(*args)
        else:
            self._loop.call_soon_threadsafe(function, *args)

    # ---- following it

    def __aiter__(self) -> Run:
        return self

    async def __anext__(self) -> Event:
        if self._ended:
            raise StopAsyncIteration
        if self._iterating:
            raise RuntimeError("The run is already being iterated; one task at a time may ask for its next event.")
        self._check_loop()
        task = self._start()
        if task.done():
            self._ended = True
            task.result()
            raise StopAsyncIteration
        event = self._channel.ready() or await self._requested()
        if isinstance(event, Terminal):
            self._ended = True
            self._channel.stop_listening()
            await self._settle()
        return event

    async def _requested(self) -> Event:
        self._iterating = True
        try:
            event = await self._channel.request()
        except BaseException:
            self._ended = True
            await self._close()
            raise
        finally:
            self._iterating = False
        if event is None:  # somebody else awaits the run, or closes it
            self._ended = True
            raise StopAsyncIteration
        return event

    def __await__(self) -> Generator[Any, None, RunResult]:
        return self.finish().__await__()

    async def finish(self) -> RunResult:
        """Run to the end without looking at the events (that are left)."""
        self._check_loop()
        self._ended = True
        task = self._start()
        self._channel.stop_listening()
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            await self._close()
            raise

    def _start(self) -> asyncio.Task[RunResult]:
        if self._task is None:
            self._loop = asyncio.get_running_loop()
            self._task = self._loop.create_task(self._driver.drive(), name=f"fsm_agent run {self.id}")
            self._task.add_done_callback(self._channel.producer_ended)
        return self._task

    def _check_loop(self) -> None:
        """What one event loop has begun, no other can wait for."""
        if self._task is None or self._task.done() or self._loop is asyncio.get_running_loop():
            return
        raise RuntimeError(
            "The run belongs to another event loop; iterate, await and close it there (`abort` and `send` may be "
            "called from anywhere)."
        )

    # ---- ending it

    async def aclose(self) -> None:
        """End the run now, and wait until it has left nothing behind."""
        self._check_loop()
        self._ended = True
        await self._close()

    async def _close(self) -> None:
        if self._task is None:
            self._driver.close()
            return
        if not self._task.done():
            self._driver.close()
            await self._settle()

    async def _settle(self) -> None:
        """Wait for the run's own task. A cancellation of the caller meanwhile is kept until it has ended."""
        task, cancelled = self._task, False
        assert task is not None
        while not task.done():
            try:
                await asyncio.wait({task})
            except asyncio.CancelledError:
                cancelled = True
        if cancelled:
            raise asyncio.CancelledError

    async def __aenter__(self) -> Run:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    def __del__(self) -> None:
        task, loop = self._task, self._loop
        if task is None or loop is None or task.done() or loop.is_closed():
            return
        loop.call_soon_threadsafe(self._driver.close)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
