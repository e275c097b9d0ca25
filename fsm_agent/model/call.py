"""One request to the model: the work of the response effect. No retry, no second request, no choice of what is next."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Container
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from fsm_agent.log import logger
from fsm_agent.machine.limits import LoopLimits
from fsm_agent.machine.vocabulary import ResponseOutcome
from fsm_agent.model.classify import Failure, classify
from fsm_agent.model.faults import EOF, PROTOCOL, StreamFault
from fsm_agent.model.json_types import is_object
from fsm_agent.model.outcomes import outcome_of, outcome_of_lost
from fsm_agent.model.reply import ReplyAssembler, ToolCall
from fsm_agent.model.silence import SilenceWatch
from fsm_agent.model.surrogates import mended
from fsm_agent.model.transport import KEEPALIVE

if TYPE_CHECKING:
    from fsm_agent.model.request import ModelRequest
    from fsm_agent.model.transport import CallModel

__all__ = ["ModelCall"]

OnEvent: TypeAlias = Callable[[ReplyAssembler, dict[str, Any]], Awaitable[None]]
OnCall: TypeAlias = Callable[[ToolCall], None]


class ModelCall:
    """One streamed request, from sending to an outcome.

    `on_event` is awaited with each raw event (but pings and errors) after the reply has taken it: the stream goes on
    when it returns, and no clock runs meanwhile. `on_block` is called at once with each client tool call that is
    complete. `known_ids` are the tool use ids of the conversation so far, `waiting_ids` its server
    tool uses that have no result yet (`ReplyAssembler`).

    After `perform`, or after its cancellation, `reply` holds what was received and `failure` what went wrong.
    """

    def __init__(
        self,
        call_model: CallModel,
        request: ModelRequest,
        *,
        limits: LoopLimits,
        on_event: OnEvent,
        on_block: OnCall | None = None,
        known_ids: Container[str] = (),
        waiting_ids: Container[str] | None = None,
    ) -> None:
        self.request = request
        self.reply = ReplyAssembler(known_ids, waiting_ids)
        self.failure: Failure | None = None
        self._call_model = call_model
        self._limits = limits
        self._on_event = on_event
        self._on_block = on_block

    async def perform(self) -> ResponseOutcome:
        """Send the request and receive the reply. Raises nothing of its own but `CancelledError`.

        (What `on_event` and `on_block` raise is theirs, and goes through.) In every case the stream is closed.
        """
        try:
            stream = aiter(self._call_model(self.request))
        except Exception as error:
            self.failure = classify(error)
            return self.failure.outcome
        try:
            failure = await self._received(stream)
        finally:
            await self._close(stream)
        if self.reply.finished:
            # The message is whole, whatever became of the stream after it.
            return outcome_of(self.reply)
        self.failure = failure or _early_end(self.reply)
        return outcome_of_lost(self.reply, self.failure)

    async def _received(self, stream: AsyncIterator[dict[str, Any]]) -> Failure | None:
        """Why the stream ended before `message_stop`, if it did for a reason."""
        watch = SilenceWatch(idle=self._limits.stream_idle_timeout, progress=self._limits.stream_progress_timeout)
        try:
            with watch:
                return await self._receive(stream, watch)
        except StreamFault as fault:
            return classify(fault)

    async def _receive(self, stream: AsyncIterator[dict[str, Any]], watch: SilenceWatch) -> Failure | None:
        following = stream.__anext__
        while True:
            watch.waiting()
            try:
                event = await following()
            except StopAsyncIteration:
                return None
            except Exception as error:
                return classify(error)
            kind = event.get("type") if type(event) is dict else None  # pyright: ignore[reportUnnecessaryComparison]
            alive_only = kind in ("ping", KEEPALIVE)
            watch.heard(progress=not alive_only)
            if alive_only:
                continue
            if kind == "error":
                return classify(event)
            if type(kind) is not str:
                raise StreamFault(PROTOCOL, f"The stream holds {repr(event)[:200]}, which is no event with a type.")
            await self._on_event(self.reply, self._taken(event, kind))
            if kind == "message_stop":
                return None

    def _taken(self, event: dict[str, Any], kind: str) -> dict[str, Any]:
        """Give the event to the reply, and a call that it completes to the tools; returns it as it is to be shown."""
        try:
            event = _strict(event)
            call = self.reply.feed(event)
        except RecursionError as error:
            raise StreamFault(PROTOCOL, "An event of the stream is nested too deeply.") from error
        if call is not None and self._on_block is not None:
            self._on_block(call)
        if kind == "content_block_start" and self.reply.renamed:
            return self._with_fresh_id(event)
        return event

    def _with_fresh_id(self, event: dict[str, Any]) -> dict[str, Any]:
        """What the consumer sees names the call as all that follows will."""
        fresh = self.reply.renamed.get(event["index"])
        if fresh is None:
            return event
        return {**event, "content_block": {**event["content_block"], "id": fresh}}

    async def _close(self, stream: AsyncIterator[dict[str, Any]]) -> None:
        """Close the stream, and with it the response: within the grace time, and without a say in the outcome."""
        close = getattr(stream, "aclose", None)
        if close is None:
            return
        try:
            async with asyncio.timeout(self._limits.abort_grace):
                await close()
        except Exception as error:
            logger.warning("stream_not_closed", error=repr(error), model=self.request.model)


_FIELDS_OF_A_DELTA: Final = 3  # `type`, `index`, `delta`


def _strict(event: dict[str, Any]) -> dict[str, Any]:
    """The event without lone surrogates. Nearly all events are deltas of plain text: those cost one look."""
    delta = event.get("delta")
    if is_object(delta) and len(event) == _FIELDS_OF_A_DELTA:
        for value in delta.values():
            if type(value) is not str or not value.isascii():
                break
        else:
            return event
    return cast("dict[str, Any]", mended(event))


def _early_end(reply: ReplyAssembler) -> Failure:
    text = "The stream ended before the message was whole."
    if not reply.started:
        text = "The stream ended without a message."
    return classify(StreamFault(EOF, text))
