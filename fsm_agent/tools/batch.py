"""The calls of one message of the model: started in time, folded in the order of the calls, nothing left running."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from functools import partial
from typing import Any

from fsm_agent.machine.limits import LoopLimits
from fsm_agent.machine.vocabulary import ToolsOutcome
from fsm_agent.tools.calls import Call, ToolCall, own_copy
from fsm_agent.tools.declare import Tool
from fsm_agent.tools.faults import InvalidInputError
from fsm_agent.tools.gate import AskPermission, HooksAroundTools, ToolHooks
from fsm_agent.tools.notices import ToolNotice
from fsm_agent.tools.performance import Notify, Performance, Surroundings
from fsm_agent.tools.result import Answers, ToolResult
from fsm_agent.tools.schedule import Stage, startable
from fsm_agent.tools.toolbox import Toolbox

__all__ = ["Notify", "ToolBatch", "ToolNotice"]

_ABORTED = "the run was aborted before its turn came"


class _Slot:
    """One call in its place."""

    def __init__(self, call: ToolCall) -> None:
        self.call = call
        self.stage = Stage.WAITING
        self.exclusive = False
        self.repeatable = False
        self.answer: ToolResult | None = None
        """Known without running anything: no such tool, wrong input."""
        self.performance: Performance | None = None
        self.task: asyncio.Task[None] | None = None

    @property
    def result(self) -> ToolResult | None:
        return self.performance.result if self.performance is not None else self.answer


class ToolBatch:
    """The calls of one model message, from the first complete block to the last result.

    `offer` takes the calls while the reply streams, then exactly one of `run` (the message is accepted), `stop` (so it
    is, and the run is aborted) and `discard` (it is not accepted) ends the batch. After that, also if it was cancelled,
    nothing of the batch runs any more but what ignored its cancellation for longer than `limits.abort_grace` seconds;
    and whatever that returns is dropped.

    >>> import asyncio
    >>> from fsm_agent.tools import ToolBatch, ToolCall, Toolbox, tool
    >>> @tool(read_only=True)
    ... async def double(number: int) -> int:
    ...     "Double a number."
    ...     return 2 * number
    >>> async def main():
    ...     batch = ToolBatch(Toolbox([double]), limits=LoopLimits(), run_id="r", turn=1)
    ...     outcome = await batch.run([ToolCall("toolu_1", "double", {"number": 4}), ToolCall("toolu_2", "halve", {})])
    ...     return outcome, [result.status for result in batch.results()]
    >>> asyncio.run(main())
    (<ToolsOutcome.DONE: 'done'>, ['ok', 'unknown_tool'])
    """

    def __init__(
        self,
        toolbox: Toolbox,
        *,
        limits: LoopLimits,
        run_id: str,
        turn: int,
        deps: Any = None,
        notify: Notify | None = None,
        permission: AskPermission | None = None,
        hooks: HooksAroundTools | None = None,
        attempt: int = 1,
    ) -> None:
        """Args:
        notify: told of starts, progress and finishes, at once, on the event loop; must not wait. `NoticeQueue.put`
            is one that stays bounded.
        attempt: the number of the model's reply in its turn. A call of a repeated reply is another call, so its
            idempotency key is another: `run/turn/tools/i`, from the second reply on `run/turn/tools/attempt.i`.
        """
        self._toolbox = toolbox
        self._shared = Surroundings(
            limits=limits,
            deps=deps,
            run_id=run_id,
            turn=turn,
            key=f"{run_id}/{turn}/tools/" + (f"{attempt}." if attempt > 1 else ""),
            notify=self._noted,
            permission=permission,
            hooks=hooks if hooks is not None else ToolHooks(),
        )
        self._notify = notify
        self._slots: list[_Slot] = []
        self._accepted = False
        self._no_more: str | None = None
        """Why calls that have not started will not."""
        self._news = False
        """A notice came, or a call has ended, since `run` last looked."""
        self._woken: asyncio.Future[None] | None = None
        self._fault: BaseException | None = None
        self._results: list[ToolResult] | None = None

    def offer(self, call: Call) -> None:
        """A call's block is complete while the reply still streams. It starts now if it may be repeated (read-only or
        idempotent), is safe beside others, and no call before it waits; else when the message is accepted."""
        if self._accepted or self._no_more is not None:
            return
        self._slots.append(self._admit(own_copy(call)))
        self._start_what_may()

    def run(
        self, calls: Sequence[Call], *, meanwhile: Callable[[], Awaitable[None]] | None = None
    ) -> Coroutine[Any, Any, ToolsOutcome]:
        """The message is accepted: run what has not run, wait for all. `results` then has one result per call.

        `meanwhile` is awaited after notices, to tell of them while calls still run; the calls do not wait for it.
        Cancelled, it stops the tools, waits at most `limits.abort_grace` seconds for them and raises CancelledError;
        `results` is complete then too. Call `stop` if what awaits this may be cancelled before its first step.
        """
        return self._run(self._accept(calls), meanwhile)

    async def _run(self, strays: list[_Slot], meanwhile: Callable[[], Awaitable[None]] | None) -> ToolsOutcome:
        try:
            if strays:
                await _stopped(strays)
            self._start_what_may()
            while self._running():
                if not self._news:
                    self._woken = asyncio.get_running_loop().create_future()
                    await self._woken
                self._news = False
                if meanwhile is not None:
                    await meanwhile()
        except asyncio.CancelledError:
            self._no_more = self._no_more or _ABORTED
            await _stopped(self._running())
            raise
        if self._fault is not None:
            raise self._fault
        if any(_stop_reason(slot) is not None for slot in self._slots):
            return ToolsOutcome.HOOK_STOPPED
        if any(_deferral(slot) is not None for slot in self._slots):
            return ToolsOutcome.DEFERRED
        return ToolsOutcome.DONE

    async def stop(self, calls: Sequence[Call]) -> None:
        """The message is accepted, and the run is aborted before its calls were to run: stop what was started early,
        start nothing. `results` then has one result per call, the true one where there is one."""
        self._no_more = self._no_more or _ABORTED
        strays = self._accept(calls)
        await _stopped([*strays, *self._running()])

    async def discard(self) -> None:
        """The message is discarded: stop what was started early, wait for its end, forget the results.

        Only tools that may be repeated were started, so nothing is lost but time.
        """
        self._no_more = "the message was discarded"
        for slot in self._slots:
            if slot.performance is not None:
                slot.performance.discarded = True
        await _stopped(self._running())
        self._slots.clear()

    def results(self) -> list[ToolResult]:
        """One result for each call of the accepted message, in the order of the calls, whatever happened.

        Ask when `run` or `stop` has ended; the answer stays the same, also if a tool that was left behind returns.
        """
        if self._results is None:
            if not self._accepted:
                return []
            self._results = [slot.result or self._without_result(slot) for slot in self._slots]
        return self._results

    @property
    def detail(self) -> str:
        """Why the outcome is `hook_stopped` or `deferred`, in words; '' otherwise."""
        for reason in (*map(_stop_reason, self._slots), *map(_deferral, self._slots)):
            if reason:
                return reason
        return ""

    def _admit(self, call: ToolCall) -> _Slot:
        """A place for the call, with its answer if that needs no work."""
        slot = _Slot(call)
        tool = self._toolbox.get(call.name)
        answers = Answers(call.id)
        if tool is None:
            slot.answer = answers.unknown(self._toolbox.unknown(call.name))
        elif call.input_error is not None:
            slot.answer = answers.invalid(call.input_error)
        else:
            self._prepare(slot, tool, answers)
        if slot.answer is not None:
            slot.stage = Stage.DONE
        return slot

    def _prepare(self, slot: _Slot, tool: Tool[..., Any], answers: Answers) -> None:
        call = slot.call
        try:
            arguments = tool.arguments(call.input)
        except InvalidInputError as error:
            slot.answer = answers.invalid(str(error))
            return
        slot.exclusive = not tool.safe_with_others(call.input)
        slot.repeatable = tool.repeatable
        key = f"{self._shared.key}{len(self._slots)}"
        slot.performance = Performance(call, tool, arguments, key, self._shared)

    def _accept(self, calls: Sequence[Call]) -> list[_Slot]:
        """Put the calls of the message in order; gives running ones that are not in it."""
        self._accepted = True
        offered = {slot.call.id: slot for slot in self._slots}
        self._slots = []
        for call in calls:
            early = offered.pop(call.id) if call.id in offered else None
            self._slots.append(self._admit(own_copy(call)) if early is None else early)
        for slot in offered.values():
            if slot.performance is not None:
                slot.performance.discarded = True
        return [slot for slot in offered.values() if slot.stage is Stage.RUNNING]

    def _start_what_may(self) -> None:
        if self._no_more is not None:
            return
        at_once = self._shared.limits.max_concurrent_tools
        for position in list(startable(self._slots, accepted=self._accepted, at_once=at_once)):
            slot = self._slots[position]
            assert slot.performance is not None, "a call that waits has its tool"
            slot.stage = Stage.RUNNING
            slot.task = asyncio.create_task(slot.performance.run(), name=f"call {slot.call.id}")
            slot.task.add_done_callback(partial(self._ended, slot))

    def _ended(self, slot: _Slot, task: asyncio.Task[None]) -> None:
        slot.stage = Stage.DONE
        if not task.cancelled() and task.exception() is not None:
            self._fault = task.exception()
        if _stop_reason(slot) is not None:
            self._no_more = self._no_more or "a call before it ended the run"
        elif _deferral(slot) is not None:
            self._no_more = self._no_more or "a call before it waits for a decision"
        self._start_what_may()
        self._wake()

    def _noted(self, notice: ToolNotice) -> None:
        if self._notify is not None:
            self._notify(notice)
        self._wake()

    def _wake(self) -> None:
        self._news = True
        if self._woken is not None and not self._woken.done():
            self._woken.set_result(None)

    def _running(self) -> list[_Slot]:
        return [slot for slot in self._slots if slot.stage is Stage.RUNNING]

    def _without_result(self, slot: _Slot) -> ToolResult:
        if slot.performance is not None and slot.performance.started:  # we were cancelled twice, and did not wait
            return slot.performance.cut_short()
        return Answers(slot.call.id).not_run(self._no_more or _ABORTED)


def _stop_reason(slot: _Slot) -> str | None:
    return slot.performance.stop_reason if slot.performance is not None else None


def _deferral(slot: _Slot) -> str | None:
    return slot.performance.deferred if slot.performance is not None else None


async def _stopped(slots: Iterable[_Slot]) -> None:
    """Cancel and wait. Each call bounds its own clean-up, so no time of ours is needed."""
    tasks = {slot.task for slot in slots if slot.task is not None}
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)
