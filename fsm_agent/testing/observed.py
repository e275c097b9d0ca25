"""What went between a loop and its model: each request as sent, each event as it came, what is left open."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from fsm_agent.testing.rules import ApiRefusal, parse_body
from fsm_agent.testing.script import RequestKind
from fsm_agent.testing.shapes import JsonObject, as_object

__all__ = ["Exchange", "ObservedModel"]

Ending = Literal["end", "closed", "error"]


class _Request(Protocol):
    @property
    def model(self) -> str: ...
    @property
    def body(self) -> bytes: ...


@dataclass(slots=True)
class Exchange:
    """One request and what came back."""

    model: str
    raw: bytes
    kind: RequestKind
    started: float
    """Seconds of the event loop's clock at which it was sent."""
    events: list[JsonObject] = field(default_factory=list[JsonObject])
    """The raw events that the loop has taken."""
    ended: float | None = None
    """When the stream was over for both sides; `None` while it is open."""
    ending: Ending | None = None
    """`end`: it ran out; `closed`: the loop closed it before; `error`: it raised."""
    error: BaseException | None = None

    @property
    def body(self) -> JsonObject:
        """The parsed body."""
        parsed = parse_body(self.raw)
        if isinstance(parsed, ApiRefusal):
            raise TypeError(f"The request is no JSON object: {parsed}")
        return parsed

    @property
    def messages(self) -> list[JsonObject]:
        """The messages of the request."""
        return list(self.body.get("messages", []))

    @property
    def usage(self) -> JsonObject:
        """The tokens that the answer reported, `message_delta` (which is cumulative) before `message_start`."""
        told: JsonObject = {}
        for event in self.events:
            if event.get("type") == "message_start":
                told = dict(as_object((as_object(event.get("message")) or {}).get("usage")) or {})
            elif event.get("type") == "message_delta":
                later = as_object(event.get("usage")) or {}
                told |= {name: count for name, count in later.items() if count}
        return told


class ObservedModel:
    """Takes the place of `call_model` and hands everything on to another; `exchanges` is the log.

    >>> from fsm_agent import AgentMachine, Deps
    >>> from fsm_agent.testing import Reply, ScriptedModel
    >>> model = ObservedModel(ScriptedModel([Reply("hi")]))
    >>> AgentMachine("claude-sonnet-5-5", deps=Deps(call_model=model)).run_sync("hello").text
    'hi'
    >>> [(exchange.kind, exchange.ending) for exchange in model.exchanges]
    [('turn', 'closed')]
    """

    def __init__(self, call_model: Callable[[Any], AsyncIterator[dict[str, Any]]]) -> None:
        self.exchanges: list[Exchange] = []
        self._call_model = call_model

    @property
    def open(self) -> list[Exchange]:
        """Exchanges whose stream is still open."""
        return [exchange for exchange in self.exchanges if exchange.ending is None]

    async def __call__(self, request: _Request) -> AsyncGenerator[dict[str, Any], None]:
        """Hand one request on, and the events of its answer back."""
        clock = asyncio.get_running_loop().time
        kind: RequestKind = "summary" if getattr(request, "purpose", "turn") == "summary" else "turn"
        exchange = Exchange(request.model, request.body, kind, clock())
        self.exchanges.append(exchange)
        ending: Ending = "closed"
        stream = self._call_model(request)
        try:
            async for event in stream:
                exchange.events.append(event)
                yield event
            ending = "end"
        except Exception as error:
            ending, exchange.error = "error", error
            raise
        finally:
            close = getattr(stream, "aclose", None)
            if close is not None:
                await close()
            exchange.ending, exchange.ended = ending, clock()
