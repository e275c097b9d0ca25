"""What a person sees of a run: a pure fold of its events into lines to print, and a live part below them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.text import Text

from fsm_agent.cli.calls import CallsView, ToolCallView
from fsm_agent.cli.entries import Entry, Marks, cropped, last_lines
from fsm_agent.cli.numbers import clock, duration, short_count
from fsm_agent.cli.path import path_text
from fsm_agent.cli.printable import one_line, printable
from fsm_agent.cli.words import sentence, told
from fsm_agent.loop.events import (
    Assistant,
    ContextEdit,
    Event,
    Progress,
    StreamEvent,
    StreamRequestStart,
    System,
    Terminal,
    Tombstone,
    Transition,
    User,
)
from fsm_agent.machine import Definition, TerminalReason
from fsm_agent.model.json_types import as_object, as_text

TAIL_LINES: Final = 8
"""Lines of an unfinished paragraph that are shown while it streams."""
SHOWN_TOOLS: Final = 8
TOKEN_COUNTS: Final = (
    "input_tokens",
    "output_tokens",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
)


class Tail:
    """Text that grows at its end, piece by piece, at a cost that does not grow with it."""

    def __init__(self) -> None:
        self._pieces: list[str] = []

    def add(self, piece: str) -> None:
        if piece:
            self._pieces.append(piece)

    def taken(self) -> str:
        """The whole text; nothing of it is left."""
        whole = "".join(self._pieces)
        self._pieces.clear()
        return whole

    def end(self, length: int) -> str:
        """The last characters."""
        first = len(self._pieces)
        seen = 0
        while first and seen < length:
            first -= 1
            seen += len(self._pieces[first])
        return "".join(self._pieces[first:])[-length:]


class RunView:
    """Folds the events of one run.

    `feed` takes an event and returns what is to be printed for good; `live` is what stands below that until the next
    time. `now` is the time in seconds of any clock that only goes forward.
    """

    def __init__(
        self,
        definition: Definition,
        bounds: Mapping[str, int | None],
        *,
        model: str,
        now: float,
        marks: Marks | None = None,
    ) -> None:
        self.definition = definition
        self.bounds = bounds
        self.marks = marks or Marks()
        self.model = model
        self.started = now
        self.state = definition.initial
        self.turn = 1
        self.notice = ""
        self.trace: list[str] = []
        self.terminal: Terminal | None = None
        self._tokens_before = 0
        self._tokens_of_reply: dict[str, int] = {}
        self._tail = Tail()
        self._paragraphs = 0
        self._shown = ""
        self._said: set[str] = set()
        self._calls = CallsView()

    # ---- folding

    def feed(self, event: Event, now: float) -> list[RenderableType]:
        """What this event adds to the display for good."""
        match event:
            case StreamEvent():
                return self._stream(event)
            case StreamRequestStart(model=model):
                self.model, self.notice = model, ""
                self._tokens_before, self._tokens_of_reply = self.tokens, {}
            case Progress():
                self._calls.progressed(event, now)
            case Assistant(message=message):
                self._calls.message_came(message)
                return self._end_of_text()
            case User(message=message, purpose="tool_results"):
                return [entry for block in message["content"] for entry in self._result(block)]
            case Tombstone():
                return self._withdrawn(event)
            case System():
                return self._system(event)
            case ContextEdit(stage=stage, removed=removed, tokens_before=before, tokens_after=after):
                text = f"{stage}: {removed} ({short_count(before)}{self.marks.arrow}{short_count(after)} tokens)"
                return [self._entry(self.marks.edited, text, "blue")]
            case Transition():
                return self._transition(event)
            case Terminal():
                self.terminal = event
                return self._end_of_text()
            case _:
                pass
        return []

    @property
    def tokens(self) -> int:
        """Tokens of all requests so far, as the API has reported them."""
        return self._tokens_before + sum(self._tokens_of_reply.values())

    def _stream(self, event: StreamEvent) -> list[RenderableType]:
        raw = event.event
        match raw.get("type"):
            case "message_start":
                self._count((as_object(raw.get("message")) or {}).get("usage"))
            case "message_delta":
                self._count(raw.get("usage"))
            case "content_block_start":
                block = as_object(raw.get("content_block")) or {}
                self.notice = "thinking" if as_text(block.get("type")).endswith("thinking") else ""
                self._calls.block_started(block)
            case "content_block_delta":
                delta = as_object(raw.get("delta")) or {}
                if delta.get("type") == "input_json_delta":
                    self._calls.input_came(as_text(delta.get("partial_json")))
                elif event.text:
                    self._shown = event.message_id
                    return self._text(event.text)
            case "content_block_stop":
                self._calls.block_stopped()
                return self._end_of_text()
            case _:
                pass
        return []

    def _count(self, usage: object) -> None:
        """Figures of a reply only grow while it streams, and each event may hold some of them."""
        figures = as_object(usage) or {}
        for name in TOKEN_COUNTS:
            if isinstance(figure := figures.get(name), int):
                self._tokens_of_reply[name] = max(self._tokens_of_reply.get(name, 0), figure)

    def _text(self, text: str) -> list[RenderableType]:
        """Paragraphs are printed when they are whole; the last, open one stands in the live part."""
        *whole, rest = text.split("\n")
        entries: list[RenderableType] = []
        for line in whole:
            entries += self._paragraph(self._tail.taken() + line)
        self._tail.add(rest)
        return entries

    def _paragraph(self, line: str) -> list[RenderableType]:
        first = self._paragraphs == 0
        if first and not line.strip():
            return []
        self._paragraphs += 1
        return [self._entry(self.marks.text if first else " ", line.removesuffix("\r"), "bold")]

    def _end_of_text(self) -> list[RenderableType]:
        rest = self._tail.taken()
        entries = self._paragraph(rest) if rest.strip() else []
        self._paragraphs = 0
        return entries

    def _result(self, block: Mapping[str, Any]) -> Iterable[RenderableType]:
        if block.get("type") != "tool_result":
            return
        call = self._calls.answered(str(block["tool_use_id"]))
        failed = bool(block.get("is_error"))
        yield self._call_entry(call, failed)
        if failed:
            yield from last_lines(block.get("content"))

    def _call_entry(self, call: ToolCallView, failed: bool) -> Entry:
        text = Text.assemble((call.name, "bold"), f" {call.summary}" if call.summary else "")
        if call.seconds is not None:
            text.append(f" ({duration(call.seconds)})", "dim")
        return Entry(self.marks.failed if failed else self.marks.done, text, "red" if failed else "green")

    def _withdrawn(self, event: Tombstone) -> list[RenderableType]:
        entries = self._end_of_text()
        self._calls.withdrawn()
        if self._shown == event.message_id:
            text = "withdrawn: the text above is not part of the answer"
            entries.append(self._entry(self.marks.repaired, text, "yellow"))
        return entries

    def _system(self, event: System) -> list[RenderableType]:
        if event.subtype == "backoff":
            self.notice = event.message
            return []
        self._said.add(event.message)
        style, mark = ("red", self.marks.failed) if event.subtype == "error" else ("yellow", self.marks.repaired)
        return [*self._end_of_text(), self._entry(mark, event.message, style)]

    def _transition(self, event: Transition) -> list[RenderableType]:
        self.state, self.turn = event.dest, event.control.get("turn", self.turn)
        self.notice = ""
        self.trace.append(event.trigger)
        if not told(event):
            return []
        text = Text.assemble((event.trigger, "bold"), f": {sentence(event, self.definition, self.bounds)}")
        return [*self._end_of_text(), Entry(self.marks.repaired, text, "yellow")]

    def _entry(self, mark: str, text: str, style: str) -> Entry:
        return Entry(mark, Text(printable(text)), style)

    # ---- the live part

    def live(self, now: float, *, width: int) -> RenderableType:
        """The open paragraph, the calls at work, and the status line."""
        parts: list[RenderableType] = []
        if (tail := self._tail.end(width * TAIL_LINES)).strip():
            parts.append(self._entry(self.marks.text if self._paragraphs == 0 else " ", tail, "bold"))
        working = self._calls.working
        spinner = self.marks.spinner[int((now - self.started) * 10) % len(self.marks.spinner)]
        parts += [self._working(call, now, spinner, width) for call in working[:SHOWN_TOOLS]]
        if len(working) > SHOWN_TOOLS:
            parts.append(self._entry(" ", f"and {len(working) - SHOWN_TOOLS} more calls", "dim"))
        parts.append(self._status(now, spinner, width))
        return Group(*parts)

    def _working(self, call: ToolCallView, now: float, spinner: str, width: int) -> RenderableType:
        if call.seconds is not None:
            return cropped(self._call_entry(call, call.is_error), width)
        elapsed = duration(now - (now if call.started is None else call.started))
        text = Text.assemble((call.name, "bold"), f" {call.summary}", (f" {elapsed}", "dim"))
        if call.progress:
            text.append(f"{self.marks.dot}{one_line(call.progress, width)}", "dim")
        return cropped(Entry(spinner, text, "cyan"), width)

    def _status(self, now: float, spinner: str, width: int) -> RenderableType:
        words = (
            f"turn {self.turn}",
            self.notice or self.state.replace("_", " "),
            self.model,
            f"{short_count(self.tokens)} tokens",
            clock(now - self.started),
        )
        return cropped(Entry(spinner, Text(printable(self.marks.dot.join(words)), "dim"), "cyan"), width)

    # ---- the end

    def summary(self, now: float) -> RenderableType:
        """How the run ended: reason, turns, requests, tokens, time, and the path through the machine."""
        end = self.terminal
        assert end is not None, "The run has not ended."
        usage = end.usage
        cached = usage.cache_read_input_tokens
        entered = usage.input_tokens + usage.cache_creation_input_tokens + cached
        from_cache = f", {cached:,} of them cached" if cached else ""
        good = end.reason == TerminalReason.COMPLETED
        lines = {
            "reason": Text(end.reason, "bold green" if good else "bold red"),
            "detail": Text("" if end.detail in self._said else printable(end.detail)),
            "turns": Text(f"{end.turns:,}"),
            "requests": Text(f"{end.requests:,}"),
            "tokens": Text(f"{usage.total:,} ({entered:,} in{from_cache}, {usage.output_tokens:,} out)"),
            "time": Text(duration(now - self.started)),
            "path": Text(path_text(self.trace, self.marks.arrow)),
        }
        return Group(Text(), *(Entry(f"{name:8}", text, "dim") for name, text in lines.items() if text.plain))
