"""One message: a plain Messages-API dict, what can be read from it, and how it becomes bytes."""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

JsonObject: TypeAlias = dict[str, Any]

MEDIA_TOKENS: Final = 1_600
"""Tokens counted for an image or a document, whatever its size: about what the largest image that the API does not
scale down costs (width times height over 750)."""
BYTES_PER_TOKEN: Final = 4
"""A customary rule of thumb; there is no public tokenizer. What the API reports takes its place as soon as known."""

THINKING: Final = frozenset({"thinking", "redacted_thinking"})
_MEDIA: Final = frozenset({"image", "document"})


class Message(dict[str, Any]):
    """A plain Messages-API dict that remembers who made it. What it remembers is never sent.

    `model` is the model that wrote an assistant message: its thinking goes to no other. `purpose` says why a message
    of role `user` is there (`prompt`, `tool_results`, `queued`, `summary`, or the trigger that added it); None is
    unknown.

    >>> message = Message({"role": "assistant", "content": "Hello."}, model="claude-sonnet-5-5")
    >>> message == {"role": "assistant", "content": "Hello."}, message.model
    (True, 'claude-sonnet-5-5')
    """

    __slots__ = ("model", "purpose")

    def __init__(self, fields: Mapping[str, Any], *, model: str | None = None, purpose: str | None = None) -> None:
        super().__init__(fields)
        self.model = model
        self.purpose = purpose

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (dict(self), self.model, self.purpose)


def _restored(fields: JsonObject, model: str | None, purpose: str | None) -> Message:
    return Message(fields, model=model, purpose=purpose)


def with_content(message: Mapping[str, Any], content: str | list[JsonObject]) -> Message:
    """The message with other content, made by the same model for the same purpose."""
    return Message(
        {**message, "content": content},
        model=getattr(message, "model", None),
        purpose=getattr(message, "purpose", None),
    )


def user_message(content: str | list[JsonObject], purpose: str | None = None) -> Message:
    return Message({"role": "user", "content": content}, purpose=purpose)


def blocks_of(message: Mapping[str, Any]) -> list[JsonObject]:
    """The content blocks; a string is one text block.

    >>> blocks_of({"role": "user", "content": "Hi"})
    [{'type': 'text', 'text': 'Hi'}]
    """
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return cast("list[JsonObject]", content) if isinstance(content, list) else []


def inner_blocks(block: Mapping[str, Any]) -> list[JsonObject]:
    """The blocks inside a tool result; none where its content is a string."""
    content = block.get("content")
    return cast("list[JsonObject]", content) if isinstance(content, list) else []


def text_of(message: Mapping[str, Any]) -> str:
    """The visible text, blocks joined by line breaks."""
    return "\n".join(str(block.get("text", "")) for block in blocks_of(message) if block.get("type") == "text")


def is_blank_text(block: Mapping[str, Any]) -> bool:
    return block.get("type") == "text" and not str(block.get("text", "")).strip()


def is_server_use(block: Mapping[str, Any]) -> bool:
    """A call that the API's side runs itself: `server_tool_use`, `mcp_tool_use`."""
    return str(block.get("type")).endswith("_tool_use")


def is_server_result(block: Mapping[str, Any]) -> bool:
    """The result of such a call: `web_search_tool_result`, `mcp_tool_result`, ..."""
    return str(block.get("type")).endswith("_tool_result")


_ONLY_USER: Final = frozenset({"tool_result", "image", "document", "search_result"})


def is_misplaced(block: Mapping[str, Any], role: object) -> bool:
    """Whether a message of this role cannot have the block ("`tool_result` blocks can only be in `user` messages").

    >>> is_misplaced({"type": "tool_use"}, "user"), is_misplaced({"type": "tool_use"}, "assistant")
    (True, False)
    """
    kind = block.get("type")
    of_assistant = kind == "tool_use" or kind in THINKING or is_server_use(block) or is_server_result(block)
    return (of_assistant and role != "assistant") or (kind in _ONLY_USER and role != "user")


def is_signed(block: Mapping[str, Any]) -> bool:
    """A thinking block that is whole: its signature (of redacted thinking: its data) is there.

    The text may be empty, as it is where the display of thinking is turned off; the signature may not.
    """
    if block.get("type") == "redacted_thinking":
        return bool(block.get("data"))
    return bool(block.get("signature")) and isinstance(block.get("thinking"), str)


def media_of(message: Mapping[str, Any]) -> Iterator[tuple[int, int | None, JsonObject]]:
    """Images and documents: position of the block, position inside its tool result or None, and the block."""
    for position, block in enumerate(blocks_of(message)):
        if block.get("type") in _MEDIA:
            yield position, None, block
        elif block.get("type") == "tool_result":
            for inner, part in enumerate(inner_blocks(block)):
                if part.get("type") in _MEDIA:
                    yield position, inner, part


def estimated_tokens(message: Mapping[str, Any], size: int) -> int:
    """Tokens of a message whose JSON has `size` bytes, at least 1.

    >>> estimated_tokens({"role": "user", "content": "Hello"}, size=34)
    8
    """
    media = [block for _, _, block in media_of(message)]
    if not media:
        return max(1, size // BYTES_PER_TOKEN)
    return max(1, (size - sum(map(payload_size, media))) // BYTES_PER_TOKEN) + len(media) * MEDIA_TOKENS


def payload_size(block: Mapping[str, Any]) -> int:
    """Characters of the base64 text of an image or a document."""
    source: object = block.get("source")
    data: object = cast("JsonObject", source).get("data") if isinstance(source, dict) else None
    return len(data) if isinstance(data, str) else 0


_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def encoded(value: object) -> bytes:
    """Compact, strict UTF-8 JSON. Raises ValueError (UnicodeEncodeError) for what is not strict, TypeError for others.

    >>> encoded({"text": "naïve"})
    b'{"text":"na\\xc3\\xafve"}'
    """
    return _encode(value).encode()


# Each form of a mark that is written without spaces. A long needle is found several times faster than its key alone.
_CACHE_MARKS: Final = (b'"cache_control":{"type":"ephemeral"', b'"cache_control":{"ttl":')


def cache_marks(data: bytes) -> int:
    """How many marks for the prompt cache there are in compact JSON."""
    if not data:
        return 0
    plain, timed = _CACHE_MARKS
    return data.count(plain) + data.count(timed)


@dataclass(frozen=True, slots=True)
class OpenArray:
    """Encoded messages as a history keeps them, not copied: join them at once, since the next message changes them."""

    data: bytearray
    """A JSON array without the bracket that closes it."""
    cache_marks: int


def strict_text(text: str) -> str:
    """The text without lone surrogates; a pair of them becomes the character that it stands for.

    >>> strict_text("a\\ud83d\\ude00b\\ud800")
    'a😀b�'
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def strict_json(value: object) -> Any:
    """A deep copy as strict JSON: surrogates replaced, tuples as lists, objects of the SDK as dicts.

    A number that JSON does not have becomes its name. Raises TypeError for a value that is none of these.

    >>> strict_json({"a": (1, float("nan"))})
    {'a': [1, 'nan']}
    """
    if isinstance(value, str):
        return strict_text(value)
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        fields = cast("Mapping[object, object]", value)
        return {strict_text(str(key)): strict_json(inner) for key, inner in fields.items()}
    if isinstance(value, list | tuple):
        return [strict_json(inner) for inner in cast("list[object]", value)]
    dump = getattr(value, "model_dump", None)  # pydantic's, which the SDK's objects have
    if callable(dump):
        return strict_json(dump(mode="json", exclude_none=True))
    raise TypeError(f"{type(value).__name__} is not JSON")
