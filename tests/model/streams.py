"""Streams in a few words, and what a `ModelCall` makes of them."""

from collections.abc import AsyncGenerator, Callable, Container, Iterable
from dataclasses import dataclass, field
from typing import Any

from fsm_agent.machine.limits import LoopLimits
from fsm_agent.machine.vocabulary import ResponseOutcome
from fsm_agent.model.call import ModelCall
from fsm_agent.model.reply import ReplyAssembler, ToolCall
from fsm_agent.model.request import ModelRequest

Event = dict[str, Any]

REQUEST = ModelRequest("claude-sonnet-5-5", b"{}", 100)


def start(**message: Any) -> Event:
    usage = {"input_tokens": 10, "output_tokens": 1}
    return {"type": "message_start", "message": {"id": "msg_1", "model": "m", "usage": usage, **message}}


def begin(index: int, block: Event) -> Event:
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: int, **fields: Any) -> Event:
    return {"type": "content_block_delta", "index": index, "delta": fields}


def end(index: int) -> Event:
    return {"type": "content_block_stop", "index": index}


def stop(reason: str | None, **usage: Any) -> Event:
    return {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 5, **usage}}


STOPPED: Event = {"type": "message_stop"}
PING: Event = {"type": "ping"}


def text(value: str, index: int = 0) -> list[Event]:
    return [begin(index, {"type": "text", "text": ""}), delta(index, type="text_delta", text=value), end(index)]


def thinking(value: str, index: int = 0, signature: str = "SIG") -> list[Event]:
    return [
        begin(index, {"type": "thinking", "thinking": "", "signature": ""}),
        delta(index, type="thinking_delta", thinking=value),
        *([delta(index, type="signature_delta", signature=signature)] if signature else []),
        end(index),
    ]


def call(raw: str, index: int = 0, *, call_id: str = "t1", name: str = "read", **more: Any) -> list[Event]:
    return [
        begin(index, {"type": "tool_use", "id": call_id, "name": name, "input": {}, **more}),
        delta(index, type="input_json_delta", partial_json=raw),
        end(index),
    ]


def server_call(index: int, call_id: str = "srvtoolu_1") -> list[Event]:
    use = {"type": "server_tool_use", "id": call_id, "name": "web_search", "input": {}}
    return [begin(index, use), delta(index, type="input_json_delta", partial_json='{"query":"q"}'), end(index)]


def server_result(index: int, call_id: str = "srvtoolu_1") -> list[Event]:
    return [begin(index, {"type": "web_search_tool_result", "tool_use_id": call_id, "content": []}), end(index)]


def whole(*blocks: list[Event], reason: str = "end_turn") -> list[Event]:
    return [start(), *(event for block in blocks for event in block), stop(reason), STOPPED]


def fed(events: Iterable[Event], known_ids: Iterable[str] = ()) -> ReplyAssembler:
    reply = ReplyAssembler(frozenset(known_ids))
    for event in events:
        reply.feed(event)
    return reply


Step = Event | BaseException | Callable[[], Any]


def model(*steps: Step) -> Callable[[ModelRequest], AsyncGenerator[Event, None]]:
    """A `call_model` that yields the events, raises the exceptions, and awaits what the functions return."""

    async def call_model(request: ModelRequest) -> AsyncGenerator[Event, None]:
        for step in steps:
            if isinstance(step, BaseException):
                raise step
            if callable(step):
                await step()
            else:
                yield step

    return call_model


@dataclass
class Performed:
    """A performed call, with what its consumer saw."""

    outcome: ResponseOutcome
    made: ModelCall
    events: list[Event] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)

    @property
    def kind(self) -> str:
        assert self.made.failure is not None
        return self.made.failure.kind


async def performed(
    call_model: Any,
    limits: LoopLimits | None = None,
    known_ids: Iterable[str] = (),
    waiting_ids: Container[str] | None = None,
) -> Performed:
    events: list[Event] = []
    calls: list[ToolCall] = []

    async def on_event(reply: ReplyAssembler, event: Event) -> None:
        events.append(event)

    made = ModelCall(
        call_model,
        REQUEST,
        limits=limits or LoopLimits(),
        on_event=on_event,
        on_block=calls.append,
        known_ids=frozenset(known_ids),
        waiting_ids=waiting_ids,
    )
    return Performed(await made.perform(), made, events, calls)
