"""Plays a scenario on a machine: in process, on a virtual clock, with everything observed.

>>> from fsm_agent import AgentMachine
>>> from fsm_agent.testing.script import Reply
>>> played = play_scenario(AgentMachine("claude-sonnet-5-5"), Scenario([Reply("Hello.")]))
>>> played.result.text, played.breaches()
('Hello.', [])
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from fsm_agent.loop.agent import AgentMachine
from fsm_agent.loop.events import Event
from fsm_agent.loop.result import RunResult
from fsm_agent.loop.run import Run
from fsm_agent.session.message import blocks_of
from fsm_agent.testing.coverage import COVERAGE
from fsm_agent.testing.invariants import Breach, ObservedRun, broken_invariants
from fsm_agent.testing.observed import Exchange, ObservedModel
from fsm_agent.testing.rules import ApiRefusal, ApiSettings
from fsm_agent.testing.scenario import Scenario, UserAct, load_scenario, program
from fsm_agent.testing.script import Repeat, Reply, Script
from fsm_agent.testing.scripted import ScriptedModel
from fsm_agent.testing.simulation.run import simulate
from fsm_agent.testing.simulation.virtual_loop import VirtualLoop
from fsm_agent.testing.stand_ins import stand_ins
from fsm_agent.testing.transcript import transcript

__all__ = ["MachineUnderTest", "PlayedRun", "Stage", "calls_of", "check_scenario", "play_scenario", "replay_scenario"]

MachineUnderTest: TypeAlias = AgentMachine | Callable[[], AgentMachine]
"""A machine, or what makes a fresh one (for tools that remember something)."""

SETTINGS = ApiSettings(accept_unknown_models=True)
_BEGUN = 3
"""Steps of the event loop after which a run has surely begun: before that there is nothing to close."""
MAX_STEPS = 200_000
"""Steps of the event loop after which a scenario counts as one that does not end."""

AFTERWARDS: tuple[Repeat, ...] = (
    Repeat(Reply("<summary>They talked.</summary>", when="summary"), "always"),
    Repeat(Reply("Done."), "always"),
)
"""What the model says when the script is at its end."""


@dataclass(frozen=True, slots=True)
class PlayedRun(ObservedRun):
    """A run that was played from a scenario."""

    scenario: Scenario = field(default_factory=Scenario)
    refusals: tuple[ApiRefusal, ...] = ()
    """Requests that the API would have refused, whatever the script says."""

    def breaches(self) -> list[Breach]:
        """Every invariant that the run breaks."""
        refused = [Breach("API", f"a request would be refused by {refusal}") for refusal in self.refusals]
        return [*broken_invariants(self), *refused]

    def check(self) -> None:
        """Raise `AssertionError`, with all that is broken, unless every invariant holds."""
        found = self.breaches()
        if found:
            told = "\n".join(f"  {breach}" for breach in found)
            raise AssertionError(f"The run ({self.result.reason}; {' '.join(self.result.trace)}) breaks:\n{told}")

    @property
    def calls(self) -> list[tuple[str, dict[str, Any]]]:
        """The tool calls that are in the history that the run left, in order: name and input."""
        return calls_of(self.result.messages)

    @property
    def transcript(self) -> str:
        """The run as a text for people, the same for the same run."""
        return transcript(self.events)


def calls_of(messages: Iterable[Mapping[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    """The tool calls in these messages, in order: name and input."""
    blocks = [block for message in messages for block in blocks_of(message) if block.get("type") == "tool_use"]
    return [(str(block["name"]), dict(block["input"])) for block in blocks]


class Stage:
    """One run with its model, its user and its observers. `perform` plays it on the running event loop.

    `script` is what the model answers; with `cue`, each request waits for it before it is answered.
    """

    def __init__(
        self,
        machine: AgentMachine,
        scenario: Scenario,
        *,
        script: Script | None = None,
        cue: Callable[[Any], Awaitable[object]] | None = None,
    ) -> None:
        self.scenario = scenario
        self.events: list[Event] = []
        self.answered = 0
        """Requests that the model has begun to answer."""
        self.run: Run | None = None
        self._cue = cue
        self._acts: list[UserAct] = list(scenario.acts)
        self._model = ScriptedModel(
            [*scenario.script, *AFTERWARDS] if script is None else script,
            settings=SETTINGS,
            chunking=scenario.chunking,
            strict=False,
        )
        self._observed = ObservedModel(self._respond)
        self.machine = self._made(machine)
        self._consumer: asyncio.Task[None] | None = None
        self._leaving = False
        self._timers: list[asyncio.TimerHandle] = []
        self._aborted_at: float | None = None

    def _made(self, machine: AgentMachine) -> AgentMachine:
        deps = replace(
            machine.deps,
            call_model=self._observed,
            uuid=lambda: "run",
            sleep=asyncio.sleep,
            random=random.Random(0),
        )
        return machine.with_changes(**stand_ins(machine, self.scenario), client=None, deps=deps, strict=True)

    @property
    def consumer(self) -> asyncio.Task[None]:
        """The task that iterates the run. Raises `RuntimeError` before the start."""
        if self._consumer is None:
            raise RuntimeError("The run has not been started yet.")
        return self._consumer

    @property
    def exchanges(self) -> list[Exchange]:
        """The requests so far."""
        return self._observed.exchanges

    # ---- the model

    async def _respond(self, request: Any) -> AsyncGenerator[dict[str, Any], None]:
        if self._cue is not None:
            await self._cue(request)
        self.answered += 1
        self._schedule(self.answered)
        stream = self._model(request)
        try:
            async for event in stream:
                yield event
        finally:
            await stream.aclose()

    # ---- the user

    def add(self, act: UserAct) -> None:
        """One more thing that the user will do."""
        self._acts.append(act)

    def _schedule(self, request: int) -> None:
        loop = asyncio.get_running_loop()
        for act in [act for act in self._acts if act.request == request]:
            self._acts.remove(act)
            if act.seconds:
                self._timers.append(loop.call_later(act.seconds, self.do, act))
                continue
            steps = act.steps if request or act.do in {"abort", "send"} else max(act.steps, _BEGUN)
            if isinstance(loop, VirtualLoop) and steps:
                loop.call_before_step(loop.steps + steps, partial(self.do, act))
            else:
                self.do(act)

    def do(self, act: UserAct) -> None:
        """Do it now, unless the run is over."""
        run, consumer = self.run, self._consumer
        if run is None or consumer is None or consumer.done():
            return
        if act.do == "send":
            with contextlib.suppress(RuntimeError):  # the run has just ended; its consumer has not seen it yet
                run.send(act.text)
            return
        if self._aborted_at is None:
            self._aborted_at = consumer.get_loop().time()
        if act.do == "abort":
            run.abort("The user pressed escape.")
        elif act.do == "cancel":
            self._leaving = True
            consumer.cancel()
        else:
            self._leaving = True
            consumer.get_loop().create_task(run.aclose())

    async def _consume(self, run: Run) -> None:
        async for event in run:
            self.events.append(event)
            if self._leaving:
                break

    # ---- the run

    async def perform(self) -> PlayedRun:
        """The run, to its end."""
        self.start()
        return await self.finish()

    def start(self) -> None:
        """Begin; the run goes on in a task of its own."""
        self.run = self.machine.run(self.scenario.prompt, history=self.scenario.history)
        self._consumer = asyncio.get_running_loop().create_task(self._consume(self.run), name="the user")
        self._schedule(0)

    async def finish(self) -> PlayedRun:
        """Wait for the end. Raises what the run raises."""
        run, consumer = self.run, self._consumer
        assert run is not None
        assert consumer is not None
        await asyncio.wait({consumer})
        for timer in self._timers:
            timer.cancel()
        await run.aclose()
        if not self._leaving:
            consumer.result()
        ended = asyncio.get_running_loop().time()
        deaf = max((act.deaf for acts in self.scenario.tools.values() for act in acts), default=0.0)
        if deaf:
            await asyncio.sleep(deaf)  # what was left behind comes to its end
        return self._played(run.result, ended)

    def _played(self, result: RunResult, ended: float) -> PlayedRun:
        return PlayedRun(
            machine=self.machine,
            events=self.events,
            result=result,
            exchanges=self._observed.exchanges,
            aborted_at=self._aborted_at,
            ended_at=ended,
            whole=not self._leaving,
            scenario=self.scenario,
            refusals=tuple(self._model.refusals),
        )


def made(machine: MachineUnderTest) -> AgentMachine:
    """The machine, or a fresh one."""
    return machine if isinstance(machine, AgentMachine) else machine()


def play_scenario(machine: MachineUnderTest, scenario: Scenario) -> PlayedRun:
    """Play it on a simulated event loop. Nothing is checked but that the run ends and leaves nothing behind.

    Raises `SimulationError` for a run that hangs or leaves a task, a timer or a stream behind, and what the run raises.
    """
    stage_of = made(machine)
    return simulate(lambda: Stage(stage_of, scenario).perform(), choices=scenario.schedule, max_steps=MAX_STEPS).result


def check_scenario(
    machine: MachineUnderTest,
    scenario: Scenario,
    *also: Callable[[PlayedRun], object],
    name: str = "machine",
    save: str | Path | None = None,
) -> PlayedRun:
    """Play a scenario and check every invariant, and then what you want to hold `also` (it raises what it finds).

    When something does not hold, the error has a note with a short program that does the same again (`name` is
    `module:name` of your machine), and with `save` the scenario is written to that file.
    """
    try:
        played = play_scenario(machine, scenario)
        COVERAGE.add(played.machine.definition, played.events)
        aim_at_depth(len(set(played.result.trace)), "different rows that fired")
        played.check()
        for check in also:
            check(played)
    except Exception as error:
        note = f"The same again:\n\n{program(scenario, name)}\n"
        if save is not None:
            note += f"\nor: replay_scenario({str(scenario.save(save))!r}, {name.rpartition(':')[2]})\n"
        error.add_note(note)
        raise
    return played


LONG_SEARCH = 1_000
"""Examples from which a search is led to deep runs. In a shorter one the climbing costs more rows than it finds
(measured: with 100 examples 25 rows of the agent loop instead of 36, with 2,000 as many)."""


def aim_at_depth(rows: int, label: str) -> None:
    """In a test of Hypothesis whose profile searches long: let it prefer examples in which many rows fire."""
    hypothesis = sys.modules.get("hypothesis")
    if hypothesis is None or not hypothesis.currently_in_test_context():
        return
    if hypothesis.settings().max_examples >= LONG_SEARCH:
        with contextlib.suppress(hypothesis.errors.InvalidArgument):  # the second run of one example
            hypothesis.target(float(rows), label=label)


def replay_scenario(
    path: str | Path, machine: MachineUnderTest | None = None, *also: Callable[[PlayedRun], object]
) -> PlayedRun:
    """`check_scenario` with the scenario of a file; for the file of an `AgentStateMachine`, which names its class, the
    same steps again. Returns the (last) run. Raises `ValueError` if the file has neither.
    """
    if machine is not None:
        return check_scenario(machine, load_scenario(path), *also)
    from fsm_agent.testing.steps import machine_of_steps

    played: PlayedRun = machine_of_steps(path).replay(path).played
    return played
