"""A stage beside the first: images that no model takes become a note before they are sent."""

from __future__ import annotations

import base64
import re
import struct
from collections.abc import Mapping
from typing import Any, Final, cast

from fsm_agent.context.media import note_for, with_media
from fsm_agent.context.view import Draft, mark_seen, new_entries
from fsm_agent.session.message import JsonObject

STAGE: Final = "media_check"
MAX_IMAGE_CHARS: Final = 5 * 1024 * 1024
"""Characters of the base64 text of one image ("image exceeds 5 MB maximum: 5316852 bytes > 5242880 bytes")."""
MAX_SIDE: Final = 8_000
"""Pixels of the longer side of one image ("exceed max allowed size: 8000 pixels")."""
MEDIA_TYPES: Final = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
_BASE64: Final = re.compile(r"[A-Za-z0-9+/\s]*[=\s]*")
_HEADER_CHARS: Final = 64 * 1024
"""Characters of base64 text that are looked at for the size in pixels; a JPEG may have long headers."""


def apply(draft: Draft) -> None:
    """The stage: images that are new to this history are checked, and replaced by a note or mended."""
    history = draft.view.history
    changed: dict[int, Mapping[str, Any]] = {}
    faults: list[str] = []

    def checked(block: JsonObject) -> JsonObject:
        mended, fault = checked_media(block)
        faults.extend([fault] if fault else [])
        return mended

    for index, entry in new_entries(history, STAGE):
        message = with_media(entry.message, checked)
        if message is not entry.message:
            changed[index] = message
    mark_seen(history, STAGE)
    draft.replace_messages(STAGE, changed, " ".join(faults) or "The media type of an image was corrected.")


def checked_media(block: JsonObject) -> tuple[JsonObject, str]:
    """The block as it can be sent, and why it was replaced by a note, or ''.

    Only what is certain counts: the form of the base64 text, its length, the media type, the size in pixels. A media
    type that the data contradict is corrected.
    """
    source = _base64_source(block)
    if source is None:
        return block, ""
    data = str(source.get("data", ""))
    declared = source.get("media_type")
    head = _decoded(data[:_HEADER_CHARS])
    actual = None if head is None else _media_type(head)
    fault = _fault(data, head, actual or declared)
    if fault:
        return note_for(block, fault), f"An image was removed: {fault}."
    if actual is not None and actual != declared:
        return {**block, "source": {**source, "media_type": actual}}, ""
    return block, ""


def _base64_source(block: JsonObject) -> JsonObject | None:
    source: object = block.get("source")
    if block.get("type") != "image" or not isinstance(source, dict):
        return None
    fields = cast("JsonObject", source)
    return fields if fields.get("type") == "base64" else None


def _fault(data: str, head: bytes | None, media_type: object) -> str:
    if not data:
        return "it is empty"
    if head is None:
        return "its data are not base64"
    if len(data) > MAX_IMAGE_CHARS:
        return f"its {len(data)} bytes of base64 are more than the {MAX_IMAGE_CHARS} that the API takes"
    if media_type not in MEDIA_TYPES:
        return f"the API does not take {media_type}"
    size = pixels(head)
    if size is not None and max(size) > MAX_SIDE:
        return f"its {size[0]} by {size[1]} pixels are more than the {MAX_SIDE} that the API takes for a side"
    return ""


def _decoded(text: str) -> bytes | None:
    """The bytes, as far as whole groups of four characters go; None if it is no base64."""
    if not _BASE64.fullmatch(text):
        return None
    plain = "".join(text.split()).rstrip("=")
    return base64.b64decode(plain[: len(plain) // 4 * 4])


def _media_type(head: bytes) -> str | None:
    """What the data say that they are; None if they are none of the four."""
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if head.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return None


def pixels(head: bytes) -> tuple[int, int] | None:
    """Width and height as the first bytes of an image tell; None if they do not."""
    kind = _media_type(head)
    try:
        if kind == "image/png":
            width, height = struct.unpack(">II", head[16:24])
            return width, height
        if kind == "image/gif":
            width, height = struct.unpack("<HH", head[6:10])
            return width, height
        if kind == "image/jpeg":
            return _jpeg_pixels(head)
    except (struct.error, IndexError):
        return None
    return None


def _jpeg_pixels(head: bytes) -> tuple[int, int] | None:
    """Walk over the segments to the frame header (SOF), which holds the size."""
    at = 2
    while at + 9 < len(head) and head[at] == 0xFF:
        marker = head[at + 1]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", head[at + 5 : at + 9])
            return width, height
        at += 2 + int.from_bytes(head[at + 2 : at + 4], "big")
    return None
