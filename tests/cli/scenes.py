"""Hand-made events of runs, and the display of them as text."""

import io
from collections.abc import Iterable
from typing import Any

from rich.console import Console, RenderableType

from fsm_agent.cli.view import RunView
from fsm_agent.loop.events import (
    Assistant,
    Event,
    Progress,
    StreamEvent,
    StreamRequestStart,
    Terminal,
    Tombstone,
    Transition,
    User,
)
from fsm_agent.machine import AGENT_LOOP, LoopLimits
from fsm_agent.model.usage import Usage

MODEL = "claude-sonnet-5-5"


def view(**settings: Any) -> RunView:
    return RunView(AGENT_LOOP, LoopLimits().resolved(), model=MODEL, now=0.0, **settings)


def as_text(*renderables: RenderableType, width: int = 72) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None, emoji=False, markup=False, highlight=False)
    console.print(*renderables, sep="\n")
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def printed(events: Iterable[Event], *, width: int = 72, **settings: Any) -> str:
    """All that stays on the screen, with each event a second after the one before."""
    shown = view(**settings)
    entries = [entry for second, event in enumerate(events) for entry in shown.feed(event, float(second))]
    return as_text(*entries, width=width) if entries else ""


def raw(reply: str, /, **event: Any) -> StreamEvent:
    return StreamEvent(message_id=reply, event=event)


def started(message: str = "m1", input_tokens: int = 100) -> list[Event]:
    usage = {"input_tokens": input_tokens, "output_tokens": 1}
    return [
        StreamRequestStart(model=MODEL, request=1, attempt=1),
        raw(message, type="message_start", message={"id": message, "usage": usage}),
    ]


def text(*pieces: str, message: str = "m1", stop: bool = True) -> list[Event]:
    deltas = [{"type": "text_delta", "text": piece} for piece in pieces]
    return [
        raw(message, type="content_block_start", index=0, content_block={"type": "text", "text": ""}),
        *(raw(message, type="content_block_delta", index=0, delta=delta) for delta in deltas),
        *([raw(message, type="content_block_stop", index=0)] if stop else []),
    ]


def call(call_id: str, name: str, *json_pieces: str, message: str = "m1") -> list[Event]:
    block = {"type": "tool_use", "id": call_id, "name": name, "input": {}}
    return [
        raw(message, type="content_block_start", index=1, content_block=block),
        *(
            raw(message, type="content_block_delta", index=1, delta={"type": "input_json_delta", "partial_json": piece})
            for piece in json_pieces
        ),
        raw(message, type="content_block_stop", index=1),
    ]


def assistant(*blocks: dict[str, Any], message: str = "m1") -> Assistant:
    return Assistant(
        message={"role": "assistant", "content": list(blocks)},
        message_id=message,
        model=MODEL,
        stop_reason="tool_use",
        usage=Usage(),
    )


def tool_started(call_id: str, tool: str) -> Progress:
    return Progress(kind="tool_started", tool_use_id=call_id, tool=tool)


def tool_finished(call_id: str, tool: str, seconds: float, *, is_error: bool = False) -> Progress:
    return Progress(kind="tool_finished", tool_use_id=call_id, tool=tool, seconds=seconds, is_error=is_error)


def results(*blocks: tuple[str, str, bool]) -> User:
    content = [
        {"type": "tool_result", "tool_use_id": call_id, "content": said, "is_error": is_error}
        for call_id, said, is_error in blocks
    ]
    return User(message={"role": "user", "content": content}, purpose="tool_results")


def transition(source: str, trigger: str, reason: str | None = None, **control: int) -> Transition:
    row = AGENT_LOOP.row(source, trigger)
    control = {**dict.fromkeys(AGENT_LOOP.initial_control(), 0), "turn": 1, **control}
    facts = {effect: outcomes[0] for effect, outcomes in row.given.items()}
    return Transition(source=source, trigger=trigger, dest=row.dest, facts=facts, control=control, reason=reason)


def tombstone(message: str = "m1", cause: str = "transport_retry") -> Tombstone:
    return Tombstone(message_id=message, cause=cause)


def terminal(reason: str = "completed", detail: str = "", **usage: Any) -> Terminal:
    return Terminal(reason=reason, detail=detail, text="Mended.", turns=2, requests=3, usage=Usage(requests=3, **usage))
