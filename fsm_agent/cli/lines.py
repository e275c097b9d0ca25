"""A run for programs: one event a line, as JSON, the terminal event last."""

from __future__ import annotations

import json
import math
from typing import BinaryIO

from fsm_agent.loop.events import Event
from fsm_agent.model.json_types import is_array, is_object


def event_line(event: Event) -> bytes:
    """The event as one line of strict JSON in UTF-8.

    Lone surrogates, which are no text, become question marks; a value that JSON does not know is told by its `repr`.
    """
    data = event.model_dump()
    try:
        text = json.dumps(data, ensure_ascii=False, allow_nan=False, default=repr, separators=(",", ":"))
    except ValueError:
        text = json.dumps(_finite(data), ensure_ascii=False, default=repr, separators=(",", ":"))
    return text.encode("utf-8", errors="replace") + b"\n"


def _finite(value: object) -> object:
    """The value with infinities and not-a-number, which JSON has not, as text."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if is_object(value):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if is_array(value) else value


class LineWriter:
    """Writes events to a stream of bytes, each at once."""

    def __init__(self, stream: BinaryIO) -> None:
        self.stream = stream

    def show(self, event: Event) -> None:
        """Write and flush one event. Raises `BrokenPipeError` if nobody reads any more."""
        self.stream.write(event_line(event))
        self.stream.flush()
