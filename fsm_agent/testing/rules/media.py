"""Rules on images and PDF documents (R151 to R162). They look at the bytes, as the API does."""

import base64
import binascii
import re
import struct
from collections.abc import Iterator

from fsm_agent.testing.rules.refusal import ApiRefusal, refuse
from fsm_agent.testing.rules.request import Request
from fsm_agent.testing.shapes import JsonObject, as_object

Refusals = Iterator[ApiRefusal]

IMAGE_TYPES = ("image/jpeg", "image/png", "image/gif", "image/webp")
MAX_SIDE = 8000
"""Pixels."""
MAX_SIDE_OF_MANY = 2000
"""Pixels, when a request holds more than `MANY_IMAGES`."""
MANY_IMAGES = 20
_COULD_NOT_PROCESS = "Could not process image"


def check_media_types(request: Request) -> Refusals:
    """R151, R152: part of the shape."""
    for path, source in _base64_sources(request, "image"):
        if source["media_type"] not in IMAGE_TYPES:
            text = "Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'"
            yield refuse("R151", f"{path}.media_type: {text}")
        elif not source["data"]:
            yield refuse("R152", f"{path}: image cannot be empty")


def check_images(request: Request) -> Refusals:
    """R153 to R157."""
    images = list(_base64_sources(request, "image"))
    limit = request.settings.image_megabytes * 1024 * 1024
    for path, source in images:
        size = len(source["data"])
        if size > limit:
            text = f"image exceeds {request.settings.image_megabytes} MB maximum: {size} bytes > {limit} bytes"
            yield refuse("R153", f"{path}: {text}")
            continue
        content = _decoded(source["data"])
        if content is None:
            yield refuse("R154", _COULD_NOT_PROCESS)
        else:
            yield from _image(path, source["media_type"], content, many=len(images) > MANY_IMAGES)


def _image(path: str, media_type: str, content: bytes, *, many: bool) -> Refusals:
    kind = image_type(content)
    size = image_size(content)
    if kind is None or size is None:
        yield refuse("R155", _COULD_NOT_PROCESS)
    elif kind != media_type:
        text = f"The image was specified using the {media_type} media type, but the image appears to be a {kind} image"
        yield refuse("R156", f"{path}.data: {text}")
    elif max(size) > MAX_SIDE:
        text = f"At least one of the image dimensions exceed max allowed size: {MAX_SIDE} pixels"
        yield refuse("R157", f"{path}.data: {text}")
    elif many and max(size) > MAX_SIDE_OF_MANY:
        text = "At least one of the image dimensions exceed max allowed size for many-image requests:"
        yield refuse("R157", f"{path}.data: {text} {MAX_SIDE_OF_MANY} pixels")


def check_documents(request: Request) -> Refusals:
    """R161, R162."""
    for path, source in _base64_sources(request, "document"):
        if source["media_type"] != "application/pdf":
            continue
        where = path.replace("document.source", "pdf.source")
        content = _decoded(source["data"])
        if content is None or not content.startswith(b"%PDF-"):
            yield refuse("R161", f"{where}.data: The PDF specified was not valid.")
        elif b"/Encrypt" in content:
            yield refuse("R161", f"{where}.data: The PDF specified is password protected.")
        elif len(_PAGE.findall(content)) > request.profile.pdf_pages:
            yield refuse("R162", f"A maximum of {request.profile.pdf_pages} PDF pages may be provided.")


_PAGE = re.compile(rb"/Type\s*/Page(?![a-zA-Z])")


def _base64_sources(request: Request, kind: str) -> Iterator[tuple[str, JsonObject]]:
    for path, block in request.sent:
        source = as_object(block.get("source"))
        if block.get("type") == kind and source is not None and source.get("type") == "base64":
            yield f"{path}.{kind}.source.base64", source


def _decoded(data: str) -> bytes | None:
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return None


def image_type(content: bytes) -> str | None:
    """The media type by the first bytes.

    >>> image_type(b"GIF89a...")
    'image/gif'
    """
    if content.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if content.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if content[:6] in (b"GIF87a", b"GIF89a"):
        return "image/gif"
    if content.startswith(b"RIFF") and content[8:12] == b"WEBP":
        return "image/webp"
    return None


def image_size(content: bytes) -> tuple[int, int] | None:
    """Width and height in pixels, read from the header; `None` when there is none to read.

    >>> image_size(b"GIF89a" + struct.pack("<HH", 3, 2))
    (3, 2)
    """
    try:
        kind = image_type(content)
        if kind == "image/png":
            return struct.unpack(">II", content[16:24])
        if kind == "image/gif":
            return struct.unpack("<HH", content[6:10])
        if kind == "image/webp":
            return _webp_size(content)
        return _jpeg_size(content) if kind == "image/jpeg" else None
    except (struct.error, IndexError):
        return None


def _jpeg_size(content: bytes) -> tuple[int, int] | None:
    """Walk the segments to the frame header (SOF0 to SOF15, without DHT, JPG and DAC)."""
    at = 2
    while at + 9 <= len(content):
        if content[at] != 0xFF:
            return None
        marker = content[at + 1]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", content[at + 5 : at + 9])
            return width, height
        at += 2 + int(struct.unpack(">H", content[at + 2 : at + 4])[0])
    return None


def _webp_size(content: bytes) -> tuple[int, int] | None:
    form = content[12:16]
    if form == b"VP8X":
        return (
            int.from_bytes(content[24:27], "little") + 1,
            int.from_bytes(content[27:30], "little") + 1,
        )
    if form == b"VP8L":
        bits = int.from_bytes(content[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if form == b"VP8 ":
        width, height = struct.unpack("<HH", content[26:30])
        return width & 0x3FFF, height & 0x3FFF
    return None
