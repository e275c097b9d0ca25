"""The edges of tools: when calls start and stop, and what becomes of their results."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from fsm_agent import Hooks, LoopLimits, ToolContext, tool
from fsm_agent.testing import Reply, Stream, tool_use
from fsm_agent.testing.simulation import simulate
from fsm_agent.tools import Tool, ToolBatch, Toolbox, ToolCall
from fsm_agent.tools.gate import Allow, Change, Defer, Note
from tests.loop.scenarios import at, echo
from tests.mutation.edge_kit import blocks_in, machine_of, results_of

ONE_LETTER = {"x": "a"}


class Log:
    """Tools that take a second and note when they begin and end."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.now = 0
        self.most = 0
        self.most_beside_alone = 0
        self._alone = 0

    async def work(self, name: str, *, alone: bool = False) -> str:
        self.begun.append(name)
        self.now += 1
        self._alone += alone
        self.most = max(self.most, self.now)
        if self._alone:
            self.most_beside_alone = max(self.most_beside_alone, self.now)
        try:
            await asyncio.sleep(1)
        finally:
            self.now -= 1
            self._alone -= alone
        return f"did {name}"

    @property
    def tools(self) -> list[Tool[..., Any]]:
        """`look` may run beside others and start early, `alone` only reads too, `write` may not be repeated."""

        @tool(read_only=True)
        async def look(x: str = "") -> str:
            """Look."""
            return await self.work(f"look{x}")

        @tool(read_only=True, concurrency_safe=False)
        async def alone(x: str = "") -> str:
            """Look, with nobody beside."""
            return await self.work(f"alone{x}", alone=True)

        @tool
        async def write(x: str = "") -> str:
            """Write."""
            return await self.work(f"write{x}", alone=True)

        return [look, alone, write]


def what_an_interrupted_tool_had_so_far_is_kept() -> None:
    @tool
    async def careful(context: ToolContext) -> str:
        """Keep one half, and return the other when told to stop."""
        context.keep_partial("the first half")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0.1)
        return "the second half"

    async def program() -> None:
        run = machine_of([Reply(tool_use("careful"))], careful).run("go")
        async for event in run:
            if at("progress", kind="tool_started")(event):
                run.abort("enough")
        (told,) = results_of(run.result)
        assert "the first half" in told, told
        assert "the second half" in told, told

    simulate(program)


def what_a_tool_returned_before_the_abort_reached_it_is_its_result() -> None:
    """The tool aborts its own run and ends some steps later: it is stopped, or its result is the true one."""

    seen = set[bool]()
    for steps in range(8):
        done, told = _ended_after(steps)
        assert (told == "all of it") == done, (steps, told)
        seen.add(done)
    assert seen == {True, False}


def _ended_after(steps: int) -> tuple[bool, str]:
    """Whether the tool came to its end, and what its result says."""
    ended: list[int] = []
    runs: list[Any] = []

    @tool
    async def last() -> str:
        """Abort the run, and end some steps later."""
        runs[0].abort("enough")
        for _ in range(steps):
            await asyncio.sleep(0)
        ended.append(steps)
        return "all of it"

    async def program() -> str:
        runs.append(machine_of([Reply(tool_use("last"))], last).run("go"))
        (told,) = results_of(await runs[0])
        return str(told)

    told = simulate(program).result
    return bool(ended), told


def no_hook_is_asked_about_a_call_that_was_aborted() -> None:
    asked: list[str] = []

    async def hook(call: Any, used: Any, result: Any, context: Any) -> None:
        asked.append(call.name)

    async def program() -> None:
        run = machine_of([Reply(tool_use("hang"))], hooks=Hooks(after_tool=[hook])).run("go")
        async for event in run:
            if at("progress", kind="tool_started")(event):
                run.abort("enough")
        assert asked == []

    simulate(program)


def results_enter_the_history_within_their_budget() -> None:
    @tool
    async def much() -> str:
        """Give much text."""
        return "word " * 2_000

    async def program() -> None:
        limits = LoopLimits(tool_result_max_chars=300)
        run = machine_of([Reply(tool_use("much")), Reply("done")], much, limits=limits).run("go")
        events = [event async for event in run]
        (told,) = [e.message for e in events if e.type == "user" and e.purpose == "tool_results"]
        assert len(told["content"][0]["content"]) <= 300, told
        assert not [event for event in events if event.type == "context_edit"]

    simulate(program)


def a_tool_that_runs_alone_does_not_start_early() -> None:
    """Though it may be repeated: the reply may still be taken back."""

    async def program() -> None:
        log = Log()
        broken = Stream(["message_start", tool_use("alone"), {"text": "and"}, {"sleep": 1}, "reset"])
        result = await machine_of([broken, Reply("done")], *log.tools).run("go")
        assert result.reason == "completed", result
        assert log.begun == []

    simulate(program)


def a_tool_that_started_early_for_nothing_says_so() -> None:
    async def program() -> None:
        broken = Stream(["message_start", tool_use("look"), {"text": "and"}, "reset"])
        run = machine_of([broken, Reply(tool_use("look")), Reply("done")], *Log().tools).run("go")
        ended = [e.discarded async for e in run if e.type == "progress" and e.kind == "tool_finished"]
        assert ended == [True, False], ended

    simulate(program)


def an_abort_before_the_calls_turn_starts_nothing() -> None:
    async def program() -> None:
        log = Log()
        run = machine_of([Reply(tool_use("look"), tool_use("write"))], *log.tools).run("go")
        async for event in run:
            if at("transition", trigger="tools_requested")(event):
                run.abort("enough")
        await asyncio.sleep(5)
        assert log.begun == ["look"], log.begun
        assert len(results_of(run.result)) == 2

    simulate(program)


def nothing_runs_after_a_call_that_waits_for_a_decision() -> None:
    async def ask(call: Any, used: Any, context: Any) -> Allow | Defer:
        return Defer("A person must decide.") if call.input["x"] == "1" else Allow()

    async def program() -> None:
        log = Log()
        calls = [tool_use("write", {"x": number}) for number in "012"]
        result = await machine_of([Reply(*calls)], *log.tools, can_use_tool=ask).run("go")
        assert result.reason == "tool_deferred", result
        assert log.begun == ["write0"], log.begun

    simulate(program)


def a_tool_that_must_run_alone_does() -> None:
    async def program() -> None:
        log = Log()
        names = ["look", "alone", "look", "write", "look", "look"]
        calls = [tool_use(name, {"x": str(number)}) for number, name in enumerate(names)]
        result = await machine_of([Reply(*calls), Reply("done")], *log.tools).run("go")
        assert log.most_beside_alone == 1, log.most_beside_alone
        assert log.most == 2, log.most
        assert results_of(result) == [f"did {name}{number}" for number, name in enumerate(names)]

    simulate(program)


def no_more_calls_run_at_once_than_allowed() -> None:
    async def program() -> None:
        log = Log()
        calls = [tool_use("look", {"x": number}) for number in "01234"]
        await machine_of([Reply(*calls), Reply("done")], *log.tools, limits=LoopLimits(max_concurrent_tools=2)).run(
            "go"
        )
        assert log.most == 2, log.most

    simulate(program)


def a_hook_may_change_the_input_and_add_a_note() -> None:
    async def before(call: Any, used: Any, context: Any) -> Change:
        return Change({"x": "other"})

    async def after(call: Any, used: Any, result: Any, context: Any) -> Note:
        return Note("Look at it twice.")

    async def program() -> None:
        hooks = Hooks(before_tool=[before], after_tool=[after])
        result = await machine_of([Reply(tool_use("echo", ONE_LETTER)), Reply("done")], hooks=hooks).run("go")
        (told,) = results_of(result)
        assert told.startswith("other"), told
        assert "Look at it twice." in told, told
        assert blocks_in(result.messages, "tool_use")[0]["input"] == ONE_LETTER

    simulate(program)


def progress_that_waits_to_be_read_is_joined() -> None:
    @tool
    async def talk(context: ToolContext) -> str:
        """Tell of each step."""
        for letter in "abc":
            context.progress(letter)
            await asyncio.sleep(1)
        return "done"

    async def program() -> None:
        run = machine_of([Reply(tool_use("talk")), Reply("done")], talk).run("go")
        told: list[Any] = []
        async for event in run:
            if at("progress", kind="tool_started")(event):
                await asyncio.sleep(10)
            if event.type == "progress" and event.kind == "tool_progress":
                told.append(event.data)
        assert told == ["abc"], told

    simulate(program)


def what_is_told_of_a_finish_is_true() -> None:
    @tool
    async def fail() -> str:
        """Fail."""
        raise ValueError("no such file")

    async def program() -> None:
        run = machine_of([Reply(tool_use("echo"), tool_use("fail")), Reply("done")], echo, fail).run("go")
        told = [(e.tool, e.is_error) async for e in run if e.type == "progress" and e.kind == "tool_finished"]
        assert told == [("echo", False), ("fail", True)], told

    simulate(program)


def a_result_is_text_that_can_be_sent() -> None:
    """Also where a hook sees it, which may send it somewhere."""
    seen: list[Any] = []

    @tool
    async def odd() -> str:
        """Give half a character."""
        return "half \ud83d a character"

    async def after(call: Any, used: Any, result: Any, context: Any) -> None:
        seen.append(result.content)

    async def program() -> None:
        machine = machine_of([Reply(tool_use("odd")), Reply("done")], odd, hooks=Hooks(after_tool=[after]))
        result = await machine.run("go")
        assert results_of(result) == seen == ["half \ufffd a character"], (results_of(result), seen)

    simulate(program)


def a_call_that_is_not_in_the_message_is_stopped_before_the_others_run() -> None:
    """A host with a loop of its own offers a call, and the message that comes holds others."""

    async def program() -> None:
        log = Log()

        @tool(read_only=True)
        async def endless() -> str:
            """Never end, and take a moment to stop."""
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0.5)
            return ""

        batch = ToolBatch(Toolbox([*log.tools, endless]), limits=LoopLimits(), run_id="r", turn=1)
        batch.offer(ToolCall("stray", "endless", {}))
        await asyncio.sleep(0.1)
        await batch.run([ToolCall("a", "write", {}), ToolCall("b", "look", {})])
        assert [result.content for result in batch.results()] == ["did write", "did look"]
        assert log.most_beside_alone == 1, log.most_beside_alone

    simulate(program)


def a_batch_that_is_cancelled_leaves_nothing_running() -> None:
    async def program() -> None:
        log = Log()
        batch = ToolBatch(Toolbox(log.tools), limits=LoopLimits(), run_id="r", turn=1)
        work = asyncio.ensure_future(batch.run([ToolCall("a", "write", {}), ToolCall("b", "look", {})]))
        await asyncio.sleep(0.5)
        work.cancel()
        await asyncio.wait({work})
        assert log.now == 0
        assert [result.status for result in batch.results()] == ["interrupted", "not_run"]

    simulate(program)


TOOL_EDGES: tuple[Callable[[], None], ...] = (
    what_an_interrupted_tool_had_so_far_is_kept,
    what_a_tool_returned_before_the_abort_reached_it_is_its_result,
    no_hook_is_asked_about_a_call_that_was_aborted,
    results_enter_the_history_within_their_budget,
    a_tool_that_runs_alone_does_not_start_early,
    a_tool_that_started_early_for_nothing_says_so,
    an_abort_before_the_calls_turn_starts_nothing,
    nothing_runs_after_a_call_that_waits_for_a_decision,
    a_tool_that_must_run_alone_does,
    no_more_calls_run_at_once_than_allowed,
    a_hook_may_change_the_input_and_add_a_note,
    progress_that_waits_to_be_read_is_joined,
    what_is_told_of_a_finish_is_true,
    a_result_is_text_that_can_be_sent,
    a_call_that_is_not_in_the_message_is_stopped_before_the_others_run,
    a_batch_that_is_cancelled_leaves_nothing_running,
)
