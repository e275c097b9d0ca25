"""What a tool returned, as the content of a `tool_result`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, cast

from pydantic import BaseModel
from pydantic_core import to_json, to_jsonable_python

from fsm_agent.tools.calls import Json
from fsm_agent.tools.faults import Content, ToolError, text_of_fault

BLOCK_TYPES: Final = frozenset({"text", "image", "document", "search_result", "tool_reference"})
"""Blocks that the API takes in a `tool_result`."""

NO_OUTPUT: Final = "(no output)"
_SURROGATES: Final = re.compile("[\ud800-\udfff]")


def content_of(value: object) -> Content:
    """Texts and lists of content blocks as they are, anything else as JSON. Raises `ToolError` where there is none.

    >>> content_of("done"), content_of(None), content_of({"b": 1, "a": [True]})
    ('done', '(no output)', '{"b":1,"a":[true]}')
    >>> content_of([{"type": "text", "text": "one"}])
    [{'type': 'text', 'text': 'one'}]
    """
    if value is None:
        return NO_OUTPUT
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, bytes | bytearray):
        return clean_text(bytes(value).decode("utf-8", errors="replace"))
    if isinstance(value, Iterator):
        raise ToolError(
            f"The tool returned {_kind(cast('object', value))}, which is no result: it has to be read first."
        )
    if (blocks := _blocks_of(value)) is not None:
        return clean_blocks(blocks)
    return to_json(_plain(value)).decode("utf-8")


def clean_text(text: str) -> str:
    """Never blank, and encodable: lone surrogates, which no UTF-8 has, are replaced."""
    if not text.isascii():
        text = _SURROGATES.sub("\ufffd", text)
    return text if text.strip() else NO_OUTPUT


def clean_blocks(blocks: list[dict[str, Any]]) -> Content:
    """Blocks without blank texts, which the API refuses; their texts as in `clean_text`."""
    kept = [{key: _clean(each) for key, each in block.items()} for block in blocks if not _is_blank(block)]
    return kept or NO_OUTPUT


def texts_only(content: Content) -> Content:
    """The content of an error: the API takes nothing but text there (api rule R124)."""
    if isinstance(content, str):
        return content
    return [
        block if block.get("type") == "text" else {"type": "text", "text": f"[{block.get('type')} left out]"}
        for block in content
    ]


def with_note(content: Content, note: str) -> Content:
    """The content with a text after it."""
    note = clean_text(note)
    if isinstance(content, str):
        return f"{content}\n\n{note}"
    return [*content, {"type": "text", "text": note}]


def _kind(value: object) -> str:
    return f"a value of type {type(value).__module__}.{type(value).__qualname__}"


def _plain(value: object) -> Json:
    """The value as JSON data of its own, encodable."""
    try:
        plain: Json = to_jsonable_python(value, inf_nan_mode="null")
    except Exception as fault:
        raise ToolError(
            f"The tool returned {_kind(value)}, which has no JSON form ({text_of_fault(fault)})."
        ) from fault
    return _clean(plain)


def _blocks_of(value: object) -> list[dict[str, Any]] | None:
    """The value as content blocks, if it is a list of such and of nothing else."""
    if not isinstance(value, list | tuple) or not value:
        return None
    members = cast("list[object] | tuple[object, ...]", value)
    parts = [each.model_dump(exclude_none=True) if isinstance(each, BaseModel) else each for each in members]
    if not all(_is_block(each) for each in parts):
        return None
    return cast("list[dict[str, Any]]", _plain(parts))


def _is_block(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    block = cast("dict[object, object]", value)
    kind = block.get("type")
    return isinstance(kind, str) and kind in BLOCK_TYPES and (kind != "text" or isinstance(block.get("text"), str))


def _is_blank(block: dict[str, Any]) -> bool:
    return block["type"] == "text" and not block["text"].strip()


def _clean(value: Json) -> Json:
    if isinstance(value, str):
        return value if value.isascii() else _SURROGATES.sub("\ufffd", value)
    if isinstance(value, dict):
        return {key: _clean(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_clean(each) for each in value]
    return value
