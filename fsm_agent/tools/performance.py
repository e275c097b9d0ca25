"""One call from its turn to its result: hooks, permission, the tool itself, hooks again. It always ends in a result."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, TypeAlias

from fsm_agent.log import logger
from fsm_agent.machine.limits import LoopLimits
from fsm_agent.tools.calls import ToolCall, copied_input
from fsm_agent.tools.context import ToolContext
from fsm_agent.tools.declare import Tool, called
from fsm_agent.tools.faults import InvalidInputError, text_of_fault
from fsm_agent.tools.gate import Allow, AskPermission, Change, Defer, Deny, HooksAroundTools, Note, Stop, ToolHooks
from fsm_agent.tools.job import Job, Raised, Returned
from fsm_agent.tools.notices import ProgressFeed, ToolNotice
from fsm_agent.tools.result import Answers, ToolResult

Notify: TypeAlias = Callable[[ToolNotice], None]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What all calls of a batch share."""

    limits: LoopLimits
    deps: Any
    run_id: str
    turn: int
    key: str
    """Of the batch: a call's idempotency key is this and its position."""
    notify: Notify
    permission: AskPermission | None = None
    hooks: HooksAroundTools = field(default_factory=ToolHooks)


class Performance:
    """The work for one call. `result` is there when `run` has ended, also when it was cancelled."""

    def __init__(
        self, call: ToolCall, tool: Tool[..., Any], arguments: Mapping[str, Any], key: str, shared: Surroundings
    ) -> None:
        self.result: ToolResult | None = None
        self.stop_reason: str | None = None
        """Why the run is to end, if a hook or a permission says so."""
        self.deferred: str | None = None
        """Why the decision was put off, if it was."""
        self.started = False
        self.discarded = False
        """The message was discarded: the finish says so, and nobody reads the result."""
        self._call = call
        self._tool = tool
        self._arguments = arguments
        self._shared = shared
        self._answers = Answers(call.id, tool.read_only, tool.max_result_chars)
        self._notes: list[str] = []
        self._partial = ""
        self._loop = asyncio.get_running_loop()
        self._feed = ProgressFeed(self._loop, lambda data: self._tell("progress", data=data))
        self.context: ToolContext[Any] = ToolContext(
            deps=shared.deps,
            tool_use_id=call.id,
            idempotency_key=key,
            run_id=shared.run_id,
            turn=shared.turn,
            limits=shared.limits,
            report=self._feed.report,
            keep=self._keep,
        )

    async def run(self) -> None:
        """Do it. Only a cancellation of ours gets out, after the tool was given its time to clean up."""
        refused = await self._before()
        if refused is None:
            refused = await self._permission()
        if refused is not None:
            self.result = refused
            return
        await self._perform()
        await self._after()

    async def _perform(self) -> None:
        started = self._loop.time()
        self.started = True
        self._tell("started")
        seconds = self._tool.timeout or self._shared.limits.tool_timeout
        job = Job(
            lambda: self._tool.body.perform(self._arguments, self.context),
            name=f"tool {self._tool.name}",
            on_stop=self.context.stopped.set,
        )
        try:
            ending = await job.within(seconds, grace=self._shared.limits.abort_grace)
            if ending is None:
                self.result = self._answers.out_of_time(seconds, self._so_far(job))
            else:
                self.result = self._told(ending)
        except asyncio.CancelledError:
            if job.stopped or job.ending is None:
                self.result = self._answers.interrupted(self._so_far(job))
            else:
                self.result = self._told(job.ending)
            raise
        finally:
            self.context.stopped.set()
            self._feed.close()
            self._tell(
                "finished",
                is_error=self.result is None or self.result.is_error,
                seconds=self._loop.time() - started,
                discarded=self.discarded,
            )
            if self.result is not None:
                self.result = self._with_notes(self.result)

    def cut_short(self) -> ToolResult:
        """The result of a call that is not waited for any more."""
        return self._answers.interrupted(self._partial)

    def _told(self, ending: Returned[object] | Raised) -> ToolResult:
        if isinstance(ending, Returned):
            return self._answers.returned(ending.value)
        logger.info("tool_failed", tool=self._tool.name, call=self._call.id, exc_info=ending.fault)
        return self._answers.raised(ending.fault)

    def _so_far(self, job: Job[object]) -> str:
        """What a stopped tool kept, and what it still returned when it was told to stop."""
        parts = [self._partial]
        if isinstance(job.ending, Returned):
            answer = self._answers.returned(job.ending.value).content
            if job.ending.value is not None and isinstance(answer, str):
                parts.append(answer)
        return "\n".join(part for part in parts if part)

    def _keep(self, text: str) -> None:
        self._partial = text

    def _with_notes(self, result: ToolResult) -> ToolResult:
        for note in self._notes:
            result = result.noted(note)
        self._notes.clear()
        return result

    async def _before(self) -> ToolResult | None:
        for hook in self._shared.hooks.before_tool:
            answer = await self._answer("hook", partial(hook, self._call, self._tool, self.context))
            match answer:
                case None:
                    pass
                case Note(text):
                    self._notes.append(text)
                case Change(dict() as changed, note):
                    if (refused := self._changed(changed)) is not None:
                        return refused
                    if note:
                        self._notes.append(note)
                case Deny(reason, stop):
                    return self._denied(reason, stop=stop)
                case _:
                    return self._unreadable("hook", answer)
        return None

    def _changed(self, changed: dict[str, Any]) -> ToolResult | None:
        """Take the input that a hook put in the place of the model's."""
        self._call = replace(self._call, input=copied_input(changed))
        try:
            self._arguments = self._tool.arguments(self._call.input)
        except InvalidInputError as error:
            return self._answers.invalid(f"A hook changed it.\n{error}")
        return None

    async def _permission(self) -> ToolResult | None:
        ask = self._shared.permission
        if ask is None:
            return None
        answer = await self._answer("permission check", partial(ask, self._call, self._tool, self.context))
        match answer:
            case Allow():
                return None
            case Deny(reason, stop):
                return self._denied(reason, stop=stop)
            case Defer(reason):
                self.deferred = reason
                return self._answers.deferred(reason)
            case _:
                return self._unreadable("permission check", answer)

    def _denied(self, reason: str, *, stop: bool) -> ToolResult:
        if stop:
            self.stop_reason = reason
        return self._answers.denied(reason, stop=stop)

    def _unreadable(self, what: str, answer: object) -> ToolResult:
        logger.warning("tool_gate_unreadable", gate=what, tool=self._tool.name, answer=type(answer).__name__)
        return self._denied(f"the {what} answered with {type(answer).__name__}, which is no decision", stop=False)

    async def _answer(self, what: str, work: Callable[[], Awaitable[Any]]) -> object:
        """The answer of a hook or a permission; a `Deny` if there is none."""
        seconds = self._shared.limits.hook_timeout
        job = Job(lambda: called(work, on_the_loop=True), name=f"{what} of {self._tool.name}")
        ending = await job.within(seconds, grace=self._shared.limits.abort_grace)
        match ending:
            case Returned(value):
                return value
            case Raised(fault):
                logger.warning("tool_gate_failed", gate=what, tool=self._tool.name, exc_info=fault)
                return self._troubled("hook_error", f"the {what} failed ({text_of_fault(fault)})")
            case None:
                logger.warning("tool_gate_out_of_time", gate=what, tool=self._tool.name)
                return self._troubled("hook_timeout", f"the {what} did not answer within {seconds:g} seconds")

    def _troubled(self, kind: Literal["hook_error", "hook_timeout"], why: str) -> Deny:
        """Tell of a hook or a permission that came to nothing; before the tool that is a no."""
        self._tell(kind, data=f"Before or after the call {self._call.id} of {self._tool.name}, {why}.")
        return Deny(why)

    async def _after(self) -> None:
        for hook in self._shared.hooks.after_tool:
            result = self.result
            assert result is not None, "the tool has ended with a result"
            answer = await self._answer("hook", partial(hook, self._call, self._tool, result, self.context))
            match answer:
                case Note(text):
                    self.result = result.noted(text)
                case Stop(reason):
                    self.stop_reason = reason
                    return
                case None | Deny():  # a fault, logged: what was done is done, and its result stands
                    pass
                case _:
                    logger.warning("tool_gate_unreadable", gate="hook", tool=self._tool.name)

    def _tell(self, kind: Any, **known: Any) -> None:
        self._shared.notify(ToolNotice(kind, self._call.id, self._tool.name, **known))
