"""Reading the path of a run from what `fsm-agent run --json` printed."""

from __future__ import annotations

import json
from pathlib import Path

from fsm_agent.cli.errors import UsageError
from fsm_agent.model.json_types import as_object


def read_trace(path: Path) -> list[str]:
    """The triggers of the `transition` events in a file of JSON lines, in order.

    Raises `UsageError` for a file that cannot be read or holds no transition.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"The trace {str(path)!r} cannot be read: {error}.") from error
    trace = [trigger for number, line in enumerate(text.splitlines(), 1) for trigger in _trigger(path, number, line)]
    if not trace:
        raise UsageError(f"{path} holds no transition; give a file that `fsm-agent run --json` wrote.")
    return trace


def _trigger(path: Path, number: int, line: str) -> list[str]:
    if not line.strip():
        return []
    try:
        event = as_object(json.loads(line))
    except ValueError as error:
        raise UsageError(
            f"Line {number} of {path} is no JSON ({error}); give a file that `fsm-agent run --json` wrote."
        ) from error
    if event is None or event.get("type") != "transition":
        return []
    trigger = event.get("trigger")
    if not isinstance(trigger, str):
        raise UsageError(f"Line {number} of {path} is a transition without a trigger.")
    return [trigger]
