"""What the engine itself costs per turn: no HTTP, no SSE, a model in process; with a short and with a long history."""

from __future__ import annotations

import asyncio
import gc
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
FIRST_TURN = 3
"""The first that counts: in the one before, a history from outside is looked at once, to the last message."""
TIMES = 3
SHORT, LONG = 100, 5_000
"""Messages of the history at the start."""


def rows() -> Iterator[Row]:
    at = {messages: _medians(messages) for messages in (SHORT, LONG)}
    for messages, (total, joining, collecting) in at.items():
        figures = f"{total:.2f} ms of CPU; joining the request's bytes, {joining:.2f}, is left out; "
        figures += f"Python's garbage collector, {collecting:.2f}, is not"
        yield Row(f"engine's own share of a turn, {messages:,} messages", figures, total - joining, 0.3, "ms")
    short, long = (total - joining for total, joining, _ in at.values())
    yield Row(f"its growth from {SHORT} to {LONG:,} messages", "flat is 1.0", long / short, 1.2)


def _medians(messages: int) -> tuple[float, float, float]:
    figures = [fresh(own_cpu, messages=messages) for _ in range(TIMES)]
    total, joining, collecting = (median(f[name] for f in figures) for name in ("turn_ms", "joining_ms", "gc_ms"))
    return total, joining, collecting


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
    started, collecting = 0.0, _collecting()
    async for event in run:
        if event.type == "stream_request_start" and event.request == FIRST_TURN:
            joining.clear()
            collecting.clear()
            started = time.process_time()
    seconds = time.process_time() - started
    assert run.result.requests == TURNS + 1
    turns = TURNS + 1 - FIRST_TURN
    spent = {"turn_ms": seconds, "joining_ms": sum(joining), "gc_ms": sum(collecting)}
    return {name: value * 1_000 / turns for name, value in spent.items()}


def _collecting() -> list[float]:
    """Seconds of each collection of garbage, from now on."""
    seconds: list[float] = []
    began = 0.0

    def note(phase: str, _: dict[str, int]) -> None:
        nonlocal began
        if phase == "start":
            began = time.process_time()
        else:
            seconds.append(time.process_time() - began)

    gc.callbacks.append(note)
    return seconds


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
