"""The tool calls that a model asked for, as the display knows them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from fsm_agent.cli.printable import one_line, printable
from fsm_agent.loop.events import Progress
from fsm_agent.model.json_types import as_object, is_array, is_object

INPUT_WIDTH: Final = 70


@dataclass(slots=True)
class ToolCallView:
    """A call that the model asked for, as far as it is known."""

    name: str
    summary: str = ""
    raw_input: list[str] = field(default_factory=list[str])
    started: float | None = None
    seconds: float | None = None
    is_error: bool = False
    progress: str = ""


class CallsView:
    """The calls of the reply in progress, by their ids."""

    def __init__(self) -> None:
        self.by_id: dict[str, ToolCallView] = {}
        self._open: ToolCallView | None = None

    def block_started(self, block: Mapping[str, Any]) -> None:
        """A block of the reply has begun; if it is a call, its input follows."""
        if block.get("type") == "tool_use":
            self._open = self.by_id[str(block.get("id"))] = ToolCallView(printable(str(block.get("name", "?"))))

    def input_came(self, partial_json: str) -> None:
        if self._open is not None:
            self._open.raw_input.append(partial_json)

    def block_stopped(self) -> None:
        if self._open is not None:
            self._open.summary = input_summary("".join(self._open.raw_input))
            self._open = None

    def message_came(self, message: Mapping[str, Any]) -> None:
        """Ids may have been made unique since they streamed; the message has the ones that count."""
        content = message.get("content")
        for item in content if is_array(content) else ():
            block = as_object(item) or {}
            if block.get("type") == "tool_use":
                call = self.by_id.setdefault(str(block.get("id")), ToolCallView(printable(str(block.get("name", "?")))))
                call.summary = call.summary or input_summary(json.dumps(block.get("input"), ensure_ascii=False))

    def progressed(self, event: Progress, now: float) -> None:
        call = self.by_id.setdefault(event.tool_use_id, ToolCallView(printable(event.tool)))
        match event.kind:
            case "tool_started":
                call.started = now
            case "tool_progress":
                lines = event.data.split("\n") if isinstance(event.data, str) else []
                call.progress = next((line for line in reversed(lines) if line.strip()), call.progress)
            case "tool_finished":
                call.seconds, call.is_error = event.seconds, bool(event.is_error)

    def answered(self, tool_use_id: str) -> ToolCallView:
        """The call that a result belongs to; it is no longer at work."""
        return self.by_id.pop(tool_use_id, None) or ToolCallView("?")

    def withdrawn(self) -> None:
        self.by_id.clear()
        self._open = None

    @property
    def working(self) -> list[ToolCallView]:
        return [call for call in self.by_id.values() if call.started is not None]


def input_summary(raw_json: str) -> str:
    """The input of a call in a few words: its values, as they were written.

    >>> input_summary('{"path": "a.py", "limit": 20}')
    'a.py 20'
    """
    try:
        value: Any = json.loads(raw_json or "{}")
    except ValueError:
        return one_line(raw_json, INPUT_WIDTH)
    values: list[Any] = list(value.values()) if is_object(value) else [value]
    words = (item if isinstance(item, str) else json.dumps(item, ensure_ascii=False) for item in values)
    return one_line(" ".join(word for word in words if word), INPUT_WIDTH)
