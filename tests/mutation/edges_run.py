"""The edges between a run and its host: aborts, messages, limits, hooks, the consumer."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Callable
from typing import Any

from fsm_agent import AgentMachine, Block, Deps, Hooks, LoopLimits, StopHookInput
from fsm_agent.model.prices import Price
from fsm_agent.testing import (
    ApiError,
    Chunking,
    Fault,
    Repeat,
    Reply,
    ScriptedModel,
    count_events,
    tool_use,
    with_fault,
)
from fsm_agent.testing.simulation import simulate
from tests.loop.scenarios import MODEL, TOOL, at, at_text, blocks, echo
from tests.mutation.edge_kit import machine_of

LONG_REPLY = Reply("a long answer " * 20)


def a_cancelled_run_stays_cancelled() -> None:
    """The event loop shuts down: it cancels the task of the run itself."""

    async def program() -> None:
        run = machine_of([Reply(tool_use("hang"))]).run("go")
        awaited = asyncio.ensure_future(run.finish())
        await asyncio.sleep(1)
        (task,) = (task for task in asyncio.all_tasks() if task.get_name().startswith("fsm_agent run"))
        task.cancel()
        await asyncio.wait({task, awaited})
        assert task.cancelled()

    simulate(program)


def a_cancelled_run_does_not_wait_for_its_consumer() -> None:
    async def program() -> None:
        run = machine_of([Reply(tool_use("hang"))]).run("go")
        events = aiter(run)
        while not at("progress", kind="tool_started")(await anext(events)):
            pass
        (task,) = (task for task in asyncio.all_tasks() if task.get_name().startswith("fsm_agent run"))
        task.cancel()
        done, _ = await asyncio.wait({task}, timeout=10)
        assert done, "the run did not end"

    simulate(program)


def the_first_reason_of_an_abort_is_kept() -> None:
    async def program() -> None:
        run = machine_of([LONG_REPLY]).run("go")
        async for event in run:
            if at_text(event):
                run.abort("first")
                run.abort("second")
        assert run.result.detail == "first", run.result

    simulate(program)


def a_stream_whose_cleanup_hangs_is_cancelled_again() -> None:
    async def stubborn(request: Any) -> AsyncGenerator[dict[str, Any], None]:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.Event().wait()
        yield {}

    async def program() -> None:
        machine = AgentMachine(MODEL, deps=Deps(call_model=stubborn), limits=LoopLimits(abort_grace=1))
        run = machine.run("go")
        awaited = asyncio.ensure_future(run.finish())
        await asyncio.sleep(1)
        run.abort("enough")
        done, _ = await asyncio.wait({awaited}, timeout=10)
        assert done, "the run did not end"

    simulate(program, max_time=100)


def what_was_told_of_one_turn_is_not_told_of_the_next() -> None:
    """The detail of the end is about the end."""

    async def program() -> None:
        result = await machine_of([ApiError(500, "api_error"), TOOL, Reply("done")]).run("go")
        assert result.ok, result
        assert result.detail == "", result.detail
        assert result.error is None, result.error

    simulate(program)


def a_stop_hook_sees_the_whole_conversation_and_what_came_before() -> None:
    seen: list[StopHookInput] = []

    async def hook(given: StopHookInput) -> None:
        seen.append(given)

    async def program() -> None:
        await machine_of([TOOL, Reply("done")], hooks=Hooks(stop=[hook])).run("go")
        assert [message["role"] for message in seen[0].messages] == ["user", "assistant", "user", "assistant"]
        assert seen[0].text == "done"
        assert not seen[0].stop_hook_active

    simulate(program)


def the_system_prompt_is_asked_for_once() -> None:
    asked: list[int] = []

    def system() -> str:
        asked.append(1)
        return "be brief"

    async def program() -> None:
        await machine_of([TOOL, TOOL, Reply("done")], system=system).run("go")
        assert asked == [1]

    simulate(program)


def messages_that_no_turn_was_left_for_are_given_back() -> None:
    async def program() -> None:
        run = machine_of([LONG_REPLY]).run("go")
        async for event in run:
            if at_text(event) and not run._driver.conversation.queued:
                run.send("one")
                run.send("two")
        assert [content if isinstance(content, str) else content[0]["text"] for content in run.result.undelivered] == [
            "one",
            "two",
        ]

    simulate(program)


def queued_messages_are_delivered_in_their_order() -> None:
    async def program() -> None:
        run = machine_of([TOOL, Reply("done")]).run("go")
        sent = False
        async for event in run:
            if event.type == "stream_event" and not sent:
                sent = True
                run.send("one")
                run.send("two")
        text = str(run.result.messages)
        assert not run.result.undelivered
        assert 0 < text.index("one") < text.index("two")

    simulate(program)


def the_consumer_is_waited_for() -> None:
    """Nothing is produced that was not asked for."""

    async def program() -> None:
        model = ScriptedModel([TOOL, Reply("done")])
        machine = AgentMachine(MODEL, tools=[echo], deps=Deps(call_model=model))
        run = machine.run("go")
        async for event in run:
            if event.type == "stream_request_start":
                break
        await asyncio.sleep(5)
        assert model.call_count <= 1
        assert not any(True for task in asyncio.all_tasks() if task.get_name().startswith("call "))
        await run.aclose()

    simulate(program)


def a_wait_is_as_long_as_it_is_told() -> None:
    async def program() -> None:
        begun = asyncio.get_running_loop().time()
        run = machine_of([ApiError(529, "overloaded_error")] * 3 + [Reply("hi")]).run("go")
        told = [e.detail["seconds"] async for e in run if e.type == "system" and e.subtype == "backoff"]
        assert len(told) == 3
        assert abs(asyncio.get_running_loop().time() - begun - sum(told)) < 0.01
        assert told == sorted(told)

    simulate(program)


def the_token_limit_is_reached_when_it_is_used_up() -> None:
    async def program() -> None:
        reply = Reply(tool_use("write", {"x": "a"}), usage={"input_tokens": 900, "output_tokens": 100})
        result = await machine_of([reply], limits=LoopLimits(max_total_tokens=1_000)).run("go")
        assert result.reason == "budget_exhausted", result

    simulate(program)


def the_cost_is_that_of_all_responses() -> None:
    async def program() -> None:
        reply = Reply(tool_use("echo", {"x": "a"}), usage={"input_tokens": 1, "output_tokens": 100})
        machine = machine_of(
            [reply, reply, Reply("never sent")],
            prices={MODEL: Price(10_000, 10_000)},
            limits=LoopLimits(max_cost_usd=1.5),
        )
        result = await machine.run("go")
        assert (result.reason, result.requests) == ("budget_exhausted", 2), result

    simulate(program)


def attempts_are_counted_for_each_turn() -> None:
    async def program() -> None:
        failed = ApiError(500, "api_error")
        run = machine_of([failed, TOOL, failed, failed, Reply("done")]).run("go")
        attempts = [event.attempt async for event in run if event.type == "stream_request_start"]
        assert attempts == [1, 2, 1, 2, 3]

    simulate(program)


def replies_with_one_id_are_told_apart() -> None:
    scripted = ScriptedModel([TOOL, Reply("done")])

    async def one_id(request: Any) -> AsyncGenerator[dict[str, Any], None]:
        async for event in scripted(request):
            start = event["type"] == "message_start"
            yield {**event, "message": {**event["message"], "id": "msg_1"}} if start else event

    async def program() -> None:
        run = AgentMachine(MODEL, tools=[echo], deps=Deps(call_model=one_id)).run("go")
        ids = [event.message_id async for event in run if event.type == "assistant"]
        assert len(set(ids)) == 2, ids

    simulate(program)


def what_was_said_before_a_call_is_not_the_answer() -> None:
    async def program() -> None:
        result = await machine_of([Reply("let me look", tool_use("echo", {"x": "a"})), Reply("done")]).run("go")
        assert result.text == "done"

    simulate(program)


def results_are_given_once() -> None:
    """The budget is spent in a turn that calls nothing, and a stop hook asks for one more."""

    async def program() -> None:
        expensive = Reply("done", usage={"input_tokens": 1, "output_tokens": 2_000})
        machine = machine_of([TOOL, expensive], hooks=Hooks(stop=[blocks]), limits=LoopLimits(max_total_tokens=1_500))
        result = await machine.run("go")
        assert result.reason == "budget_exhausted", result
        told = [block for m in result.messages for block in m["content"] if "tool_use_id" in block]
        assert len(told) == 1, told

    simulate(program)


def two_continuations_with_little_output_are_the_last() -> None:
    async def program() -> None:
        little = Repeat(Reply("a little", usage={"output_tokens": 300}), 9)
        result = await machine_of([little], limits=LoopLimits(token_budget=100_000)).run("go")
        assert result.requests == 3, result

    simulate(program)


def a_repaired_failure_is_not_that_of_an_aborted_repetition() -> None:
    async def program() -> None:
        run = machine_of([ApiError(500, "api_error"), LONG_REPLY]).run("go")
        async for event in run:
            if event.type == "stream_request_start" and event.attempt == 2:
                run.abort("enough")
        assert run.result.error is None

    simulate(program)


def a_discarded_reply_is_retracted_once_though_the_repetition_is_aborted() -> None:
    async def program() -> None:
        lost = Reply("a long answer " * 20, fault=Fault(3, "error"))
        run = machine_of([lost, Reply("again")]).run("go")
        retracted: list[str] = []
        async for event in run:
            if event.type == "tombstone":
                retracted.append(event.message_id)
            if event.type == "transition" and event.trigger == "overload_retry":
                run.abort("enough")
        assert len(retracted) == 1, retracted
        assert "a long answer" not in str(run.result.messages)

    simulate(program)


def a_call_whose_reply_spent_the_budget_does_not_run() -> None:
    async def program() -> None:
        reply = Reply(tool_use("write", {"x": "a"}), usage={"input_tokens": 900, "output_tokens": 200})
        result = await machine_of([reply], limits=LoopLimits(max_total_tokens=1_000)).run("go")
        assert "wrote" not in str(result.messages)

    simulate(program)


def an_output_that_was_cut_is_validated_as_one() -> None:
    async def program() -> None:
        cut = Reply("[1,", stop="max_tokens")
        result = await machine_of([cut, cut, Reply(" 2]")], output_type=list[int]).run("go")
        assert (result.reason, result.output) == ("completed", [1, 2]), result

    simulate(program)


class _Response:
    """A stream that notes when it is closed; no collector closes it for us."""

    def __init__(self, model: ScriptedModel, request: Any, closed: list[int]) -> None:
        self._events = model(request)
        self._closed = closed

    def __aiter__(self) -> Any:
        return self

    async def __anext__(self) -> Any:
        return await anext(self._events)

    async def aclose(self) -> None:
        self._closed.append(1)
        await self._events.aclose()


def each_response_is_closed() -> None:
    async def program() -> None:
        closed: list[int] = []
        model = ScriptedModel([TOOL, Reply("half", fault=Fault(3, "error")), LONG_REPLY])
        call: Any = lambda request: _Response(model, request, closed)  # noqa: E731
        run = AgentMachine(MODEL, tools=[echo], deps=Deps(call_model=call)).run("go")
        async for event in run:
            if event.type == "stream_event" and "long" in event.text:
                run.abort()
        assert len(closed) == model.call_count == 3, closed

    simulate(program)


def a_message_that_is_whole_survives_its_connection() -> None:
    async def program() -> None:
        whole = Reply("done")
        last = count_events(whole, Chunking()) - 1
        result = await machine_of([with_fault(whole, Fault(last, "reset"))]).run("go")
        assert (result.reason, result.requests) == ("completed", 1), result

    simulate(program)


def a_fresh_id_is_the_same_everywhere() -> None:
    async def program() -> None:
        call = Reply(tool_use("echo", {"x": "a"}, id="same"))
        run = machine_of([call, call, Reply("done")]).run("go")
        events = [event async for event in run]
        starts = [e.event for e in events if e.type == "stream_event" and e.event["type"] == "content_block_start"]
        told = [e["content_block"]["id"] for e in starts if e["content_block"]["type"] == "tool_use"]
        kept = [b["id"] for m in run.result.messages for b in m["content"] if "input" in b]
        assert told == kept, (told, kept)

    simulate(program)


def silence_is_as_long_as_it_may_be() -> None:
    async def silent(request: Any) -> AsyncGenerator[dict[str, Any], None]:
        await asyncio.Event().wait()
        yield {}

    async def program() -> None:
        limits = LoopLimits(stream_idle_timeout=10, max_transport_retries=0)
        begun = asyncio.get_running_loop().time()
        result = await AgentMachine(MODEL, deps=Deps(call_model=silent), limits=limits).run("go")
        assert result.reason == "model_error"
        assert abs(asyncio.get_running_loop().time() - begun - 10) < 0.01

    simulate(program)


def the_fallbacks_are_taken_in_order() -> None:
    async def program() -> None:
        overloaded = ApiError(529, "overloaded_error")
        machine = machine_of(
            [overloaded] * 8 + [Reply("hi")],
            fallback_models=["claude-haiku-4-5", "claude-opus-4-5"],
            limits=LoopLimits(max_transport_retries=50),
        )
        result = await machine.run("go")
        assert result.model == "claude-opus-4-5", result

    simulate(program)


def every_objection_is_told() -> None:
    async def first(given: StopHookInput) -> Block | None:
        return None if given.stop_hook_active else Block("one thing")

    async def second(given: StopHookInput) -> Block | None:
        return None if given.stop_hook_active else Block("another thing")

    async def program() -> None:
        result = await machine_of([Reply("a"), Reply("b")], hooks=Hooks(stop=[first, second])).run("go")
        assert "one thing" in str(result.messages)
        assert "another thing" in str(result.messages)

    simulate(program)


def no_request_asks_for_more_than_the_model_gives() -> None:
    asked: list[int] = []
    scripted = ScriptedModel([Reply("hi")])

    async def noted(request: Any) -> AsyncGenerator[dict[str, Any], None]:
        asked.append(request.json()["max_tokens"])
        async for event in scripted(request):
            yield event

    async def program() -> None:
        await AgentMachine(MODEL, deps=Deps(call_model=noted), output_ceilings={MODEL: 100}).run("go")
        assert asked == [100]

    simulate(program)


class _Nearly(random.Random):
    """Draws nearly the most each time."""

    def random(self) -> float:
        return 0.9


def each_wait_may_be_twice_as_long_as_the_one_before() -> None:
    async def program() -> None:
        model = ScriptedModel([ApiError(500, "api_error")] * 4 + [Reply("hi")])
        limits = LoopLimits(backoff_base=1, backoff_cap=4)
        run = AgentMachine(MODEL, deps=Deps(call_model=model, random=_Nearly()), limits=limits).run("go")
        told = [e.detail["seconds"] async for e in run if e.type == "system" and e.subtype == "backoff"]
        assert told == [0.9, 1.8, 3.6, 3.6], told

    simulate(program)


RUN_EDGES: tuple[Callable[[], None], ...] = (
    a_cancelled_run_stays_cancelled,
    a_cancelled_run_does_not_wait_for_its_consumer,
    the_first_reason_of_an_abort_is_kept,
    a_stream_whose_cleanup_hangs_is_cancelled_again,
    what_was_told_of_one_turn_is_not_told_of_the_next,
    a_stop_hook_sees_the_whole_conversation_and_what_came_before,
    the_system_prompt_is_asked_for_once,
    messages_that_no_turn_was_left_for_are_given_back,
    queued_messages_are_delivered_in_their_order,
    the_consumer_is_waited_for,
    a_wait_is_as_long_as_it_is_told,
    the_token_limit_is_reached_when_it_is_used_up,
    the_cost_is_that_of_all_responses,
    attempts_are_counted_for_each_turn,
    replies_with_one_id_are_told_apart,
    what_was_said_before_a_call_is_not_the_answer,
    results_are_given_once,
    two_continuations_with_little_output_are_the_last,
    a_repaired_failure_is_not_that_of_an_aborted_repetition,
    a_discarded_reply_is_retracted_once_though_the_repetition_is_aborted,
    a_call_whose_reply_spent_the_budget_does_not_run,
    an_output_that_was_cut_is_validated_as_one,
    each_wait_may_be_twice_as_long_as_the_one_before,
    each_response_is_closed,
    a_message_that_is_whole_survives_its_connection,
    a_fresh_id_is_the_same_everywhere,
    silence_is_as_long_as_it_may_be,
    the_fallbacks_are_taken_in_order,
    every_objection_is_told,
    no_request_asks_for_more_than_the_model_gives,
)
