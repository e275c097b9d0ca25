"""Long streams, slow consumers, many conversations, many turns: memory stays flat and all of them end."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import anthropic
import httpx2
import psutil
import pytest

from fsm_agent import AgentMachine, Deps, LoopLimits
from fsm_agent.session import message
from fsm_agent.testing import MessagesServer, Reply, ScriptedModel, Stream, text, tool_use
from tests.loop.scenarios import MODEL, SCENARIOS, echo

DELTAS = 200_000


def much_text() -> Stream:
    deltas: list[Any] = [{"text": "0123456789"}] * DELTAS
    return Stream(["message_start", *deltas, "content_block_stop", {"message_delta": "end_turn"}, "message_stop"])


@pytest.mark.slow
async def test_a_long_stream_to_a_slow_consumer_keeps_memory_flat() -> None:
    async with (
        MessagesServer([much_text()]) as server,
        anthropic.AsyncAnthropic(base_url=server.url, api_key="test") as client,
    ):
        machine = AgentMachine(MODEL, client=client, strict=True)
        run = machine.run("go")
        count, sizes = 0, []
        process = psutil.Process()
        async for event in run:
            if event.type == "stream_event":
                count += len(event.text)
                if count % 200_000 == 10:
                    await asyncio.sleep(0.05)  # the server has long sent what the socket holds, and waits
                    sizes.append(process.memory_info().rss)
    assert count == 10 * DELTAS
    assert len(run.result.text) == 10 * DELTAS
    # Once it is under way (the first fifth), only the text itself grows: fragments of 60 bytes for 10 characters each.
    assert sizes[-1] - sizes[2] < 40_000_000


@pytest.mark.slow
async def test_a_thousand_conversations_at_once_all_end() -> None:
    def answer(body: dict[str, Any]) -> Reply:
        messages = body["messages"]
        if len(messages) == 1:
            return Reply(tool_use("echo", {"x": messages[0]["content"]}))
        return Reply(text(messages[2]["content"][0]["content"]))

    long = LoopLimits(stream_idle_timeout=600, stream_progress_timeout=600)
    pool = anthropic.DefaultAsyncHttpxClient(limits=httpx2.Limits(max_connections=100), timeout=600)
    async with (
        MessagesServer(answer) as server,
        anthropic.AsyncAnthropic(base_url=server.url, api_key="test", http_client=pool, timeout=600) as client,
    ):
        machine = AgentMachine(MODEL, client=client, tools=[echo], limits=long)
        results = await asyncio.gather(*(machine.run(f"number {i}") for i in range(1_000)))
    assert [result.text for result in results] == [f"number {i}" for i in range(1_000)]
    assert {result.reason for result in results} == {"completed"}


async def test_nothing_of_asyncio_complains(caplog: pytest.LogCaptureFixture) -> None:
    """In the debug mode of asyncio, with every kind of end."""
    loop = asyncio.get_running_loop()
    loop.set_debug(True)
    loop.slow_callback_duration = 60
    complaints: list[dict[str, Any]] = []
    loop.set_exception_handler(lambda _, context: complaints.append(context))
    with caplog.at_level(logging.WARNING, logger="asyncio"):
        for name in ("one tool", "truncated for ever", "an abort while a tool runs", "a hook that stops after a tool"):
            scenario = SCENARIOS[name]
            await scenario.play(scenario.build(deps=Deps(call_model=ScriptedModel(scenario.script))))
    assert complaints == []
    assert [record.getMessage() for record in caplog.records if record.name == "asyncio"] == []
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_the_work_of_a_turn_does_not_grow_with_the_conversation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted, not timed: each message is encoded once, however long the conversation is."""
    encodings: list[object] = []
    original = message.encoded

    def counting(value: object) -> bytes:
        encodings.append(value)
        return original(value)

    monkeypatch.setattr("fsm_agent.session.history.encoded", counting)
    for turns in (50, 150):
        encodings.clear()
        script = [*([Reply(tool_use("echo", {"x": "a"}))] * turns), Reply("done")]
        machine = AgentMachine(MODEL, tools=[echo], deps=Deps(call_model=ScriptedModel(script, validate=False)))
        result = await machine.run("go")
        assert result.turns == turns + 1
        assert len(encodings) == len(result.messages) == 2 * turns + 2
