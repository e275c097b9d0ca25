"""A run as a text for people: what was said and done, in order, and the same for the same run.

Meant for snapshots: no ids, no times, and long texts are cut.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from fsm_agent.loop.events import (
    Assistant,
    Attachment,
    ContextEdit,
    Event,
    Progress,
    StreamEvent,
    StreamRequestStart,
    System,
    Terminal,
    Tombstone,
    ToolUseSummary,
    Transition,
    User,
)
from fsm_agent.session.message import blocks_of
from fsm_agent.testing.shapes import as_list

__all__ = ["transcript"]


def transcript(events: Iterable[Event], *, longest: int = 300) -> str:
    """The events of a run as lines. Texts of more than `longest` characters are cut in the middle.

    >>> from fsm_agent import AgentMachine
    >>> from fsm_agent.testing import Reply, play_scenario, Scenario
    >>> print(play_scenario(AgentMachine("claude-sonnet-5-5"), Scenario([Reply("Hello.")])).transcript)
    [preprocess] context_ready
    request 1 to claude-sonnet-5-5
    [calling_model] response_ended: response end_turn
    model: Hello.
    [recovering] complete: budget used, hooks pass, output valid, response end_turn
    completed after 1 turn, 1 request
    <BLANKLINE>
    """
    return "".join(f"{line}\n" for event in events for line in _lines(event, longest))


def _lines(event: Event, longest: int) -> Iterator[str]:  # noqa: C901 - one arm for each class
    match event:
        case StreamRequestStart():
            again = f", attempt {event.attempt}" if event.attempt > 1 else ""
            what = " for a summary" if event.purpose == "summary" else ""
            yield f"request {event.request} to {event.model}{what}{again}"
        case StreamEvent():
            pass
        case Assistant():
            yield from _message("model", event.message, longest)
        case User():
            yield from _message("user" if event.purpose == "prompt" else event.purpose, event.message, longest)
        case System():
            yield _cut(f"({event.subtype}: {event.message})", longest)
        case Attachment():
            yield _cut(f"attached {event.kind}: {_said(event.content)}", longest)
        case Progress():
            yield from _progress(event, longest)
        case Tombstone():
            yield f"(what was streamed is retracted: {event.cause})"
        case ToolUseSummary():
            yield _cut(f"(tools: {event.summary})", longest)
        case ContextEdit():
            yield _cut(f"(context: {event.stage}: {event.removed})", longest)
        case Transition():
            facts = ", ".join(f"{name} {outcome}" for name, outcome in sorted(event.facts.items()))
            shown = facts if event.source != "preprocess" or facts != "context ready" else ""
            yield f"[{event.source}] {event.trigger}{f': {shown}' if shown else ''}"
        case Terminal():
            detail = f": {event.detail}" if event.detail else ""
            turns, requests = _count(event.turns, "turn"), _count(event.requests, "request")
            yield _cut(f"{event.reason} after {turns}, {requests}{detail}", longest)


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def _progress(event: Progress, longest: int) -> Iterator[str]:
    if event.kind == "tool_progress":
        yield _cut(f"  {event.tool} tells {_said(event.data)}", longest)
    elif event.kind == "tool_started":
        yield f"  {event.tool} started"
    else:
        how = " with an error" if event.is_error else ""
        yield f"  {event.tool} finished{how}{', and was discarded' if event.discarded else ''}"


def _message(who: str, message: Any, longest: int) -> Iterator[str]:
    for block in blocks_of(message):
        kind = block.get("type")
        if kind == "text":
            yield _cut(f"{who}: {block['text']}", longest)
        elif kind in {"tool_use", "server_tool_use"}:
            yield _cut(f"{who} calls {block['name']}({_said(block['input'])})", longest)
        elif kind == "tool_result":
            wrong = "error: " if block.get("is_error") else ""
            yield _cut(f"  result: {wrong}{_result(block.get('content'))}", longest)
        elif kind == "thinking":
            yield _cut(f"{who} thinks: {block['thinking']}", longest)
        else:
            yield f"{who}: ({kind})"


def _result(content: Any) -> str:
    parts = as_list(content)
    if parts is not None:
        return " ".join(str(part.get("text", f"({part.get('type')})")) for part in parts)
    return str(content)


def _said(data: Any) -> str:
    return data if isinstance(data, str) else json.dumps(data, ensure_ascii=False, default=str)


def _cut(line: str, longest: int) -> str:
    line = line.replace("\n", "\n    ")
    if len(line) <= longest:
        return line
    half = longest // 2
    return f"{line[:half]} [... {len(line) - 2 * half} characters ...] {line[-half:]}"
