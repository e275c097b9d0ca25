"""A scenario of the loop that is disturbed once while it runs, and what must hold wherever that was."""

from __future__ import annotations

import asyncio
import gc
from typing import Any, Literal

from fsm_agent import AgentMachine, Deps, Run, RunResult
from fsm_agent.session.validator import violations
from fsm_agent.testing import Reply, ScriptedModel
from tests.loop.scenarios import MODEL, Scenario

Disturbance = Literal["abort", "cancel", "close", "drop"]
"""What happens at the point: `run.abort()`, the consumer's task is cancelled, `aclose()`, or the run is dropped."""


class Disturbed:
    """The scenario with a consumer, in process. `inject` disturbs it."""

    def __init__(self, scenario: Scenario, how: Disturbance) -> None:
        self.scenario = scenario
        self.how = how
        self.model = ScriptedModel(scenario.script)
        self.machine = scenario.build(deps=Deps(call_model=self.model))
        self.run: Run | None = None
        self.consumer: asyncio.Task[None] | None = None
        self.events: list[Any] = []
        self.result: RunResult | None = None
        self.calls_at: int | None = None
        self.time_at = 0.0
        self.leave = False

    async def start(self) -> None:
        self.consumer = asyncio.create_task(self._consume(), name="consumer")
        try:
            await self.consumer
        except asyncio.CancelledError:
            assert self.how == "cancel"
        if self.how == "drop":
            gc.collect(1)
        while len(asyncio.all_tasks()) > 1:
            await asyncio.sleep(0.01)
        await self._check()

    async def _consume(self) -> None:
        self.run = run = self.machine.run(self.scenario.prompt, history=list(self.scenario.history))
        async for event in run:
            self.events.append(event)
            if self.scenario.abort_at is not None and self.scenario.abort_at(event):
                run.abort("The user pressed escape.")
            if self.leave:
                break
        if self.how == "close":
            await run.aclose()
            await run.aclose()
        if self.events and self.events[-1].type == "terminal":
            self.result = run.result
        self.run = None

    def inject(self) -> None:
        self.calls_at = self.model.call_count
        self.time_at = asyncio.get_running_loop().time()
        match self.how:
            case "abort":
                if self.run is not None:
                    self.run.abort("disturbed")
            case "cancel":
                assert self.consumer is not None
                self.consumer.cancel()
            case "close" | "drop":
                self.leave = True

    async def _check(self) -> None:
        assert self.model.open_streams == 0
        self._check_events()
        if self.result is None:
            return
        assert not violations(self.result.messages), self.result.messages
        if self.how == "abort" and self.result.detail == "disturbed":
            assert self.model.call_count == self.calls_at
            assert self.result.reason in ("aborted_streaming", "aborted_tools")
            assert asyncio.get_running_loop().time() - self.time_at <= self.machine.limits.abort_grace + 0.1
        elif self.calls_at is None or self.how == "abort":
            assert self.result.reason == self.scenario.reason
        await self._go_on()

    def _check_events(self) -> None:
        kinds = [event.type for event in self.events]
        assert kinds.count("terminal") == (1 if self.result is not None else 0)
        started = [
            event.tool_use_id for event in self.events if event.type == "progress" and event.kind == "tool_started"
        ]
        finished = [event for event in self.events if event.type == "progress" and event.kind == "tool_finished"]
        if self.result is None:
            return
        assert kinds[-1] == "terminal"
        assert sorted(started) == sorted(event.tool_use_id for event in finished)
        kept = {event.message_id for event in self.events if event.type == "assistant"}
        gone = {event.message_id for event in self.events if event.type == "tombstone"}
        shown = {event.message_id for event in self.events if event.type == "stream_event"}
        assert not kept & gone
        assert shown <= kept | gone
        for message in kept:
            deltas = "".join(
                event.text for event in self.events if event.type == "stream_event" and event.message_id == message
            )
            stored = next(event for event in self.events if event.type == "assistant" and event.message_id == message)
            texts = [block["text"] for block in stored.message["content"] if block["type"] == "text"]
            assert deltas.strip() == "".join(texts).strip()

    async def _go_on(self) -> None:
        """The next run on what is left is accepted by the rules of the API."""
        assert self.result is not None
        model = ScriptedModel([Reply("welcome back")])
        machine = AgentMachine(MODEL, tools=self.scenario.tools, deps=Deps(call_model=model), strict=True)
        again = await machine.run("and now?", history=self.result.messages)
        assert (again.reason, again.text) == ("completed", "welcome back"), (again, model.refusals)
