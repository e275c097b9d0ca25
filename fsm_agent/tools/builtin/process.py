"""One program run to its end, with all that it starts: nothing of it is left when the call returns or is cancelled."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import uuid
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from fsm_agent.log import logger
from fsm_agent.tools.builtin.excerpt import Excerpt
from fsm_agent.tools.builtin.process_tree import MARK, ProcessTree

KEEP_CHARS: Final = 400_000
"""Characters of each output stream that are kept: half from its beginning, half from its end."""
DRAIN_SECONDS: Final = 0.2
"""Time for output that is on its way when the program has ended. A child that holds the pipe gets no more."""
_LOOK_SECONDS: Final = 0.02
_REAP_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class Finished:
    """How a program ended."""

    exit_code: int | None
    """Negative: the signal that ended it. None: it could not be reaped in time."""
    stdout: str
    stderr: str
    timed_out: bool
    others_ended: bool
    """Processes that it had started were still there, and were ended."""


class _Outputs(asyncio.SubprocessProtocol):
    """What the loop tells of the process and its pipes."""

    def __init__(self, on_text: Callable[[str], None]) -> None:
        self.stdout = Excerpt(keep=KEEP_CHARS)
        self.stderr = Excerpt(keep=KEEP_CHARS)
        self.exited = asyncio.Event()
        self.drained = asyncio.Event()
        self._open = {1, 2}
        self._on_text = on_text

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        text = (self.stdout if fd == 1 else self.stderr).add(data)
        if text:
            self._on_text(text)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        del exc
        self._open.discard(fd)
        if not self._open:
            self.drained.set()

    def process_exited(self) -> None:
        self.exited.set()


async def run_program(
    arguments: Sequence[str],
    *,
    directory: Path,
    environment: Mapping[str, str],
    timeout: float,
    grace: float,
    on_text: Callable[[str], None],
) -> Finished:
    """Run a program with no input in a session of its own.

    When it has ended, when `timeout` seconds are over, or when we are cancelled, whatever it started gets SIGTERM, and
    after `grace` seconds SIGKILL. `on_text` gets the output as it comes. Raises OSError if it cannot be started.
    """
    mark = uuid.uuid4().hex
    process = await _started(arguments, directory, {**environment, MARK: mark}, on_text)
    tree = ProcessTree(process.pid, mark)
    timed_out = False
    try:
        try:
            async with asyncio.timeout(timeout):
                await process.outputs.exited.wait()
        except TimeoutError:
            timed_out = True
        else:
            await _within(DRAIN_SECONDS, process.outputs.drained)  # what holds the pipe now is ended next
    finally:
        others_ended = await process.end(tree, grace)
    outputs = process.outputs
    for excerpt in (outputs.stdout, outputs.stderr):
        excerpt.add(b"", final=True)
    return Finished(process.exit_code, outputs.stdout.text, outputs.stderr.text, timed_out, others_ended)


class _Process:
    def __init__(self, transport: asyncio.SubprocessTransport, outputs: _Outputs) -> None:
        self._transport = transport
        self.outputs = outputs
        self.pid = transport.get_pid()

    @property
    def exit_code(self) -> int | None:
        return self._transport.get_returncode()

    async def end(self, tree: ProcessTree, grace: float) -> bool:
        """End what is left, first kindly; gives whether there was something. A cancellation ends the kindness."""
        was_left = not self.outputs.exited.is_set() or not tree.is_gone()
        try:
            if was_left:
                tree.signal(signal.SIGTERM)
                await self._gone_within(grace, tree)
        finally:
            if was_left:
                tree.signal(signal.SIGKILL)
            await _completed(self._reap(tree, killed=was_left))
        return was_left

    async def _reap(self, tree: ProcessTree, *, killed: bool) -> None:
        """After SIGKILL: a matter of milliseconds, so no cancellation cuts it short."""
        try:
            await _within(_REAP_SECONDS, self.outputs.exited)
            if killed:  # the others were killed in the same moment, and may need one more to be gone
                await self._gone_within(_REAP_SECONDS, tree)
            await _within(DRAIN_SECONDS, self.outputs.drained)
            if self.outputs.exited.is_set():
                tree.reap()
            else:
                logger.warning("process_not_reaped", pid=self.pid)
        finally:
            self._transport.close()

    async def _gone_within(self, seconds: float, tree: ProcessTree) -> None:
        clock = asyncio.get_running_loop()
        until = clock.time() + seconds
        # Only its parent is told of a process's end, so the others have to be looked at.
        while clock.time() < until and not (self.outputs.exited.is_set() and tree.is_gone()):  # noqa: ASYNC110
            await asyncio.sleep(_LOOK_SECONDS)


async def _started(
    arguments: Sequence[str], directory: Path, environment: Mapping[str, str], on_text: Callable[[str], None]
) -> _Process:
    """Start it; a cancellation in between leaves no process behind."""
    starting = asyncio.ensure_future(
        asyncio.get_running_loop().subprocess_exec(
            lambda: _Outputs(on_text),
            *arguments,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=directory,
            env=environment,
            start_new_session=True,
        )
    )
    try:
        transport, outputs = await asyncio.shield(starting)
    except asyncio.CancelledError:
        await _completed(_undo(starting, environment[MARK]))
        raise
    return _Process(transport, outputs)


async def _undo(starting: asyncio.Future[tuple[asyncio.SubprocessTransport, _Outputs]], mark: str) -> None:
    await asyncio.wait({starting})
    if not starting.cancelled() and starting.exception() is None:
        process = _Process(*starting.result())
        await process.end(ProcessTree(process.pid, mark), 0)


async def _completed(work: Coroutine[Any, Any, None]) -> None:
    """Await it to its end, whatever comes; a cancellation that came is raised then."""
    task = asyncio.ensure_future(work)
    cancellation: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as cancelled:
            cancellation = cancelled
    if cancellation is not None:
        raise cancellation
    await task


async def _within(seconds: float, event: asyncio.Event) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True


def environment_of_commands() -> dict[str, str]:
    """Our environment without the credentials of the model's API, and without what makes programs wait for a person."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ANTHROPIC_")}
    return {**kept, "PAGER": "cat", "GIT_PAGER": "cat", "TERM": "dumb", "GIT_TERMINAL_PROMPT": "0"}
