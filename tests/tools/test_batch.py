"""The calls of one message: what runs together, what runs early, in which order results come, what an end leaves."""

from __future__ import annotations

import asyncio
import contextlib
import random
import threading
from typing import Any

import pytest

from fsm_agent.machine.limits import LoopLimits
from fsm_agent.testing.simulation import simulate
from fsm_agent.tools import Allow, ToolBatch, ToolCall, ToolContext, tool
from tests.tools.batches import Recorder, call


@tool(read_only=True)
async def echo(text: str, delay: float = 0) -> str:
    "Wait, then say it."
    await asyncio.sleep(delay)
    return text


class Log:
    """Tools that write down when they start and end, in virtual time."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.read = tool(name="read", read_only=True)(self._run)
        self.write = tool(name="write")(self._run)
        self.put = tool(name="put", idempotent=True, concurrency_safe=True)(self._run)
        self.compute = tool(name="compute", concurrency_safe=True)(self._run)
        self.tools = [self.read, self.write, self.put, self.compute]

    async def _run(self, name: str, seconds: float = 1) -> str:
        self.lines.append(f"+{name}")
        try:
            await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            self.lines.append(f"x{name}")
            raise
        self.lines.append(f"-{name}")
        return name


class TestOrder:
    """Fault `result-order`."""

    def test_results_come_in_call_order_in_a_hundred_repetitions(self) -> None:
        dice = random.Random(4)

        async def turn() -> list[dict[str, Any]]:
            recorder = Recorder(echo)
            delays = [dice.random() for _ in range(4)]
            calls = [call(f"id_{i}", "echo", text=f"call {i}", delay=delay) for i, delay in enumerate(delays)]
            recorder.offer(*calls[:2])
            assert await recorder.run(*calls) == "done"
            recorder.assert_balanced()
            return [result.block() for result in recorder.batch.results()]

        expected = [{"type": "tool_result", "tool_use_id": f"id_{i}", "content": f"call {i}"} for i in range(4)]
        for _ in range(100):
            assert simulate(turn).result == expected

    def test_safe_tools_take_the_time_of_the_slowest(self) -> None:
        async def turn() -> None:
            recorder = Recorder(echo)
            delays = [0.04, 0.01, 0.03, 0.02]
            await recorder.run(*[call(str(i), "echo", text="", delay=delay) for i, delay in enumerate(delays)])

        assert simulate(turn).elapsed == pytest.approx(0.04)

    def test_an_unsafe_tool_waits_for_all_before_it_and_holds_all_after_it(self) -> None:
        log = Log()

        async def turn() -> None:
            await Recorder(*log.tools).run(
                call("1", "read", name="a", seconds=2),
                call("2", "read", name="b"),
                call("3", "write", name="c"),
                call("4", "write", name="d"),
                call("5", "read", name="e"),
                call("6", "compute", name="f"),
            )

        assert simulate(turn).elapsed == 5
        assert log.lines == ["+a", "+b", "-b", "-a", "+c", "-c", "+d", "-d", "+e", "+f", "-e", "-f"]

    def test_no_more_run_together_than_allowed(self) -> None:
        log = Log()

        async def turn() -> None:
            limits = LoopLimits(max_concurrent_tools=2)
            calls = [call(str(i), "read", name=str(i)) for i in range(5)]
            await Recorder(*log.tools, limits=limits).run(*calls)

        assert simulate(turn).elapsed == 3
        assert log.lines[:4] == ["+0", "+1", "-0", "-1"] or log.lines[:4] == ["+0", "+1", "-0", "+2"]


class TestEarly:
    """Calls of which the block is complete while the reply still streams."""

    async def started_early(self, *names: str) -> list[str]:
        log = Log()
        recorder = Recorder(*log.tools)
        recorder.offer(*[call(str(i), name, name=name) for i, name in enumerate(names)])
        await asyncio.sleep(0.5)
        started = [line[1:] for line in log.lines]
        await recorder.batch.discard()
        return started

    @pytest.mark.parametrize(
        ("offered", "early"),
        [
            (["read", "read"], ["read", "read"]),
            (["read", "put"], ["read", "put"]),
            (["write", "read"], []),
            (["read", "write", "read"], ["read"]),
            (["compute", "read"], []),
            (["read", "compute", "read"], ["read"]),
        ],
    )
    def test_only_repeatable_safe_ones_start_and_none_overtakes_another(
        self, offered: list[str], early: list[str]
    ) -> None:
        assert simulate(lambda: self.started_early(*offered)).result == early

    def test_a_call_that_needs_no_run_holds_nobody(self) -> None:
        log = Log()

        async def turn() -> list[str]:
            recorder = Recorder(*log.tools)
            recorder.offer(call("1", "nothing"), call("2", "read", name=["wrong"]), call("3", "read", name="right"))
            await asyncio.sleep(0.5)
            await recorder.batch.discard()
            return log.lines

        assert simulate(turn).result == ["+right", "xright"]

    def test_an_early_result_is_used_and_the_tool_runs_once(self) -> None:
        log = Log()

        async def turn() -> list[Any]:
            recorder = Recorder(*log.tools)
            recorder.offer(call("1", "read", name="a"))
            await asyncio.sleep(3)
            await recorder.run(call("1", "read", name="a"), call("2", "write", name="b"))
            assert recorder.told("started") == ["1", "2"]
            return recorder.contents

        assert simulate(turn).result == ["a", "b"]
        assert log.lines == ["+a", "-a", "+b", "-b"]

    async def test_it_starts_at_once(self) -> None:
        log = Log()
        recorder = Recorder(*log.tools)
        recorder.offer(call("1", "read", name="a", seconds=100))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert log.lines == ["+a"]
        await recorder.batch.discard()

    @pytest.mark.parametrize("error", ["The input is cut.", "The input is no JSON object."])
    async def test_a_call_whose_input_is_not_whole_never_runs(self, error: str) -> None:
        log = Log()
        recorder = Recorder(*log.tools)
        broken = ToolCall("1", "read", {"name": "half"}, error)
        recorder.offer(broken)
        await recorder.run(broken)
        assert log.lines == []
        assert recorder.statuses == ["invalid_input"]
        assert error in recorder.contents[0]

    def test_a_call_that_was_offered_and_is_not_in_the_message_is_stopped(self) -> None:
        log = Log()

        async def turn() -> list[Any]:
            recorder = Recorder(*log.tools)
            recorder.offer(call("1", "read", name="stray"), call("2", "read", name="kept"))
            await asyncio.sleep(0)
            await recorder.run(call("2", "read", name="kept"))
            recorder.assert_balanced()
            assert [n.discarded for n in recorder.notices if n.kind == "finished"] == [True, False]
            return recorder.contents

        assert simulate(turn).result == ["kept"]
        assert "xstray" in log.lines


class TestDiscard:
    """Fault `partial-args-early-start`: the message is discarded after tools of it started."""

    def test_what_runs_is_cancelled_and_awaited_and_told_as_discarded(self) -> None:
        log = Log()

        async def turn() -> list[tuple[str, bool]]:
            recorder = Recorder(*log.tools)
            recorder.offer(call("1", "read", name="fast"), call("2", "read", name="slow", seconds=9))
            await asyncio.sleep(2)
            await recorder.batch.discard()
            recorder.assert_balanced()
            assert recorder.batch.results() == []
            return [(n.tool_use_id, n.discarded) for n in recorder.notices if n.kind == "finished"]

        run = simulate(turn)
        assert run.result == [("1", False), ("2", True)]
        assert run.elapsed == 2
        assert log.lines == ["+fast", "+slow", "-fast", "xslow"]

    async def test_what_is_offered_afterwards_is_ignored(self) -> None:
        log = Log()
        recorder = Recorder(*log.tools)
        await recorder.batch.discard()
        recorder.offer(call("1", "read", name="late"))
        await asyncio.sleep(0)
        assert recorder.notices == []

    def test_a_tool_that_ignores_it_holds_nobody_longer_than_the_grace(self) -> None:
        @tool(read_only=True)
        async def stubborn() -> None:
            for _ in range(5):
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.sleep(1)

        async def turn() -> float:
            recorder = Recorder(stubborn, limits=LoopLimits(abort_grace=0.25))
            recorder.offer(call("1", "stubborn"))
            await asyncio.sleep(0.5)
            await recorder.batch.discard()
            ended = asyncio.get_running_loop().time()
            recorder.assert_balanced()
            told = len(recorder.notices)
            await asyncio.sleep(20)
            assert len(recorder.notices) == told
            return ended

        assert simulate(turn).result == 0.75


class TestAbort:
    """Fault `interrupt-tool-unpaired`."""

    async def aborted(self, log: Log, *calls: ToolCall, at: float) -> Recorder:
        recorder = Recorder(*log.tools)
        work = asyncio.ensure_future(recorder.run(*calls))
        await asyncio.sleep(at)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        recorder.assert_balanced()
        return recorder

    def test_finished_running_and_waiting_calls_are_told_apart(self) -> None:
        log = Log()

        async def turn() -> Recorder:
            return await self.aborted(
                log,
                call("A", "read", name="slow", seconds=60),
                call("B", "read", name="fast"),
                call("C", "write", name="never"),
                at=2,
            )

        run = simulate(turn)
        assert run.elapsed == 2
        slow, fast, never = run.result.batch.results()
        assert [slow.tool_use_id, fast.tool_use_id, never.tool_use_id] == ["A", "B", "C"]
        assert [slow.status, fast.status, never.status] == ["interrupted", "ok", "not_run"]
        assert str(slow.content).startswith("Interrupted before it finished: the run was aborted. It only reads")
        assert fast.block() == {"type": "tool_result", "tool_use_id": "B", "content": "fast"}
        assert never.content == "The tool did not run: the run was aborted before its turn came."
        assert slow.is_error
        assert never.is_error
        assert log.lines == ["+slow", "+fast", "-fast", "xslow"]

    def test_an_interrupted_tool_that_may_have_had_an_effect_says_so(self) -> None:
        async def turn() -> Any:
            return (await self.aborted(Log(), call("A", "write", name="w"), at=0.5)).contents[0]

        assert "What it had done by then is not known; check before you do it again." in simulate(turn).result

    def test_it_takes_no_longer_than_the_grace_and_a_late_result_changes_nothing(self) -> None:
        """Fault `late-duplicate-result`."""
        kept: list[ToolContext[Any]] = []

        @tool
        async def stubborn(context: ToolContext[Any]) -> str:
            kept.append(context)
            until = asyncio.get_running_loop().time() + 5
            while (left := until - asyncio.get_running_loop().time()) > 0:
                try:
                    await asyncio.sleep(left)
                except asyncio.CancelledError:
                    assert context.aborted
            context.progress("too late")
            return "too late"

        async def turn() -> tuple[float, list[Any], list[Any], int]:
            recorder = Recorder(stubborn, limits=LoopLimits(abort_grace=0.5))
            work = asyncio.ensure_future(recorder.run(call("1", "stubborn")))
            await asyncio.sleep(1)
            work.cancel()
            await asyncio.wait({work})
            ended, contents, told = asyncio.get_running_loop().time(), recorder.contents, len(recorder.notices)
            await asyncio.sleep(10)
            kept[0].progress("long after")
            await asyncio.sleep(0)
            assert len(recorder.notices) == told
            return ended, contents, recorder.contents, told

        ended, at_once, later, told = simulate(turn).result
        assert ended == 1.5
        assert at_once == later
        assert "Interrupted" in later[0]
        assert told == 2

    def test_what_a_tool_returns_while_it_is_told_to_stop_is_kept_as_what_it_had_so_far(self) -> None:
        @tool
        async def careful() -> str:
            try:
                await asyncio.sleep(10)
            except asyncio.CancelledError:
                await asyncio.sleep(0.1)
                return "rolled back 3 of 5 rows"
            return "done"

        async def turn() -> Recorder:
            recorder = Recorder(careful)
            work = asyncio.ensure_future(recorder.run(call("1", "careful")))
            await asyncio.sleep(1)
            work.cancel()
            await asyncio.wait({work})
            return recorder

        recorder = simulate(turn).result
        assert recorder.statuses == ["interrupted"]
        assert recorder.contents[0].endswith("So far:\nrolled back 3 of 5 rows")

    def test_what_a_tool_kept_for_this_case_is_shown(self) -> None:
        @tool
        async def slow(context: ToolContext[Any]) -> None:
            context.keep_partial("first half " + "x" * 100_000)
            await asyncio.sleep(10)

        async def turn() -> str:
            recorder = Recorder(slow)
            work = asyncio.ensure_future(recorder.run(call("1", "slow")))
            await asyncio.sleep(1)
            work.cancel()
            await asyncio.wait({work})
            content: str = recorder.contents[0]
            return content

        content = simulate(turn).result
        assert "So far:\nfirst half" in content
        assert len(content) < 25_000

    def test_a_second_cancellation_does_not_wait_for_the_grace(self) -> None:
        @tool
        async def stubborn() -> None:
            try:
                await asyncio.sleep(100)
            except asyncio.CancelledError:
                await asyncio.sleep(3)

        async def turn() -> float:
            recorder = Recorder(stubborn, limits=LoopLimits(abort_grace=2))
            work = asyncio.ensure_future(recorder.run(call("1", "stubborn")))
            await asyncio.sleep(1)
            work.cancel()
            await asyncio.sleep(0.5)
            work.cancel()
            await asyncio.wait({work})
            ended = asyncio.get_running_loop().time()
            assert recorder.statuses == ["interrupted"]
            await asyncio.sleep(5)
            return ended

        assert simulate(turn).result == 1.5

    async def test_calls_are_answered_although_the_batch_was_cancelled_before_its_first_step(self) -> None:
        recorder = Recorder(echo)
        work = asyncio.ensure_future(recorder.batch.run([call("1", "echo", text="a")]))
        work.cancel()
        await asyncio.wait({work})
        await recorder.batch.stop([call("1", "echo", text="a")])
        assert recorder.statuses == ["not_run"]
        assert recorder.notices == []

    def test_stop_answers_all_calls_and_keeps_a_true_result(self) -> None:
        log = Log()

        async def turn() -> Recorder:
            recorder = Recorder(*log.tools)
            calls = [
                call("1", "read", name="done"),
                call("2", "read", name="running", seconds=9),
                call("3", "write", name="w"),
            ]
            recorder.offer(*calls)
            await asyncio.sleep(2)
            await recorder.batch.stop(calls)
            return recorder

        assert simulate(turn).result.statuses == ["ok", "interrupted", "not_run"]
        assert "xrunning" in log.lines

    def test_an_abort_at_the_moment_when_a_tool_ends_keeps_its_true_result(self) -> None:
        async def turn() -> Recorder:
            return await self.aborted(Log(), call("A", "write", name="w", seconds=1), at=1)

        recorder = simulate(turn).result
        assert recorder.statuses in (["ok"], ["interrupted"])
        assert (recorder.notices[-1].is_error is False) == (recorder.statuses == ["ok"])


class TestTime:
    def test_a_tool_out_of_time_is_stopped_and_told_so(self) -> None:
        log = Log()
        hasty = tool(name="hasty", timeout=2)(log._run)

        async def turn() -> Recorder:
            recorder = Recorder(hasty, *log.tools)
            await recorder.run(call("1", "hasty", name="h", seconds=9), call("2", "read", name="r", seconds=3))
            return recorder

        run = simulate(turn)
        assert run.elapsed == 5  # an undeclared tool runs alone
        assert run.result.statuses == ["timeout", "ok"]
        assert run.result.contents[0].startswith("Stopped: it took longer than 2 seconds.")
        assert run.result.notices[1].seconds == 2
        assert log.lines == ["+h", "xh", "+r", "-r"]

    def test_without_a_time_of_its_own_the_limit_of_the_run_holds(self) -> None:
        async def turn() -> Recorder:
            recorder = Recorder(echo, limits=LoopLimits(tool_timeout=7))
            await recorder.run(call("1", "echo", text="", delay=100))
            return recorder

        run = simulate(turn)
        assert run.elapsed == 7
        assert run.result.statuses == ["timeout"]

    def test_a_tool_that_ignores_its_end_is_left_behind_and_the_next_one_runs(self) -> None:
        @tool(timeout=1)
        async def stubborn() -> None:
            try:
                await asyncio.sleep(100)
            except asyncio.CancelledError:
                await asyncio.sleep(50)

        async def turn() -> tuple[float, list[str]]:
            recorder = Recorder(stubborn, echo, limits=LoopLimits(abort_grace=0.5))
            await recorder.run(call("1", "stubborn"), call("2", "echo", text="next"))
            ended = asyncio.get_running_loop().time()
            await asyncio.sleep(100)
            recorder.assert_balanced()
            return ended, recorder.statuses

        assert simulate(turn).result == (1.5, ["timeout", "ok"])

    def test_an_abort_while_a_tool_cleans_up_after_its_time_still_waits_for_the_clean_up(self) -> None:
        cleaned: list[float] = []

        @tool(timeout=1)
        async def careful() -> None:
            try:
                await asyncio.sleep(100)
            finally:
                await asyncio.sleep(0.5)
                cleaned.append(asyncio.get_running_loop().time())

        async def turn() -> None:
            recorder = Recorder(careful, limits=LoopLimits(abort_grace=1))
            work = asyncio.ensure_future(recorder.run(call("1", "careful")))
            await asyncio.sleep(1.2)
            work.cancel()
            await asyncio.wait({work})
            assert recorder.statuses == ["interrupted"]

        assert simulate(turn).elapsed == 1.5
        assert cleaned == [1.5]


class TestThreads:
    """Fault `sync-tool-blocks`."""

    async def test_the_loop_goes_on_while_sync_tools_block_and_they_block_together(self) -> None:
        barrier = threading.Barrier(2, timeout=5)
        let_go = threading.Event()

        @tool(concurrency_safe=True)
        def block() -> str:
            barrier.wait()
            assert let_go.wait(5)
            return "went on"

        recorder = Recorder(block)
        work = asyncio.ensure_future(recorder.run(call("1", "block"), call("2", "block")))
        beats = 0
        while beats < 5:
            await asyncio.sleep(0.001)
            beats += 1
        assert not work.done()
        let_go.set()
        assert await work == "done"
        assert recorder.contents == ["went on", "went on"]

    async def test_an_abort_does_not_wait_for_a_thread_and_its_late_return_is_dropped(self) -> None:
        let_go = threading.Event()
        returned = threading.Event()

        @tool
        def block(context: ToolContext[Any]) -> str:
            assert let_go.wait(5)
            context.progress("late")
            returned.set()
            return "late"

        recorder = Recorder(block)
        work = asyncio.ensure_future(recorder.run(call("1", "block")))
        await asyncio.sleep(0.005)
        started = asyncio.get_running_loop().time()
        work.cancel()
        await asyncio.wait({work})
        assert asyncio.get_running_loop().time() - started < 0.5
        assert recorder.statuses == ["interrupted"]
        told = len(recorder.notices)
        let_go.set()
        assert await asyncio.to_thread(returned.wait, 5)
        await asyncio.sleep(0.005)
        assert recorder.statuses == ["interrupted"]
        assert len(recorder.notices) == told

    async def test_a_function_in_a_thread_can_see_that_it_is_not_waited_for(self) -> None:
        saw = threading.Event()

        @tool
        def patient(context: ToolContext[Any]) -> None:
            assert not context.aborted
            assert context.stopped.wait(5)
            saw.set()

        recorder = Recorder(patient)
        work = asyncio.ensure_future(recorder.run(call("1", "patient")))
        await asyncio.sleep(0.005)
        work.cancel()
        await asyncio.wait({work})
        assert await asyncio.to_thread(saw.wait, 5)


class TestContext:
    async def test_it_says_which_call_it_is(self) -> None:
        seen: list[ToolContext[str]] = []

        @tool
        async def look(context: ToolContext[str]) -> None:
            seen.append(context)

        limits = LoopLimits(max_turns=4)
        recorder = Recorder(look, limits=limits, deps="the database")
        await recorder.run(call("a", "look"), call("b", "look"))
        assert [context.tool_use_id for context in seen] == ["a", "b"]
        assert [context.idempotency_key for context in seen] == ["run/3/tools/0", "run/3/tools/1"]
        assert {(context.deps, context.run_id, context.turn) for context in seen} == {("the database", "run", 3)}
        assert seen[0].limits is limits

    async def test_the_key_of_a_call_is_the_same_early_or_late_and_another_in_a_repeated_reply(self) -> None:
        keys: list[str] = []

        @tool(read_only=True)
        async def look(context: ToolContext[None]) -> None:
            keys.append(context.idempotency_key)

        recorder = Recorder(look)
        recorder.offer(call("a", "look"))
        await recorder.run(call("a", "look"), call("b", "look"))
        again = Recorder(look, attempt=2)
        await again.run(call("c", "look"))
        assert keys == ["run/3/tools/0", "run/3/tools/1", "run/3/tools/2.0"]

    async def test_a_tool_cannot_change_the_models_message(self) -> None:
        @tool
        async def greedy(things: Any) -> None:
            things.clear()

        given = call("1", "greedy", things=["a", {"b": ["c"]}])
        await Recorder(greedy).run(given)
        assert given.input == {"things": ["a", {"b": ["c"]}]}


class TestUnknown:
    """Fault `unknown-tool`."""

    async def test_it_is_answered_and_its_sibling_runs(self) -> None:
        asked: list[str] = []

        async def permission(call: ToolCall, *_: Any) -> Allow:
            asked.append(call.name)
            return Allow()

        recorder = Recorder(echo, permission=permission)
        calls = [call("1", "Echo", text="a"), call("2", "", text="b"), call("3", "echo", text="c")]
        recorder.offer(*calls)
        assert await recorder.run(*calls) == "done"
        assert recorder.statuses == ["unknown_tool", "unknown_tool", "ok"]
        assert recorder.contents[0] == "There is no tool named 'Echo'. Do you mean 'echo'? The tools are: echo."
        assert asked == ["echo"]
        assert recorder.told("started") == ["3"]


async def test_a_message_without_calls_is_done_at_once() -> None:
    recorder = Recorder(echo)
    assert await recorder.run() == "done"
    assert recorder.batch.results() == []


async def test_progress_is_told_between_start_and_finish_and_merged() -> None:
    @tool
    async def chatty(context: ToolContext[Any]) -> None:
        for number in range(1_000):
            context.progress(f"{number};")
        await asyncio.sleep(0.001)
        context.progress({"done": 1})
        context.progress({"done": 2})

    recorder = Recorder(chatty)
    await recorder.run(call("1", "chatty"))
    kinds = [notice.kind for notice in recorder.notices]
    assert kinds == ["started", "progress", "progress", "finished"]
    assert recorder.notices[1].data.startswith("0;1;2;")
    assert recorder.notices[1].data.endswith("999;")
    assert recorder.notices[2].data == {"done": 2}


async def test_progress_from_a_thread_is_told_on_the_loop() -> None:
    heard: list[int] = []

    @tool
    def chatty(context: ToolContext[Any]) -> None:
        for _ in range(10_000):
            context.progress("x")

    recorder = Recorder(chatty)
    recorder.batch = ToolBatch(
        recorder.batch._toolbox,
        limits=LoopLimits(),
        run_id="r",
        turn=1,
        notify=lambda notice: heard.append(threading.get_ident()),
    )
    await recorder.batch.run([call("1", "chatty")])
    assert set(heard) == {threading.get_ident()}
    assert 3 <= len(heard) < 5_000
