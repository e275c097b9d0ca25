"""`fsm-agent run`: the agent, with tools for files and commands, in one directory."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import urlsplit

from rich.console import Console

from fsm_agent.cli.entries import PLAIN_MARKS, Marks
from fsm_agent.cli.errors import UsageError
from fsm_agent.cli.lines import LineWriter
from fsm_agent.cli.screen import Screen
from fsm_agent.cli.view import RunView
from fsm_agent.loop.agent import AgentMachine
from fsm_agent.loop.events import Event
from fsm_agent.machine import LoopLimits, TerminalReason
from fsm_agent.tools.builtin import builtin_tools

if TYPE_CHECKING:
    import anthropic

    from fsm_agent.loop.result import RunResult
    from fsm_agent.loop.run import Run

COMPLETED: Final = 0
OTHER_REASON: Final = 1
ABORTED: Final = 130

DEFAULT_MODEL: Final = "claude-sonnet-5-5"
SYSTEM: Final = (
    "You are an agent at a command line. You work in the directory {directory} with the tools that you are given. "
    "Look before you change anything, make the smallest change that does the task, and check it (run the tests, if "
    "there are some). When you are done, say in a few sentences what you found and what you changed."
)
NO_KEY: Final = (
    "There is no key for the API. Set ANTHROPIC_API_KEY (or ANTHROPIC_AUTH_TOKEN) and try again. To see the agent at "
    "work without one: `make run` in a checkout of fsm_agent, or `fsm-agent serve-model --script FILE` in another "
    "terminal and `fsm-agent run --base-url URL` with the URL that it says."
)
UNUSED_KEY: Final = "not-needed-on-this-machine"


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What the user asked for."""

    prompt: str
    model: str = DEFAULT_MODEL
    base_url: str | None = None
    max_turns: int | None = None
    directory: Path = Path()
    as_json: bool = False


class Display(Protocol):
    """Where events go."""

    def show(self, event: Event) -> None: ...


def run(options: RunOptions) -> int:
    """Run the agent, show it, and give the exit code. Raises `UsageError` before the first request."""
    if options.base_url is not None and urlsplit(options.base_url).scheme not in ("http", "https"):
        raise UsageError(f"The base URL is {options.base_url!r}; write one that begins with http:// or https://.")
    if not options.directory.is_dir():
        raise UsageError(f"The directory {str(options.directory)!r} does not exist; name one with --cwd.")
    try:
        return asyncio.run(_run(options))
    except BrokenPipeError:
        # Whoever read our output has gone; Python would complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OTHER_REASON
    except asyncio.CancelledError:
        sys.stderr.write("fsm-agent: left before the run had ended.\n")
        return ABORTED


async def _run(options: RunOptions) -> int:
    async with _client(options.base_url) as client:
        machine = _machine(options, client)
        try:
            run = machine.run(options.prompt)
        except ValueError as error:
            raise UsageError(str(error)) from error
        if options.as_json:
            writer = LineWriter(sys.stdout.buffer)
            result = await _follow(run, writer, say=lambda _: None)
        else:
            result = await _watched(run, machine)
    return exit_code(result.reason)


def exit_code(reason: str) -> int:
    """0 for `completed`, 130 for an abort, 1 for any other reason."""
    if reason == TerminalReason.COMPLETED:
        return COMPLETED
    return ABORTED if reason in (TerminalReason.ABORTED_STREAMING, TerminalReason.ABORTED_TOOLS) else OTHER_REASON


def _machine(options: RunOptions, client: anthropic.AsyncAnthropic) -> AgentMachine:
    directory = options.directory.resolve()
    limits = LoopLimits() if options.max_turns is None else LoopLimits(max_turns=options.max_turns)
    try:
        return AgentMachine(
            model=options.model,
            client=client,
            tools=builtin_tools(directory),
            system=SYSTEM.format(directory=directory),
            limits=limits,
        )
    except ValueError as error:
        raise UsageError(str(error)) from error


@asynccontextmanager
async def _client(base_url: str | None) -> AsyncGenerator[anthropic.AsyncAnthropic]:
    """The SDK's client, made from the environment. Raises `UsageError` where it finds no key."""
    import anthropic

    try:
        client = anthropic.AsyncAnthropic(base_url=base_url, max_retries=0)
    except anthropic.AnthropicError as error:
        raise UsageError(f"The client of the API could not be made: {error}") from error
    async with client:
        if client.api_key is None and client.auth_token is None and client.credentials is None:
            if not _is_on_this_machine(str(client.base_url)):
                raise UsageError(NO_KEY)
            client.api_key = UNUSED_KEY
        yield client


def _is_on_this_machine(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


async def _watched(run: Run, machine: AgentMachine) -> RunResult:
    console = Console(highlight=False, emoji=False, markup=False)
    if not console.is_terminal:
        console.width = 1_000_000  # a file or a pipe has no edge to wrap lines at
    marks = Marks() if console.encoding.lower().startswith("utf") else PLAIN_MARKS
    view = RunView(machine.definition, machine.automaton.limits, model=machine.model, now=time.monotonic(), marks=marks)
    async with Screen(console, view) as screen:
        result = await _follow(run, screen, say=screen.say)
    console.print(view.summary(time.monotonic()))
    return result


async def _follow(run: Run, display: Display, *, say: Callable[[str], None]) -> RunResult:
    """Show every event. The first interrupt aborts the run, the second closes it, the third is Python's own."""
    task = asyncio.current_task()
    assert task is not None
    interrupts = Interrupts(run, task, say)
    with _on_signals(interrupts.came):
        async with run:
            async for event in run:
                display.show(event)
    return run.result


class Interrupts:
    """What an interrupt does to a run."""

    def __init__(self, run: Run, task: asyncio.Task[Any], say: Callable[[str], None]) -> None:
        self.run = run
        self.task = task
        self.say = say
        self.count = 0

    def came(self) -> None:
        self.count += 1
        if self.count == 1:
            self.say("ending the run; press Ctrl-C again to leave at once")
            self.run.abort("The user interrupted the run.")
        elif self.count == 2:
            self.task.cancel()
        else:
            raise KeyboardInterrupt


@contextmanager
def _on_signals(handler: Callable[[], None]) -> Generator[None]:
    """Call the handler for the signals that ask a program to end."""
    loop = asyncio.get_running_loop()
    names = ("SIGINT", "SIGTERM", "SIGHUP")
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    with contextlib.ExitStack() as stack:
        for number in numbers:
            try:
                loop.add_signal_handler(number, handler)
            except (NotImplementedError, RuntimeError):  # Windows; or not the main thread
                continue
            stack.callback(loop.remove_signal_handler, number)
        yield
