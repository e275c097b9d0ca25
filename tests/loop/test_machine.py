"""`AgentMachine` and `Run` as their users meet them: shapes of use, wrong usage, limits and what is left behind."""

from __future__ import annotations

import asyncio
import gc
import threading

import anthropic
import pytest

from fsm_agent import AgentMachine, ConfigurationError, Deps, LoopLimits, Price, tool
from fsm_agent.session.history import HistoryError
from fsm_agent.testing.script import Repeat, Reply, tool_use
from fsm_agent.testing.scripted import ScriptedModel
from fsm_agent.testing.server import MessagesServer
from tests.loop.scenarios import MODEL, echo, hang


def machine(*script: object, **options: object) -> tuple[AgentMachine, ScriptedModel]:
    model = ScriptedModel(script)  # type: ignore[arg-type]
    return AgentMachine(MODEL, deps=Deps(call_model=model), strict=True, **options), model  # type: ignore[arg-type]


async def test_a_run_is_awaited() -> None:
    agent, model = machine(Reply("hello"))
    result = await agent.run("hi")
    assert (result.reason, result.text, result.turns, result.requests, result.ok) == ("completed", "hello", 1, 1, True)
    assert result.messages == [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [{"type": "text", "text": "hello"}]},
    ]
    model.assert_complete()


async def test_a_run_is_iterated_and_the_terminal_event_is_last() -> None:
    agent, _ = machine(Reply("hello"))
    run = agent.run("hi")
    kinds = [event.type async for event in run]
    assert kinds.count("terminal") == 1
    assert kinds[-1] == "terminal"
    assert kinds[0] == "transition"
    assert run.result.text == "hello"
    assert [event async for event in run] == []


async def test_the_rest_of_a_run_is_awaited() -> None:
    agent, _ = machine(Reply(tool_use("echo", {"x": "a"})), Reply("done"), tools=[echo])
    run = agent.run("hi")
    assert (await anext(run)).type == "transition"
    assert (await run).text == "done"
    assert (await run) is run.result


async def test_nothing_happens_before_a_run_is_asked_for_an_event() -> None:
    agent, model = machine(Reply("hello"))
    run = agent.run("hi")
    await asyncio.sleep(0)
    assert model.call_count == 0
    with pytest.raises(RuntimeError, match="has not ended yet"):
        _ = run.result


def test_a_run_without_async() -> None:
    agent, _ = machine(Reply("hello"), Reply("again"))
    assert agent.run_sync("hi").text == "hello"
    assert agent.run_sync("hi").text == "again"
    del agent
    gc.collect()


async def test_run_sync_inside_a_loop_says_what_to_write() -> None:
    agent, model = machine()
    with pytest.raises(RuntimeError, match=r"write `await machine.run\(...\)` there"):
        agent.run_sync("hi")
    assert model.call_count == 0


async def test_one_machine_runs_many_conversations_at_once() -> None:
    agent = AgentMachine(
        MODEL, deps=Deps(call_model=ScriptedModel(lambda body: Reply(body["messages"][-1]["content"])))
    )
    results = await asyncio.gather(*(agent.run(f"hello {i}") for i in range(100)))
    assert [result.text for result in results] == [f"hello {i}" for i in range(100)]


async def test_the_next_run_goes_on_from_the_result() -> None:
    agent, model = machine(Reply("one"), Reply("two"), Reply("three"))
    first = await agent.run("a")
    second = await agent.run("b", history=first)
    third = await agent.run("c", history=second.messages)
    assert [message["role"] for message in third.messages] == ["user", "assistant"] * 3
    assert len(first.messages) == 2
    assert [len(call["messages"]) for call in model.calls] == [1, 3, 5]


async def test_a_failed_prompt_needs_no_retyping() -> None:
    from fsm_agent.testing.script import ApiError

    agent, _ = machine(ApiError(401, "authentication_error"), Reply("hello"))
    failed = await agent.run("a long prompt")
    assert failed.reason == "model_error"
    assert failed.messages == [{"role": "user", "content": "a long prompt"}]
    assert (await agent.run(None, history=failed)).text == "hello"


WRONG_PROMPTS: list[object] = ["", "   \n", [], None]


@pytest.mark.parametrize("prompt", WRONG_PROMPTS)
async def test_a_blank_prompt_is_refused_before_any_request(prompt: object) -> None:
    agent, model = machine()
    with pytest.raises(ValueError, match="prompt"):
        agent.run(prompt)  # type: ignore[arg-type]
    assert model.call_count == 0


async def test_an_unreadable_history_is_refused_before_any_request() -> None:
    agent, model = machine()
    with pytest.raises(HistoryError, match=r"messages\[0\]"):
        agent.run("hi", history=[{"role": "wizard", "content": "x"}])
    assert model.call_count == 0


def test_two_tools_of_one_name_are_refused() -> None:
    @tool(name="echo")
    async def other() -> str:
        """Another."""
        return ""

    with pytest.raises(ValueError, match="echo"):
        machine(tools=[echo, other])


@pytest.mark.parametrize("model", ["", "  ", None])
def test_a_model_needs_a_name(model: object) -> None:
    with pytest.raises(ConfigurationError, match="give the name of a model"):
        AgentMachine(model)  # type: ignore[arg-type]


def test_a_cost_limit_needs_prices() -> None:
    with pytest.raises(ConfigurationError, match=f"needs the prices of {MODEL}"):
        AgentMachine(MODEL, limits=LoopLimits(max_cost_usd=1))


async def test_the_cost_limit_ends_the_run() -> None:
    prices = {MODEL: Price(input=3, output=15)}
    usage = {"input_tokens": 100_000, "output_tokens": 50_000}
    agent, _ = machine(
        Repeat(Reply(tool_use("echo", {"x": "a"}), usage=usage), "always"),
        tools=[echo],
        prices=prices,
        limits=LoopLimits(max_cost_usd=2.0),
    )
    result = await agent.run("go")
    assert result.reason == "budget_exhausted"
    assert result.requests == 2
    assert "US dollars" in result.detail


async def test_an_abort_before_the_first_event_makes_no_request() -> None:
    agent, model = machine()
    run = agent.run("hi")
    run.abort("changed my mind")
    result = await run
    assert (result.reason, result.detail, model.call_count) == ("aborted_streaming", "changed my mind", 0)


async def test_an_abort_from_another_thread() -> None:
    agent, _ = machine(Reply(tool_use("hang")), tools=[hang])
    run = agent.run("hi")
    async for event in run:
        if event.type == "progress" and event.kind == "tool_started":
            threading.Thread(target=run.abort, args=("from a thread",)).start()
    assert run.result.reason == "aborted_tools"
    assert run.result.detail == "from a thread"


async def test_a_message_of_the_user_is_delivered_after_the_tools() -> None:
    agent, model = machine(Reply(tool_use("echo", {"x": "a"})), Reply("done"), tools=[echo])
    run = agent.run("hi")
    async for event in run:
        if event.type == "progress" and event.kind == "tool_started":
            run.send("and hurry")
    assert model.calls[1]["messages"][-1]["content"] == "and hurry"
    assert run.result.undelivered == ()


async def test_a_message_that_no_turn_was_left_for_is_given_back() -> None:
    agent, _ = machine(Reply("done"))
    run = agent.run("hi")
    async for event in run:
        if event.type == "assistant":
            run.send("wait")
    assert run.result.undelivered == ("wait",)
    with pytest.raises(ValueError, match="blank"):
        run.send(" ")


async def test_cancelling_the_consumer_cleans_up_first() -> None:
    ended: list[str] = []

    @tool
    async def slow() -> str:
        """Wait."""
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("tool")
        return ""

    agent, model = machine(Reply(tool_use("slow")), tools=[slow])

    async def consume() -> None:
        async for event in agent.run("hi"):
            if event.type == "progress":
                started.set()

    started = asyncio.Event()
    task = asyncio.create_task(consume())
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == ["tool"]
    assert model.open_streams == 0
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_timeout_around_a_run_is_a_timeout() -> None:
    agent, _ = machine(Reply(tool_use("hang")), tools=[hang])
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.02):
            await agent.run("hi")
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_dropped_run_leaves_nothing_behind() -> None:
    agent, model = machine(Reply(tool_use("hang")), tools=[hang])
    async for event in agent.run("hi"):
        if event.type == "progress":
            break
    gc.collect()
    while len(asyncio.all_tasks()) > 1:
        await asyncio.sleep(0)
    assert model.open_streams == 0


async def test_two_tasks_may_not_iterate_one_run() -> None:
    agent, _ = machine(Reply(tool_use("hang")), tools=[hang])
    async with agent.run("hi") as run:
        waiting = asyncio.create_task(anext(run))
        await asyncio.sleep(0)
        with pytest.raises(RuntimeError, match="already being iterated"):
            await anext(run)
        await waiting


async def test_a_stream_event_is_the_wires_and_can_be_had_as_the_sdks() -> None:
    agent, _ = machine(Reply("hello"))
    events = [event async for event in agent.run("hi") if event.type == "stream_event"]
    assert events[0].event["type"] == "message_start"
    assert "".join(event.text for event in events) == "hello"
    assert [type(event.typed()).__name__ for event in events] == [
        "RawMessageStartEvent",
        "RawContentBlockStartEvent",
        "RawContentBlockDeltaEvent",
        "RawContentBlockStopEvent",
        "RawMessageDeltaEvent",
        "RawMessageStopEvent",
    ]
    assert isinstance(events[0].typed(), anthropic.types.RawMessageStartEvent)


async def test_the_sdks_own_retries_are_off() -> None:
    from fsm_agent.testing.script import ApiError

    async with (
        MessagesServer([ApiError(529, "overloaded_error"), Reply("hi")]) as server,
        anthropic.AsyncAnthropic(base_url=server.url, api_key="test", max_retries=5) as client,
    ):
        agent = AgentMachine(MODEL, client=client, limits=LoopLimits(max_transport_retries=0), strict=True)
        result = await agent.run("hi")
    assert (result.reason, len(server.requests)) == ("model_error", 1)


async def test_a_paused_call_of_the_services_own_tool_is_taken_out_once_the_user_speaks() -> None:
    from fsm_agent.session.validator import violations
    from fsm_agent.testing.script import Stream

    search = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}
    agent, model = machine(
        Reply("Searching.", search, stop="pause_turn"), Stream(["message_start", {"text": "Fo"}, {"wait": "abort"}])
    )
    run = agent.run("go")
    async for event in run:
        if event.type == "stream_event" and event.text == "Fo":
            run.abort("stop")
    assert run.result.reason == "aborted_streaming"
    assert model.calls[1]["messages"][-1]["content"][-1] == search
    assert not violations(run.result.messages)
    assert "srvtoolu_1" not in str(run.result.messages)
