"""Items of a script written down: as Python that can be pasted, and as the words of a script file."""

from __future__ import annotations

from typing import Any

from fsm_agent.testing.script import ApiError, Fault, Item, Repeat, Reply, Stream, Usage, When
from fsm_agent.testing.script_file import ScriptItem
from fsm_agent.testing.shapes import JsonObject

__all__ = ["code_of", "item_of", "words_of"]


def code_of(item: Item) -> str:
    """Python that makes the item, as short as it can be.

    >>> from fsm_agent.testing.content import tool_use
    >>> code_of(Reply("Let me see.", tool_use("read", {"path": "a"}), usage={"output_tokens": 3}))
    "Reply('Let me see.', tool_use('read', {'path': 'a'}), usage={'output_tokens': 3})"
    >>> code_of(ApiError(529, "overloaded_error"))
    "ApiError(529, 'overloaded_error')"
    """
    if isinstance(item, Reply):
        parts = [_block_code(block) for block in item.blocks]
        parts += _named(item, "stop", "model", "stop_sequence", "stop_details")
        parts += [f"extra={item.extra!r}"] if item.extra else []
    elif isinstance(item, Stream):
        parts = [repr(list(item.steps)), *_named(item, "model")]
    elif isinstance(item, ApiError):
        plain = ApiError(item.status, item.type)
        parts = [repr(item.status), repr(item.type)]
        parts += [repr(item.message)] if item.message != plain.message else []
        parts += [f"headers={dict(item.headers)!r}"] if dict(item.headers) != dict(plain.headers) else []
        parts += _named(item, "details")
    else:
        parts = [repr(item.body), f"status={item.status}", f"headers={dict(item.headers)!r}"]
    usage = getattr(item, "usage", Usage()).given()
    parts += [f"usage={usage!r}"] if usage else []
    parts += [f"when={_when_words(item.when)!r}"] if item.when is not None else []
    fault: Fault | None = getattr(item, "fault", None)
    parts += [f"fault={_fault_code(fault)}"] if fault is not None else []
    return f"{type(item).__name__}({', '.join(parts)})"


def _named(item: Item, *names: str) -> list[str]:
    return [f"{name}={value!r}" for name in names if (value := getattr(item, name)) is not None]


def _block_code(block: JsonObject) -> str:
    keys = set(block)
    if block["type"] == "text" and keys == {"type", "text"}:
        return repr(block["text"])
    if block["type"] == "tool_use" and keys == {"type", "id", "name", "input"} and isinstance(block["input"], dict):
        given = f", {block['input']!r}" if block["input"] else ""
        named = f", id={block['id']!r}" if block["id"] is not None else ""
        return f"tool_use({block['name']!r}{given}{named})"
    if block["type"] == "thinking" and keys == {"type", "thinking", "signature"} and block["signature"] is None:
        return f"thinking({block['thinking']!r})"
    return repr(block)


def _fault_code(fault: Fault) -> str:
    plain = Fault(fault.at_event, fault.kind)
    more = [
        f"{name}={getattr(fault, name)!r}"
        for name in ("after_bytes", "error_type", "message")
        if getattr(fault, name) != getattr(plain, name)
    ]
    return f"Fault({', '.join([repr(fault.at_event), repr(fault.kind), *more])})"


def _when_words(when: When) -> str:
    if when.kind is None or when != When(kind=when.kind):
        raise ValueError(
            f"{when!r} has no short form; in a scenario an item is kept for a kind of request or for none."
        )
    return when.kind


def words_of(item: Item) -> JsonObject:
    """The item as an object of a script file.

    >>> words_of(Reply("hi", stop="max_tokens"))
    {'blocks': [{'type': 'text', 'text': 'hi'}], 'stop': 'max_tokens'}
    """
    words: JsonObject = {}
    if isinstance(item, Reply):
        words["blocks"] = [dict(block) for block in item.blocks]
        for name in ("stop", "model", "stop_sequence", "stop_details"):
            if getattr(item, name) is not None:
                words[name] = getattr(item, name)
        if item.extra:
            raise ValueError(f"A script file has no place for extra={item.extra!r} of a Reply.")
    elif isinstance(item, Stream):
        words["stream"] = [_step_words(step) for step in item.steps]
    elif isinstance(item, ApiError):
        words |= {"http": item.status, "error": item.type, "message": item.message, "headers": dict(item.headers)}
        if item.details is not None:
            words["details"] = item.details
    else:
        headers = dict(item.headers)
        words["response"] = {"status": item.status, "headers": headers, "body": item.body.decode("utf-8", "strict")}
    usage = getattr(item, "usage", Usage()).given()
    if usage:
        words["usage"] = usage
    if item.when is not None:
        words["when"] = f"kind=={_when_words(item.when)}"
    fault: Fault | None = getattr(item, "fault", None)
    if fault is not None:
        names = ("at_event", "kind", "after_bytes", "error_type", "message")
        words["fault"] = {name: getattr(fault, name) for name in names}
    return words


def _step_words(step: Any) -> Any:
    if isinstance(step, bytes):
        raise ValueError("A script file has no place for a step of raw bytes; use a RawResponse.")  # noqa: TRY004 - as documented
    return step


def item_of(words: Any) -> Item:
    """The item that the words of a script file mean. Raises `ValueError` for what is none."""
    made = ScriptItem.model_validate(words).item()
    if isinstance(made, Repeat):
        raise ValueError("In a scenario an item is written as often as it is served; it has no `repeat`.")  # noqa: TRY004 - as documented
    return made
