"""Rules on the form of `messages`, counted as sent (R011 to R013, R100 to R106, R120 to R125, R145)."""

import re
from collections.abc import Iterator

from fsm_agent.testing.rules.blocks import BLOCKS, RESULT_CONTENT, expected_tags
from fsm_agent.testing.rules.refusal import ApiRefusal, refuse
from fsm_agent.testing.rules.request import Request
from fsm_agent.testing.shapes import JsonObject, as_object, is_list, is_object, objects

Refusals = Iterator[ApiRefusal]

ROLES = ("user", "assistant", "system")
_ID = re.compile(r"[a-zA-Z0-9_-]+")
_SERVER_ID = re.compile(r"srvtoolu_[a-zA-Z0-9_]+")
_STRINGS = ("text", "thinking", "signature", "data", "id", "name", "tool_use_id", "title")


def check_messages(request: Request) -> Refusals:
    """R011 to R013, then each message in turn."""
    messages = request.body.get("messages")
    if "messages" not in request.body:
        yield refuse("R011", "messages: Field required")
    elif not is_list(messages):
        yield refuse("R011", "messages: Input should be a valid array")
    elif not messages:
        yield refuse("R012", "messages: at least one message is required")
    elif len(messages) > request.settings.max_messages:
        limit = request.settings.max_messages
        yield refuse("R013", f"messages: at most {limit} messages are allowed, found {len(messages)}")
    else:
        for at, message in enumerate(messages):
            yield from _message(f"messages.{at}", message)


def _message(path: str, message: object) -> Refusals:
    """R100 to R102."""
    if not is_object(message):
        yield refuse("R100", f"{path}: Input does not match the expected shape.")
        return
    for key in ("role", "content"):
        if key not in message:
            yield refuse("R100", f"{path}.{key}: Field required")
            return
    role, content = message["role"], message["content"]
    if role not in ROLES:
        yield refuse("R101", f'messages: Unexpected role "{role}". Allowed roles are "user" or "assistant"')
    known = {"role", "content", "output_config", "clear_at"} if role == "system" else {"role", "content"}
    for key in message:
        if key not in known:
            yield refuse("R102", f"{path}.{key}: Extra inputs are not permitted")
    if is_list(content):
        for position, block in enumerate(content):
            yield from _block(f"{path}.content.{position}", block)
    elif not isinstance(content, str):
        yield refuse("R100", f"{path}.content: Input should be a valid array")


def _block(path: str, block: object) -> Refusals:
    """R104 to R106, then the rules of the type."""
    if not is_object(block):
        yield refuse("R104", f"{path}: Input should be a valid dictionary or object to extract fields from")
        return
    kind = block.get("type")
    shape = BLOCKS.get(kind) if isinstance(kind, str) else None
    if kind is None:
        yield refuse("R104", f"{path}.type: Field required")
    elif shape is None:
        yield refuse("R104", _unknown_tag(path, kind, expected_tags(BLOCKS)))
    else:
        inner = f"{path}.{kind}"
        for key in shape.required:
            if key not in block:
                yield refuse("R105", f"{inner}.{key}: Field required")
        for key in block:
            if key != "type" and key not in shape.required and key not in shape.optional and not shape.open:
                yield refuse("R106", f"{inner}.{key}: Extra inputs are not permitted")
        yield from _values(path, inner, block)


def _unknown_tag(path: str, tag: object, tags: str) -> str:
    return f"{path}: Input tag '{tag}' found using 'type' does not match any of the expected tags: {tags}"


def _values(path: str, inner: str, block: JsonObject) -> Refusals:
    for key in _STRINGS:
        if key in block and not isinstance(block[key], str) and not (key == "title" and block[key] is None):
            yield refuse("R105", f"{inner}.{key}: Input should be a valid string")
            return
    kind = block["type"]
    if kind in ("tool_use", "server_tool_use", "mcp_tool_use"):
        yield from _tool_use(inner, block)
    elif kind == "tool_result":
        yield from _tool_result(inner, block)
    elif kind == "thinking" and not block["thinking"] and not block["signature"]:
        yield refuse("R145", f"{path}.thinking: each thinking block must contain thinking")
    elif kind in ("image", "document"):
        yield from _source(inner, block)


def _source(inner: str, block: JsonObject) -> Refusals:
    """R105: an image or a document names where its bytes are."""
    source = as_object(block["source"])
    if source is None:
        yield refuse("R105", f"{inner}.source: Input should be a valid dictionary or object to extract fields from")
    elif "type" not in source:
        yield refuse("R105", f"{inner}.source.type: Field required")
    elif source["type"] == "base64":
        for key in ("media_type", "data"):
            if not isinstance(source.get(key), str):
                lack = "Input should be a valid string" if key in source else "Field required"
                yield refuse("R105", f"{inner}.source.base64.{key}: {lack}")


def _tool_use(inner: str, block: JsonObject) -> Refusals:
    """R120 to R122, R125."""
    if block["type"] == "tool_use" and not _ID.fullmatch(block["id"]):
        yield refuse("R120", f"{inner}.id: String should match pattern '^[a-zA-Z0-9_-]+$'")
    if block["type"] == "server_tool_use" and not _SERVER_ID.fullmatch(block["id"]):
        yield refuse("R120", f"{inner}.id: String should match pattern '^srvtoolu_[a-zA-Z0-9_]+$'")
    if len(block["name"]) > 200:
        yield refuse("R121", f"{inner}.name: String should have at most 200 characters")
    if not block["name"]:
        yield refuse("R121", f"{inner}.name: String should have at least 1 character")
    if not is_object(block["input"]):
        yield refuse("R122", f"{inner}.input: Input should be a valid dictionary")
    if "caller" in block and not _is_caller(block["caller"]):
        yield refuse("R125", f"{inner}.caller: Input does not match the expected shape.")


def _is_caller(caller: object) -> bool:
    if not is_object(caller):
        return False
    kind = str(caller.get("type"))
    return kind == "direct" or (kind.startswith("code_execution_") and isinstance(caller.get("tool_id"), str))


def _tool_result(inner: str, block: JsonObject) -> Refusals:
    """R120, R124 and the blocks inside. Content may be absent, "" or [] (R123: recorded as accepted)."""
    if not _ID.fullmatch(block["tool_use_id"]):
        yield refuse("R120", f"{inner}.tool_use_id: String should match pattern '^[a-zA-Z0-9_-]+$'")
    content = block.get("content", "")
    if isinstance(content, str):
        return
    if not is_list(content):
        yield refuse("R105", f"{inner}.content: Input should be a valid array")
        return
    for position, part in enumerate(content):
        yield from _result_part(f"{inner}.content.{position}", part)
    if block.get("is_error") is True and any(part.get("type") != "text" for part in objects(content)):
        yield refuse("R124", f"{inner}: all content must be type `text` if `is_error` is true")


def _result_part(path: str, part: object) -> Refusals:
    kind = part.get("type") if is_object(part) else None
    if kind not in RESULT_CONTENT:
        yield refuse("R104", _unknown_tag(path, kind, expected_tags(RESULT_CONTENT)))
    elif kind in BLOCKS:
        yield from _block(path, part)
