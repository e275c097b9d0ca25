"""What a user may say: text, or content blocks, looked at before it enters a history."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

from fsm_agent.model.json_types import is_mapping
from fsm_agent.session.loading import HistoryError, readable
from fsm_agent.session.tidying import tidied

_NOT_A_USERS: Final = frozenset({"tool_use", "tool_result", "server_tool_use", "thinking", "redacted_thinking"})
"""Blocks of the model, and answers to them: a message that a user writes holds none."""


def user_content(given: object, what: str) -> str | list[dict[str, Any]]:
    """The content of a user's message, as strict JSON of its own. Raises `ValueError` for what is none.

    >>> user_content("", "prompt")
    Traceback (most recent call last):
    ValueError: The prompt is blank; say what the agent should do.
    """
    blank = f"The {what} is blank; say what the agent should do."
    if isinstance(given, str):
        if not given.strip():
            raise ValueError(blank)
        return given
    if isinstance(given, bytes) or is_mapping(given) or not isinstance(given, Iterable):
        raise ValueError(
            f"The {what} is of type {type(given).__name__}; give text, or a list of content blocks such as "
            '[{"type": "text", "text": "..."}].'
        )
    blocks = list(cast("Iterable[object]", given))
    if not blocks:
        raise ValueError(f"The {what} is an empty list; give at least one content block.")
    message = tidied(_message(blocks, what))
    if message is None:
        raise ValueError(blank)
    return cast("list[dict[str, Any]]", message["content"])


def _message(blocks: list[object], what: str) -> Mapping[str, Any]:
    try:
        (message,), _ = readable([{"role": "user", "content": blocks}])
    except HistoryError as error:
        text = str(error).replace("The history", f"The {what}", 1)
        raise ValueError(text.replace("messages[0].content", "block ", 1).replace("messages[0]", "it", 1)) from None
    foreign = [block["type"] for block in message["content"] if block["type"] in _NOT_A_USERS]
    if foreign:
        raise ValueError(
            f"The {what} holds a `{foreign[0]}` block, which is no user's to write; give text, images or documents. "
            "What the model said and what tools answered belongs into the history."
        )
    return message
