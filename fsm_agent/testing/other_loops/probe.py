"""Plays the scenarios on a loop over HTTP, and tells what holds."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fsm_agent.testing.other_loops.judging import (
    PROPERTIES,
    PROPERTY_WORDS,
    WELCOME,
    Judgement,
    Property,
    judged,
)
from fsm_agent.testing.other_loops.observed import Drive, Ended, Observed, Outcome
from fsm_agent.testing.other_loops.scenarios import WIRE_SCENARIOS, WireScenario
from fsm_agent.testing.other_loops.tools import ToolRecord
from fsm_agent.testing.rules import ApiSettings
from fsm_agent.testing.script import Item, Reply
from fsm_agent.testing.server import MessagesServer
from fsm_agent.testing.shapes import JsonObject

__all__ = ["Finding", "LoopReport", "probe_loop", "probe_scenario"]

PROMPT = "Please look up what I asked for."
NEXT_PROMPT = "And now?"
UNDER_WAY = 0.02
"""Seconds for what was sent to arrive, and for calls that began together to begin, before the run is aborted."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What came of one scenario."""

    scenario: str
    ended: str
    """How the run ended, in the loop's own word."""
    requests: int
    judgements: Mapping[Property, Judgement]

    @property
    def faults(self) -> dict[Property, str]:
        """What does not hold, and what was seen."""
        return {name: judgement.why for name, judgement in self.judgements.items() if judgement.verdict == "no"}


@dataclass(frozen=True, slots=True)
class LoopReport:
    """What came of all scenarios. Printed, it is a table with what does not hold below it, in Markdown."""

    findings: tuple[Finding, ...]

    @property
    def faults(self) -> list[str]:
        """What does not hold, a line for each."""
        return [
            f"{finding.scenario}, {name}: {why}" for finding in self.findings for name, why in finding.faults.items()
        ]

    def check(self) -> None:
        """Raise `AssertionError`, with all that was found, unless everything holds."""
        if self.faults:
            raise AssertionError("The loop does not hold:\n" + "\n".join(f"  {fault}" for fault in self.faults))

    def table(self) -> str:
        """The table alone: a row for each scenario, a column for each property."""
        head = ["scenario", *PROPERTIES, "ended with", "requests"]
        rows = [
            [
                finding.scenario,
                *(finding.judgements[name].cell for name in PROPERTIES),
                finding.ended,
                str(finding.requests),
            ]
            for finding in self.findings
        ]
        return "\n".join(_row(cells) for cells in [head, ["---"] * len(head), *rows])

    @staticmethod
    def legend() -> str:
        """What the columns say."""
        return "\n".join(f"- {name}: {words}" for name, words in PROPERTY_WORDS.items())

    def __str__(self) -> str:
        below = "\n".join(f"- {fault}" for fault in self.faults) or "Everything holds."
        return f"{self.table()}\n\n{below}"


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


async def probe_loop(
    drive: Drive,
    *,
    scenarios: Mapping[str, WireScenario] = WIRE_SCENARIOS,
    patience: float = 10.0,
    grace: float = 2.0,
    most_requests: int = 250,
) -> LoopReport:
    """Play the scenarios on a loop, one after the other, each against a server of its own on loopback.

    A run that takes longer than `patience` seconds or makes more than `most_requests` requests is cancelled, and counts
    as one that does not end. So does one that has not ended `grace` seconds after it was cancelled.
    """
    bounds = {"patience": patience, "grace": grace}
    findings = [
        await probe_scenario(drive, name, scenario, **bounds, most_requests=most_requests)
        for name, scenario in scenarios.items()
    ]
    return LoopReport(tuple(findings))


async def probe_scenario(
    drive: Drive,
    name: str,
    scenario: WireScenario,
    *,
    patience: float = 10.0,
    grace: float = 2.0,
    most_requests: int = 250,
) -> Finding:
    """Play one scenario; see `probe_loop`."""
    seen = await _Stage(scenario, patience, grace, most_requests).play(drive)
    return Finding(name, seen.word, seen.requests, judged(scenario, seen, PROMPT))


class _Stage:
    """One run of the loop, and the run that follows."""

    def __init__(self, scenario: WireScenario, patience: float, grace: float, most_requests: int) -> None:
        self._scenario = scenario
        self._patience = patience
        self._grace = grace
        self._most = most_requests
        self._seen = Observed()
        self._tools = ToolRecord(self._tools_changed)
        self._seen.calls = self._tools.calls
        self._stop: asyncio.Future[Ended] = asyncio.get_running_loop().create_future()
        self._server = MessagesServer(self._answer, strict=False, settings=ApiSettings(accept_unknown_models=True))
        self._answered = 0
        self._following = False

    async def play(self, drive: Drive) -> Observed:
        seen = self._seen
        async with self._server:
            task = asyncio.ensure_future(drive(self._server.url, PROMPT, self._tools.functions()))
            seen.ended = await self._watch(task)
            seen.requests_after_abort = self._requests - seen.requests if seen.ended == "aborted" else 0
            seen.requests = self._requests
            seen.outcome, seen.raised = _result_of(task)
            seen.refusals = self._server.refusals
            if seen.outcome is not None and seen.outcome.follow_up is not None:
                await self._follow(seen.outcome.follow_up)
                seen.follow_up_refusals = self._server.refusals[len(seen.refusals) :]
        if not task.done():
            await self._cancel(task)
        return seen

    @property
    def _requests(self) -> int:
        return sum(entry.is_messages_call for entry in self._server.requests)

    # ---- the model

    def _answer(self, body: JsonObject) -> Item:
        if self._following:
            if self._seen.follow_up_body is None:
                self._seen.follow_up_body = body
            return Reply(WELCOME)
        self._seen.bodies.append(body)
        item = self._scenario.answer(body, self._answered)
        self._answered += 1
        if self._answered > self._most:
            self._end("too many requests")
        elif self._scenario.abort == "first event":
            self._abort_soon()
        return item

    # ---- ending it

    def _tools_changed(self) -> None:
        running = [(call.name, call.input["key"]) for call in self._tools.calls if call.ended == "running"]
        if self._scenario.abort in running:
            self._abort_soon()

    def _abort_soon(self) -> None:
        asyncio.get_running_loop().call_later(UNDER_WAY, self._end, "aborted")

    def _end(self, why: Ended) -> None:
        if not self._stop.done():
            self._stop.set_result(why)

    async def _watch(self, task: asyncio.Future[Outcome]) -> Ended:
        either: set[asyncio.Future[Any]] = {task, self._stop}
        await asyncio.wait(either, timeout=self._patience, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return "by itself"
        why: Ended = self._stop.result() if self._stop.done() else "too slow"
        self._seen.requests = self._requests
        return why if await self._cancel(task) else "deaf"

    # ---- what follows

    async def _follow(self, follow_up: Callable[[str], Awaitable[Outcome]]) -> None:
        self._following = True
        task = asyncio.ensure_future(follow_up(NEXT_PROMPT))
        await asyncio.wait({task}, timeout=self._patience)
        if not task.done():
            await self._cancel(task)
        self._seen.follow_up, self._seen.follow_up_raised = _result_of(task)

    async def _cancel(self, task: asyncio.Future[Outcome]) -> bool:
        """Cancel, and say whether it ended."""
        task.cancel()
        await asyncio.wait({task}, timeout=self._grace)
        return task.done()


def _result_of(task: asyncio.Future[Outcome]) -> tuple[Outcome | None, BaseException | None]:
    if not task.done():
        return None, None
    if task.cancelled():
        return None, asyncio.CancelledError("cancelled")
    error = task.exception()
    return (None, error) if error is not None else (task.result(), None)
