"""What the fixtures of the pytest plugin hand out."""

from __future__ import annotations

import asyncio
import difflib
import re
from collections.abc import Callable, Coroutine, Iterable
from pathlib import Path
from typing import Any, Protocol, TypeVar

from fsm_agent.loop.events import Event
from fsm_agent.testing.playing import MachineUnderTest, PlayedRun, check_scenario
from fsm_agent.testing.scenario import Scenario
from fsm_agent.testing.script import Item, Repeat
from fsm_agent.testing.server import MessagesServer
from fsm_agent.testing.simulation.run import simulate
from fsm_agent.testing.transcript import transcript

__all__ = ["MakeServer", "PlayAgent", "TranscriptSnapshot", "VirtualClock", "play_agent"]

T = TypeVar("T")


class MakeServer(Protocol):
    """Starts a `MessagesServer` with these items as its script, and these settings."""

    async def __call__(self, *items: Any, **settings: Any) -> MessagesServer: ...


class PlayAgent(Protocol):
    """Runs an agent on a scenario and checks every invariant."""

    def __call__(self, machine: MachineUnderTest, *script: Item | Repeat | Scenario, **scenario: Any) -> PlayedRun: ...


def play_agent(machine: MachineUnderTest, *script: Any, **scenario: Any) -> PlayedRun:
    """Play a machine on a scenario, or on the items of a script with the other fields of a scenario; check everything.

    >>> from fsm_agent import AgentMachine
    >>> from fsm_agent.testing.script import Reply
    >>> play_agent(AgentMachine("claude-sonnet-5-5"), Reply("hi"), prompt="Hello?").result.text
    'hi'
    """
    if len(script) == 1 and isinstance(script[0], Scenario):
        return check_scenario(machine, script[0])
    return check_scenario(machine, Scenario(script, **scenario))


class VirtualClock:
    """The clock of the simulated event loop that a test runs on.

    >>> clock = VirtualClock()
    >>> clock.run(lambda: asyncio.sleep(600, "ten minutes later")), clock.elapsed
    ('ten minutes later', 600.0)
    """

    def __init__(self) -> None:
        self.elapsed = 0.0
        """Virtual seconds that the last `run` took."""

    @property
    def now(self) -> float:
        """Virtual seconds since the start. Raises `RuntimeError` where no loop runs."""
        return asyncio.get_running_loop().time()

    def run(self, program: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine function to its end; nothing may be left behind. See `simulation.simulate` for the errors."""
        simulation = simulate(program)
        self.elapsed = simulation.elapsed
        return simulation.result


class TranscriptSnapshot:
    """Compares transcripts with files; `update` writes them instead."""

    def __init__(self, folder: Path, test: str, *, update: bool) -> None:
        self._folder = folder
        self._test = re.sub(r"[^\w.-]+", "-", test).strip("-")
        self._update = update

    def __call__(self, run: PlayedRun | Iterable[Event], name: str = "") -> None:
        """Fail unless the run's transcript is what the file says. `name` tells several runs of one test apart."""
        told = run.transcript if isinstance(run, PlayedRun) else transcript(run)
        path = self._folder / f"{self._test}{f'-{name}' if name else ''}.txt"
        if self._update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(told, encoding="utf-8")
        elif not path.exists():
            raise AssertionError(f"There is no {path}; write it with `pytest --agent-update`. The transcript:\n{told}")
        elif (known := path.read_text(encoding="utf-8")) != told:
            lines = difflib.unified_diff(known.splitlines(), told.splitlines(), str(path), "this run", lineterm="")
            raise AssertionError("The transcript differs (`pytest --agent-update` accepts it):\n" + "\n".join(lines))
