"""Reading a history from outside: is it a list of messages at all? What is wrong among its messages is for `repair`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, NoReturn, cast

from fsm_agent.session.message import JsonObject, Message, strict_json

KNOWN_KEYS: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "text": frozenset({"type", "text", "citations", "cache_control"}),
        "thinking": frozenset({"type", "thinking", "signature"}),
        "redacted_thinking": frozenset({"type", "data"}),
        "tool_use": frozenset({"type", "id", "name", "input", "cache_control", "caller", "toolset_name"}),
        "tool_result": frozenset({"type", "tool_use_id", "content", "is_error", "cache_control", "toolset_name"}),
    }
)
"""The keys that the API takes in each of the common blocks (of the SDK's `...BlockParam` types; a test compares)."""

_REQUIRED: Final[Mapping[str, tuple[tuple[str, type | tuple[type, ...]], ...]]] = MappingProxyType(
    {
        "text": (("text", str),),
        "tool_use": (("id", str), ("name", str)),
        "tool_result": (("tool_use_id", str),),
        "image": (("source", Mapping),),
        "document": (("source", Mapping),),
    }
)

_ROLES: Final = ("user", "assistant", "system")
_ROLE_HINTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "tool": "Give the result as a `tool_result` block in a message of role `user`.",
        "function": "Give the result as a `tool_result` block in a message of role `user`.",
        "developer": "Give standing instructions as the machine's `system`.",
    }
)


class HistoryError(ValueError):
    """What was given as a history is none. The text says where, and what to give instead."""


def readable(messages: object, *, model: str | None = None) -> tuple[list[Message], list[str]]:
    """A deep copy of the messages as strict JSON, and what was left out of it, in words.

    Objects of the SDK (`response`, `response.content`) are read as well as dicts. Keys that the API does not take are
    left out. Raises `HistoryError`.
    """
    if not _is_series(messages):
        _refuse("it", f"is of type {_kind(messages)}", "Give a list of messages, or a prompt as a string.")
    notes: list[str] = []
    given = cast("Iterable[object]", messages)
    read = [_message(raw, f"messages[{index}]", model, notes) for index, raw in enumerate(given)]
    if read and read[0]["role"] == "system":
        _refuse("messages[0]", "has the role 'system'", "Give standing instructions as the machine's `system`.")
    return read, notes


def _refuse(where: str, what: str, instead: str) -> NoReturn:
    raise HistoryError(f"The history cannot be read: {where} {what}. {instead}")


def _is_series(value: object) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)


def _kind(value: object) -> str:
    return type(value).__name__


def _json(value: object, where: str) -> Any:
    try:
        return strict_json(value)
    except TypeError as error:
        raise HistoryError(f"The history cannot be read: {where} holds something else than JSON: {error}.") from None
    except RecursionError:
        raise HistoryError(f"The history cannot be read: {where} is nested too deeply.") from None


def _message(raw: object, where: str, model: str | None, notes: list[str]) -> Message:
    fields = _json(raw, where)
    if not isinstance(fields, dict):
        _refuse(where, f"is of type {_kind(raw)}", "A message is a dict with `role` and `content`.")
    message = cast("JsonObject", fields)
    role = message.get("role")
    if role not in _ROLES:
        what = "has no role" if role is None else f"has the role {role!r}"
        hint = _ROLE_HINTS.get(str(role), "Its role must be `user` or `assistant`.")
        _refuse(where, what, hint)
    known = getattr(raw, "model", None) if isinstance(raw, Message) else message.get("model")
    extra = sorted(set(message) - {"role", "content"})
    if extra:
        notes.append(f"{where}: left out what the API does not take in a message: {', '.join(extra)}.")
    return Message(
        {"role": role, "content": _content(message.get("content"), where, notes)},
        model=(known if isinstance(known, str) else model) if role == "assistant" else None,
        purpose=raw.purpose if isinstance(raw, Message) else None,
    )


def _content(content: object, where: str, notes: list[str]) -> str | list[JsonObject]:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        what = "has no content" if content is None else f"has content of type {_kind(content)}"
        _refuse(where, what, "The content is a string or a list of content blocks.")
    blocks = cast("list[object]", content)
    return [_block(block, f"{where}.content[{position}]", notes) for position, block in enumerate(blocks)]


def _block(raw: object, where: str, notes: list[str]) -> JsonObject:
    if not isinstance(raw, dict):
        _refuse(where, f"is of type {_kind(raw)}", "A content block is a dict with a `type`.")
    block = cast("JsonObject", raw)
    kind = block.get("type")
    if not isinstance(kind, str) or not kind:
        _refuse(where, "has no `type`", 'A content block is a dict such as {"type": "text", "text": "..."}.')
    for name, expected in _REQUIRED.get(kind, ()):
        if not isinstance(block.get(name), expected):
            _refuse(where, f"is a `{kind}` block without a proper `{name}`", "The Messages API needs it there.")
    block = _with_known_keys(block, kind, where, notes)
    if kind == "tool_result":
        _check_result(block, where, notes)
    return block


def _with_known_keys(block: JsonObject, kind: str, where: str, notes: list[str]) -> JsonObject:
    """Null is not taken for most optional keys (`caller`), and was never meant to be sent: the SDK's dumps hold it."""
    kept = {key: value for key, value in block.items() if value is not None or (kind, key) == ("tool_use", "input")}
    known = KNOWN_KEYS.get(kind)
    if known is None or kept.keys() <= known:
        return kept
    extra = ", ".join(sorted(kept.keys() - known))
    notes.append(f"{where}: left out what the API does not take in a `{kind}` block: {extra}.")
    return {key: value for key, value in kept.items() if key in known}


def _check_result(block: JsonObject, where: str, notes: list[str]) -> None:
    content: object = block.get("content")
    if content is None or isinstance(content, str):
        return
    if not isinstance(content, list):
        what = f"is a `tool_result` whose content is of type {_kind(content)}"
        _refuse(where, what, "It is a string or a list of content blocks.")
    parts = cast("list[object]", content)
    block["content"] = [_block(part, f"{where}.content[{position}]", notes) for position, part in enumerate(parts)]
