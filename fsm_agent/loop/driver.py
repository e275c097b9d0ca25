"""The driver: ask the declaration what is next, do it, tell of it.

It decides nothing. Each round is either one effect, performed in a task of its own if an abort may end it, or one
row: the compiled machine moves, the row's actions edit the conversation, and only then is any of it shown. Nothing is
awaited between deciding a row and having applied it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from logging import DEBUG
from typing import TYPE_CHECKING, Any

from fsm_agent.log import logger
from fsm_agent.loop import texts
from fsm_agent.loop.effects import ON_ABORT
from fsm_agent.loop.effects.asking import progress_event
from fsm_agent.loop.events import Event, System, Terminal, Transition
from fsm_agent.loop.result import RunResult
from fsm_agent.loop.visit import Outcome, Visit
from fsm_agent.machine import Ask, Automaton, CompiledMachine, Cursor, Fire, Row
from fsm_agent.model.surrogates import mended_text

if TYPE_CHECKING:
    from fsm_agent.loop.channel import Channel
    from fsm_agent.loop.conversation import Conversation
    from fsm_agent.loop.visit import EffectFunction

ABORTED = "aborted"


class EffectError(RuntimeError):
    """An effect broke its contract: it raised without a `failed` outcome, or ended in an undeclared one."""


class Driver:
    """One run in progress. Its task touches nothing that another run could see."""

    def __init__(
        self,
        conversation: Conversation,
        machine: CompiledMachine,
        automaton: Automaton,
        effects: Mapping[str, EffectFunction],
        channel: Channel[Event],
    ) -> None:
        self.conversation = conversation
        self.machine = machine
        self.cursor = Cursor(automaton)
        self.effects = effects
        self.channel = channel
        self.trace: list[str] = []
        self.result: RunResult | None = None
        self.abort_why: str | None = None
        self._working: asyncio.Task[Outcome | str] | None = None
        self._abortable = False
        """Whether the effect in progress may end in `aborted`. One that may not is short, and is let end."""

    # ---- from outside

    def abort(self, why: str) -> None:
        """End the run as soon as the effect in progress has cleaned up. The first reason given is kept."""
        if self.abort_why is not None:
            return
        self.abort_why = why
        if self._working is not None:
            self._working.cancel()
            self._insist(self._working)

    def _insist(self, work: asyncio.Task[Outcome | str]) -> None:
        """Cancel again an effect whose clean-up hangs (a `call_model` of the user's own): twice the grace is for the
        stream and for the tools, which bound themselves, and one more is to spare."""
        seconds = 3 * self.conversation.machine.limits.abort_grace
        timer = asyncio.get_running_loop().call_later(seconds, work.cancel)
        work.add_done_callback(lambda _: timer.cancel())

    def close(self) -> None:
        """Nobody wants the rest: abort, and show nothing more."""
        self.channel.stop_listening()
        self.abort("The run was closed.")

    # ---- the loop

    async def drive(self) -> RunResult:
        """Run to the end. Raises `CancelledError` after clean-up if this task itself was cancelled."""
        try:
            self.result = result = await self._to_the_end()
        except BaseException:
            await self._clean_up()
            raise
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise asyncio.CancelledError
        return result

    async def _to_the_end(self) -> RunResult:
        row: Row | None = None
        while row is None or row.reason is None:
            decision = self.cursor.automaton.decide(self.cursor.control, self.cursor.facts)
            match decision:
                case Ask(effect):
                    self.cursor.facts = {**self.cursor.facts, effect: await self._perform(effect)}
                case Fire(row):
                    await self._fire(row)
        return self._result(row)

    async def _perform(self, effect: str) -> str:
        """One effect, to its outcome."""
        declared = self.machine.definition.effect(effect).outcomes
        self._abortable = ABORTED in declared
        visit = Visit(self.conversation, self.cursor.facts, self.channel)
        if self.abort_why is not None and self._abortable:
            return self._noted(effect, await self._aborted(effect, visit), declared)
        try:
            if self._abortable:
                self._working = asyncio.ensure_future(_run_effect(self.effects[effect], visit))
                outcome = await self._working
            else:
                outcome = await self.effects[effect](visit)
        except asyncio.CancelledError:
            self._explain_cancellation(effect)
            outcome = await self._aborted(effect, visit)
        except Exception as error:
            if "failed" not in declared:
                raise
            logger.exception("effect_failed", run=self.conversation.run_id, effect=effect)
            outcome = Outcome("failed", f"The effect {effect} failed: {type(error).__name__}: {error}")
        finally:
            self._working = None
        return self._noted(effect, outcome, declared)

    def _explain_cancellation(self, effect: str) -> None:
        """The effect was cancelled: by an abort, or with the task of the run (the event loop shuts down)."""
        if self.abort_why is not None:
            return
        task = asyncio.current_task()
        if task is None or not task.cancelling() or not self._abortable:
            raise EffectError(f"The effect {effect!r} was cancelled, and not by its run.")
        self.close()

    async def _aborted(self, effect: str, visit: Visit) -> Outcome:
        """What is left to do for an effect that was cancelled, or is not even begun."""
        if effect in ON_ABORT:
            await ON_ABORT[effect](visit)
        return Outcome(ABORTED, self.abort_why or "")

    def _noted(self, effect: str, outcome: Outcome | str, declared: tuple[str, ...]) -> str:
        if isinstance(outcome, str):
            outcome = Outcome(outcome)
        if outcome.name not in declared:
            raise EffectError(f"The effect {effect!r} ended in {outcome.name!r}; it declares {', '.join(declared)}.")
        self.conversation.details[effect] = mended_text(str(outcome.detail))
        self.conversation.values[effect] = outcome.value
        return str(outcome.name)

    async def _fire(self, row: Row) -> None:
        """Move, act, and then tell. What happened is recorded before it is shown."""
        conversation, facts = self.conversation, dict(self.cursor.facts)
        self.machine.move(self.cursor, row.trigger)
        self.trace.append(row.trigger)
        conversation.control = self.cursor.control
        events: list[Event] = []
        while (notice := conversation.notices.take()) is not None:
            events.append(progress_event(notice))
        for action in row.do:
            events += conversation.machine.actions[action](conversation, row)
        detail = ""
        if row.reason is not None:
            detail = self._detail(row, facts)
            conversation.finish_history()
            events += self._unrepaired(facts)
        conversation.forget_visit(self.cursor.facts)
        debugging = logger.isEnabledFor(DEBUG)
        if debugging or self.channel.listening:
            moved: dict[str, Any] = {
                "source": row.source,
                "trigger": row.trigger,
                "dest": row.dest,
                "facts": facts,
                "control": self.cursor.control.as_dict(),
                "reason": row.reason,
            }
            events.append(Transition.of({"type": "transition", **moved}))
            if debugging:
                logger.debug("transition", run=conversation.run_id, **moved)
        if row.reason is not None:
            events.append(self._terminal(row, detail))
        if self.channel.listening:
            await self.channel.emit_all(events)

    def _detail(self, row: Row, facts: Mapping[str, str]) -> str:
        """Why this row, in a sentence: what the last effect that it rests on said, and what others said in vain."""
        details = self.conversation.details
        said = next((details[effect] for effect in reversed(row.asks) if details.get(effect)), "")
        if ABORTED in facts.values():
            return said
        others = [details[effect] for effect in facts if effect not in row.asks and details.get(effect)]
        return " ".join([said, *others]).strip() or texts.UNREPAIRED.get(facts.get("response", ""), "")

    def _unrepaired(self, facts: Mapping[str, str]) -> list[Event]:
        """The error that was withheld while a row might still repair it: shown once, when none did."""
        failure, sentence = self.conversation.failure, texts.UNREPAIRED.get(facts.get("response", ""))
        if ABORTED in facts.values() or (failure is None and sentence is None):
            return []
        if failure is None:
            return [System(subtype="error", message=str(sentence), detail={"kind": facts["response"]})]
        detail = {"kind": failure.kind, "status": failure.status, "request_id": failure.request_id}
        return [System(subtype="error", message=failure.message, detail=detail)]

    # ---- the end

    def _terminal(self, row: Row, detail: str) -> Terminal:
        conversation = self.conversation
        assert row.reason is not None
        self._end_detail = detail
        return Terminal(
            reason=row.reason,
            detail=detail,
            text=conversation.answer.text,
            turns=conversation.turn,
            requests=conversation.requests,
            usage=conversation.usage,
        )

    _end_detail = ""

    def _result(self, row: Row) -> RunResult:
        conversation = self.conversation
        assert row.reason is not None
        return RunResult(
            reason=conversation.machine.reason(row.reason),
            detail=self._end_detail,
            text=conversation.answer.text,
            history=conversation.history,
            usage=conversation.usage,
            turns=conversation.turn,
            requests=conversation.requests,
            trace=tuple(self.trace),
            model=conversation.model,
            output=conversation.output,
            undelivered=tuple(conversation.queued),
            error=conversation.failure,
        )

    async def _clean_up(self) -> None:
        """The run ends by exception (a fault of ours, or of a user's effect): leave nothing running."""
        reply = self.conversation.reply
        if reply is not None and reply.batch is not None:
            await reply.batch.discard()


async def _run_effect(effect: EffectFunction, visit: Visit) -> Outcome | str:
    return await effect(visit)
