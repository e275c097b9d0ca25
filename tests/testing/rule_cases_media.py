"""Cases of the rules on images and documents, on cache marks and on the context window."""

import base64
import struct
import zlib

from fsm_agent.testing.rules import ApiSettings
from tests.testing.rule_cases import USER, accepted, custom_tool, refused, said, user


def png(width=1, height=1):
    header = struct.pack(">II", width, height) + b"\x08\x00\x00\x00\x00"
    chunk = b"IHDR" + header
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + chunk + struct.pack(">I", zlib.crc32(chunk))


JPEG = b"\xff\xd8\xff\xe0\x00\x04ab\xff\xc0\x00\x11\x08\x00\x02\x00\x03\x03"
WEBP = b"RIFF\x00\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x01\x00\x00"
SOURCE = "messages.0.content.0.image.source.base64"


def image(content, media_type="image/png"):
    data = content if isinstance(content, str) else base64.b64encode(content).decode()
    return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}


def pdf(content):
    data = base64.b64encode(content).decode()
    return {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": data}}


def shown(*blocks):
    return [user(*blocks, said("see"))]


MARK = {"type": "ephemeral"}
LONG = {"type": "ephemeral", "ttl": "1h"}

CASES = [
    refused(
        "R151",
        "type that is no image",
        f"{SOURCE}.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'",
        messages=shown(image(png(), "image/bmp")),
    ),
    accepted("R151", "png", messages=shown(image(png()))),
    refused("R152", "empty image", f"{SOURCE}: image cannot be empty", messages=shown(image(""))),
    accepted("R152", "image", messages=shown(image(JPEG, "image/jpeg"))),
    refused(
        "R153",
        "large image",
        f"{SOURCE}: image exceeds 5 MB maximum: 5242881 bytes > 5242880 bytes",
        messages=shown(image("A" * 5_242_881)),
    ),
    accepted("R153", "image of a few bytes", messages=shown(image(WEBP, "image/webp"))),
    refused("R154", "no base64", "Could not process image", messages=shown(image("!"))),
    accepted("R154", "base64", messages=shown(image(png()))),
    refused("R155", "bytes of no image", "Could not process image", messages=shown(image(b"hello"))),
    accepted("R155", "gif", messages=shown(image(b"GIF89a\x01\x00\x01\x00", "image/gif"))),
    refused(
        "R156",
        "type that the bytes deny",
        f"{SOURCE}.data: The image was specified using the image/png media type, but the image appears to be a"
        " image/jpeg image",
        messages=shown(image(JPEG)),
    ),
    accepted("R156", "type that the bytes confirm", messages=shown(image(JPEG, "image/jpeg"))),
    refused(
        "R157",
        "wide image",
        f"{SOURCE}.data: At least one of the image dimensions exceed max allowed size: 8000 pixels",
        messages=shown(image(png(8001, 1))),
    ),
    refused(
        "R157",
        "many images, one of them wide",
        f"{SOURCE}.data: At least one of the image dimensions exceed max allowed size for many-image requests: 2000"
        " pixels",
        messages=shown(image(png(2001, 1)), *[image(png())] * 20),
    ),
    accepted("R157", "wide image among few", messages=shown(image(png(2001, 8000)), *[image(png())] * 19)),
    refused(
        "R161",
        "no pdf",
        "messages.0.content.0.pdf.source.base64.data: The PDF specified was not valid.",
        messages=shown(pdf(b"hello")),
    ),
    refused(
        "R161",
        "locked pdf",
        "messages.0.content.0.pdf.source.base64.data: The PDF specified is password protected.",
        messages=shown(pdf(b"%PDF-1.7 /Encrypt 3 0 R")),
    ),
    accepted("R161", "pdf", messages=shown(pdf(b"%PDF-1.7 /Type /Page"))),
    refused(
        "R162",
        "long pdf",
        "A maximum of 100 PDF pages may be provided.",
        model="claude-sonnet-4-5",
        messages=shown(pdf(b"%PDF-1.7 " + b"/Type /Page " * 101)),
    ),
    accepted(
        "R162", "the tree of pages is no page", messages=shown(pdf(b"%PDF-1.7 /Type /Pages " + b"/Type /Page " * 100))
    ),
    refused(
        "R170",
        "five marks",
        "A maximum of 4 blocks with cache_control may be provided. Found 5.",
        messages=[user(*[said("x", cache_control=MARK)] * 4)],
        cache_control=MARK,
    ),
    accepted(
        "R170",
        "four marks",
        tools=[custom_tool(cache_control=MARK)],
        system=[said("s", cache_control=MARK)],
        messages=[user(said("x", cache_control=MARK))],
        cache_control=MARK,
    ),
    refused(
        "R171",
        "time to live of one's own",
        "messages.0.content.0.cache_control.ephemeral.ttl: Input should be '5m' or '1h'",
        messages=[user(said("x", cache_control={"type": "ephemeral", "ttl": "2h"}))],
    ),
    refused("R171", "no type", "cache_control.type: Field required", cache_control={}),
    accepted("R171", "null counts as absent", cache_control=None),
    refused(
        "R172",
        "long behind short",
        "messages.0.content.1.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m'"
        " cache_control block. Note that blocks are processed in the following order: `tools`, `system`, `messages`.",
        messages=[user(said("x", cache_control=MARK), said("y", cache_control=LONG))],
    ),
    accepted(
        "R172",
        "short behind long",
        system=[said("x", cache_control=LONG)],
        messages=[user(said("y", cache_control=MARK))],
    ),
    refused(
        "R173",
        "mark on empty text",
        "messages.0.content.1.text: cache_control cannot be set for empty text blocks",
        messages=[user(said("x"), said("", cache_control=MARK))],
    ),
    accepted("R173", "mark on text", messages=[user(said("x", cache_control=MARK))]),
    refused(
        "R180",
        "longer than the window",
        "prompt is too long: 1007 tokens > 1000 maximum",
        messages=[user(said("x" * 4000))],
        settings=ApiSettings(context_window=1000),
    ),
    accepted("R180", "shorter than the window", messages=[USER], settings=ApiSettings(context_window=1000)),
    refused(
        "R181",
        "no room for max_tokens",
        "input length and `max_tokens` exceed context limit: 507 + 600 > 1000, decrease input length or `max_tokens`"
        " and try again",
        model="claude-3-5-haiku-20241022",
        max_tokens=600,
        messages=[user(said("x" * 2000))],
        settings=ApiSettings(context_window=1000),
    ),
    accepted(
        "R181",
        "no room for max_tokens on a newer model",
        max_tokens=600,
        messages=[user(said("x" * 2000))],
        settings=ApiSettings(context_window=1000),
    ),
]
