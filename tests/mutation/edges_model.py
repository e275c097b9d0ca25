"""The edges of the model: streams that break, replies that are odd, tools and containers of the API itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Any

from fsm_agent import AgentMachine, Deps, Hooks, LoopLimits, StopHookInput
from fsm_agent.testing import ApiError, Reply, ScriptedModel, Stream, text, thinking, tool_use
from fsm_agent.testing.simulation import simulate
from tests.loop.scenarios import BOX, CODE, FALLBACK, MODEL, OUTPUT, RUN_CODE, at_text, blocks_once, echo
from tests.mutation.edge_kit import blocks_in, machine_of, results_of

ECHO = tool_use("echo", {"x": "a"})


def a_consumer_may_take_its_time() -> None:
    async def program() -> None:
        run = machine_of([Reply("a long answer " * 20)], limits=LoopLimits(stream_idle_timeout=10)).run("go")
        async for event in run:
            if at_text(event):
                await asyncio.sleep(25)
        assert (run.result.reason, run.result.requests) == ("completed", 1), run.result

    simulate(program)


def an_abort_at_the_moment_of_silence_is_an_abort() -> None:
    runs: list[Any] = []

    async def silent(request: Any) -> AsyncGenerator[dict[str, Any], None]:
        loop = asyncio.get_running_loop()
        loop.call_at(loop.time() + 10, runs[0].abort, "enough")  # right behind the timer of the stream
        await asyncio.Event().wait()
        yield {}

    async def program() -> None:
        limits = LoopLimits(stream_idle_timeout=10)
        runs.append(AgentMachine(MODEL, deps=Deps(call_model=silent), limits=limits).run("go"))
        result = await runs[0]
        assert result.trace == ("context_ready", "abort"), result.trace
        assert result.error is None, result.error

    simulate(program)


def a_lost_reply_with_a_whole_call_is_repeated() -> None:
    """Its text is not kept: the call would be lost, or run twice."""

    async def program() -> None:
        lost = Stream(["message_start", text("Let me look."), tool_use("echo", {"x": "lost"}), {"text": "and"}, "eof"])
        result = await machine_of([lost, Reply("done")]).run("go")
        assert result.trace[1:3] == ("response_ended", "transport_retry"), result.trace
        assert "Let me look." not in str(result.messages)

    simulate(program)


def two_calls_of_a_message_have_two_ids() -> None:
    async def program() -> None:
        calls = [tool_use("echo", {"x": letter}, id="same") for letter in "ab"]
        result = await machine_of([Reply(*calls), Reply("done")]).run("go")
        assert results_of(result) == ["a", "b"], result
        assert len({block["id"] for block in blocks_in(result.messages, "tool_use")}) == 2

    simulate(program)


def an_id_that_the_api_does_not_take_back_is_replaced() -> None:
    async def program() -> None:
        result = await machine_of([Reply(tool_use("echo", {"x": "a"}, id="call:1.2")), Reply("done")]).run("go")
        assert (result.reason, results_of(result)) == ("completed", ["a"]), result
        assert blocks_in(result.messages, "tool_use")[0]["id"] == "call_1_2"

    simulate(program)


def a_message_that_ends_before_it_began_is_broken() -> None:
    async def program() -> None:
        end = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}}
        result = await machine_of([Stream([end, {"type": "message_stop"}]), Reply("done")]).run("go")
        assert (result.text, result.trace[2]) == ("done", "transport_retry"), result

    simulate(program)


def a_message_that_ends_inside_a_call_is_broken() -> None:
    async def program() -> None:
        end = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}}
        inside: list[Any] = ["message_start", text("Let me look."), {"tool_use_open": ["toolu_1", "echo"]}, end]
        result = await machine_of([Stream([*inside, {"type": "message_stop"}]), Reply("done")]).run("go")
        assert (result.text, result.trace[2]) == ("done", "transport_retry"), result

    simulate(program)


def a_call_of_a_reply_that_was_cut_is_left_out() -> None:
    async def program() -> None:
        limits = LoopLimits(max_output_tokens=1_000, escalated_max_output_tokens=1_000)
        result = await machine_of([Reply("half", ECHO, stop="max_tokens"), Reply("done")], limits=limits).run("go")
        assert (result.reason, result.text) == ("completed", "halfdone"), result
        assert not blocks_in(result.messages, "tool_use")

    simulate(program)


def a_pause_with_nothing_to_send_back_is_empty() -> None:
    async def program() -> None:
        for block in (text(" \n"), thinking("hm", signature=""), thinking("hm")):
            result = await machine_of([Reply(block, stop="pause_turn"), Reply("done")]).run("go")
            assert "empty_response_nudge" in result.trace, (block, result.trace)

    simulate(program)


def a_stop_hook_sees_what_will_be_sent() -> None:
    seen: list[Any] = []

    async def hook(given: StopHookInput) -> None:
        seen.extend(given.messages[-1]["content"])

    async def program() -> None:
        reply = Reply(thinking("hm", signature=""), text("  "), text("done"), thinking("signed, and last"))
        await machine_of([reply], hooks=Hooks(stop=[hook])).run("go")
        assert seen == [text("done")], seen

    simulate(program)


def thinking_is_asked_for_again_after_an_answer_without_it() -> None:
    async def program() -> None:
        model = ScriptedModel([Reply("hi"), Reply(thinking("hm"), ECHO), Reply("done")])
        machine = machine_of(model, thinking={"type": "enabled", "budget_tokens": 1_024})
        first = await machine.run("go")
        assert (await machine.run("and now?", history=first)).reason == "completed"
        assert ["thinking" in call for call in model.calls] == [True] * 3

    simulate(program)


def what_the_service_says_of_a_repetition_is_obeyed() -> None:
    async def program() -> None:
        hopeless = ApiError(500, "api_error", headers={"x-should-retry": "false"})
        result = await machine_of([hopeless]).run("go")
        assert (result.reason, result.requests) == ("model_error", 1), result

    simulate(program)


def every_529_is_overload() -> None:
    async def program() -> None:
        result = await machine_of([ApiError(529, "api_error")] * 4 + [Reply("hi")], fallback_models=[FALLBACK]).run(
            "go"
        )
        assert (result.model, result.reason) == (FALLBACK, "completed"), result

    simulate(program)


def code_of_the_service_that_calls_our_tool_keeps_its_result_and_its_container() -> None:
    async def program() -> None:
        model = ScriptedModel(
            [
                Reply(CODE, ECHO, extra=BOX),
                Reply("Once more.", ECHO),
                Reply(OUTPUT, "It is 1."),
                Reply("Bye."),
            ]
        )
        machine = machine_of(model, echo, RUN_CODE, hooks=Hooks(stop=[blocks_once()]))
        result = await machine.run("go")
        assert result.reason == "completed", result
        assert [call.get("container") for call in model.calls] == [None, *["container_1"] * 3]
        assert blocks_in(model.calls[2]["messages"], "server_tool_use") == [CODE]
        assert blocks_in(result.messages, "code_execution_tool_result") == [OUTPUT]
        assert blocks_in(result.messages, "server_tool_use") == [CODE]

    simulate(program)


def a_container_of_the_callers_own_is_kept() -> None:
    async def program() -> None:
        skills = [{"type": "anthropic", "skill_id": "pdf"}]
        for own, second in (("mine", "mine"), ({"skills": skills}, {"id": "container_1", "skills": skills})):
            model = ScriptedModel([Reply(ECHO, extra=BOX), Reply("done")])
            await machine_of(model, echo, RUN_CODE, extra={"container": own}).run("go")
            assert [call["container"] for call in model.calls] == [own, second]

    simulate(program)


def what_the_service_paused_is_gone_when_the_user_speaks() -> None:
    async def program() -> None:
        model = ScriptedModel(
            [Reply("Half.", CODE, stop="pause_turn"), Reply(thinking("hm"), stop="end_turn"), Reply("Done.")]
        )
        result = await machine_of(model, echo, RUN_CODE).run("go")
        assert result.trace.count("empty_response_nudge") == 1, result.trace
        assert blocks_in(model.calls[1]["messages"], "server_tool_use") == [CODE]
        assert blocks_in(model.calls[2]["messages"], "server_tool_use") == []
        assert result.reason == "completed", result

    simulate(program)


def what_the_service_paused_is_gone_when_the_run_ends() -> None:
    async def program() -> None:
        for limits in (LoopLimits(max_turns=1), LoopLimits(max_pauses=0), LoopLimits(max_total_tokens=1_000)):
            half = Reply("Half.", CODE, stop="pause_turn", usage={"output_tokens": 1_500})
            result = await machine_of([half], RUN_CODE, limits=limits).run("go")
            assert not result.ok
            assert blocks_in(result.messages, "server_tool_use") == [], result

    simulate(program)


def a_paused_call_that_comes_again_takes_the_place_of_the_first() -> None:
    async def program() -> None:
        half = Reply("Half.", CODE, stop="pause_turn")
        model = ScriptedModel([half, Reply("One.", ECHO), half, Reply(OUTPUT, "Done.")])
        result = await machine_of(model, echo, RUN_CODE).run("go")
        assert (result.reason, result.detail) == ("completed", ""), result
        assert blocks_in(result.messages, "server_tool_use") == [CODE]
        assert blocks_in(result.messages, "code_execution_tool_result") == [OUTPUT]

    simulate(program)


def a_paused_call_that_nothing_answered_is_gone_at_the_end() -> None:
    async def program() -> None:
        result = await machine_of(
            [Reply("Half.", CODE, stop="pause_turn"), Reply("No need.", ECHO), Reply("Done.")], echo, RUN_CODE
        ).run("go")
        assert (result.reason, result.detail) == ("completed", ""), result
        assert blocks_in(result.messages, "server_tool_use") == [], result

    simulate(program)


def what_is_alone_in_a_history_from_elsewhere_is_left_out() -> None:
    async def program() -> None:
        history: list[dict[str, Any]] = [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": [text("One."), CODE]},
            {"role": "user", "content": "and now?"},
            {"role": "assistant", "content": [{**OUTPUT, "tool_use_id": "srvtoolu_2"}, OUTPUT, text("Two.")]},
        ]
        model = ScriptedModel([Reply("Three.")])
        await machine_of(model, echo, RUN_CODE).run("and then?", history=history)
        assert [message["content"] for message in model.calls[0]["messages"][1::2]] == [[text("One.")], [text("Two.")]]

    simulate(program)


def a_result_that_nobody_asked_the_service_for_is_left_out() -> None:
    async def program() -> None:
        model = ScriptedModel([Reply(OUTPUT, ECHO), Reply(OUTPUT, "It is 1.")])
        result = await machine_of(model, echo, RUN_CODE).run("go")
        assert (result.reason, result.text) == ("completed", "It is 1."), result
        assert blocks_in(result.messages, "code_execution_tool_result") == []

    simulate(program)


def a_conversation_goes_on_with_code_that_waits_for_our_tool() -> None:
    """The host answers the call of ours itself, and the code of the service gets its result in the next run."""

    async def program() -> None:
        history: list[dict[str, Any]] = [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": [CODE, {**ECHO, "id": "toolu_1"}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "a"}]},
        ]
        result = await machine_of([Reply(OUTPUT, "It is 1.")], echo, RUN_CODE).run(None, history=history)
        assert blocks_in(result.messages, "code_execution_tool_result") == [OUTPUT], result

    simulate(program)


MODEL_EDGES: tuple[Callable[[], None], ...] = (
    a_consumer_may_take_its_time,
    an_abort_at_the_moment_of_silence_is_an_abort,
    a_lost_reply_with_a_whole_call_is_repeated,
    two_calls_of_a_message_have_two_ids,
    an_id_that_the_api_does_not_take_back_is_replaced,
    a_message_that_ends_before_it_began_is_broken,
    a_message_that_ends_inside_a_call_is_broken,
    a_call_of_a_reply_that_was_cut_is_left_out,
    a_pause_with_nothing_to_send_back_is_empty,
    a_stop_hook_sees_what_will_be_sent,
    thinking_is_asked_for_again_after_an_answer_without_it,
    what_the_service_says_of_a_repetition_is_obeyed,
    every_529_is_overload,
    code_of_the_service_that_calls_our_tool_keeps_its_result_and_its_container,
    a_container_of_the_callers_own_is_kept,
    what_the_service_paused_is_gone_when_the_user_speaks,
    what_the_service_paused_is_gone_when_the_run_ends,
    a_paused_call_that_comes_again_takes_the_place_of_the_first,
    a_paused_call_that_nothing_answered_is_gone_at_the_end,
    what_is_alone_in_a_history_from_elsewhere_is_left_out,
    a_result_that_nobody_asked_the_service_for_is_left_out,
    a_conversation_goes_on_with_code_that_waits_for_our_tool,
)
