"""What the engine itself costs per turn: no HTTP, no SSE, a model in process; with a short and with a long history."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Iterator
from itertools import count
from statistics import median
from typing import TYPE_CHECKING, Any

from benchmarks.canned_server import text_events, tool_events
from benchmarks.fresh import fresh
from benchmarks.loops import look_up, machine_for
from benchmarks.rows import Row

if TYPE_CHECKING:
    from fsm_agent.loop.agent import AgentMachine
    from fsm_agent.model import ModelRequest

__all__ = ["canned_model", "rows"]

TURNS = 300
TIMES = 3
SHORT, LONG = 100, 5_000
"""Messages of the history at the start."""


def rows() -> Iterator[Row]:
    at = {messages: _medians(messages) for messages in (SHORT, LONG)}
    for messages, (total, joining) in at.items():
        figures = f"{total:.2f} ms of CPU, {joining:.2f} of them for joining the request's bytes"
        yield Row(f"engine's own share of a turn, {messages:,} messages", figures, total - joining, 0.3, "ms")
    short, long = (total - joining for total, joining in at.values())
    yield Row(f"its growth from {SHORT} to {LONG:,} messages", "flat is 1.0", long / short, 1.2)


def _medians(messages: int) -> tuple[float, float]:
    figures = [fresh(own_cpu, messages=messages) for _ in range(TIMES)]
    return median(f["turn_ms"] for f in figures), median(f["joining_ms"] for f in figures)


def canned_model(turns: int) -> Any:
    """A `call_model` that yields events that were made before: `turns` tool turns, then a text, and so on."""
    replies = [tool_events(number) for number in range(turns)] + [text_events()]
    numbers = count()

    async def call_model(request: ModelRequest) -> AsyncGenerator[dict[str, Any], None]:  # noqa: ARG001
        for event in replies[next(numbers) % len(replies)]:
            yield event

    return call_model


def own_cpu(messages: int) -> dict[str, float]:
    return asyncio.run(_own_cpu(messages))


async def _own_cpu(messages: int) -> dict[str, float]:
    from fsm_agent import Deps

    machine = machine_for(TURNS, deps=Deps(call_model=canned_model(TURNS)))
    joining = _timed(machine)
    history = await _history(messages)
    await machine.run("Go.")  # a warm-up
    run = machine.run("Go on.", history=history)
    joining.clear()
    started = time.process_time()
    async for _ in run:
        pass
    seconds = time.process_time() - started
    assert run.result.requests == TURNS + 1
    return {"turn_ms": seconds * 1_000 / TURNS, "joining_ms": sum(joining) * 1_000 / TURNS}


def _timed(machine: AgentMachine) -> list[float]:
    """Seconds that each request of the machine takes to be put together, from now on."""
    from fsm_agent.model import RequestTemplate

    seconds: list[float] = []

    class Timed(RequestTemplate):
        def request(self, **options: Any) -> ModelRequest:
            started = time.process_time()
            made = super().request(**options)
            seconds.append(time.process_time() - started)
            return made

    machine.template = Timed(tools=machine.toolbox.definitions)
    return seconds


async def _history(messages: int) -> list[dict[str, Any]]:
    """So many messages of tool turns, with ids that no later turn has."""
    found: list[dict[str, Any]] = [{"role": "user", "content": "Go."}]
    for number in range(1_000_000, 1_000_000 + (messages - 2) // 2):
        call = {"type": "tool_use", "id": f"toolu_{number}", "name": "look_up", "input": {"key": "x", "depth": 1}}
        answer = {"type": "tool_result", "tool_use_id": call["id"], "content": await look_up(f"entry {number}", 1)}
        found += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [answer]}]
    return [*found, {"role": "assistant", "content": "Done."}]
