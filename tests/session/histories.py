"""Random valid histories, as runs of the loop leave them: prompts, calls and results, pauses, thinking, media.

`histories()` draws a list of `Message`; what it draws is accepted by the validator and by the rules of the API.
"""

import base64
import struct
import zlib
from typing import Any

from hypothesis import strategies as st

from fsm_agent.session.message import Message
from fsm_agent.testing.rules import validate

MODELS = ("claude-sonnet-5-5", "claude-opus-5-5")

words = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1, max_size=20).filter(
    lambda text: bool(text.strip())
)
long_texts = st.builds(lambda word, count: f"{word} " * count, words, st.integers(1, 400))
texts = st.one_of(words, long_texts)


def png(width: int = 1, height: int = 1) -> str:
    """The base64 text of a white PNG image."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    row = b"\x00" + b"\xff" * width
    data = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    return base64.b64encode(data + chunk(b"IDAT", zlib.compress(row * height)) + chunk(b"IEND", b"")).decode()


def image(data: str = "", media_type: str = "image/png") -> dict[str, Any]:
    return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data or png()}}


def text(content: str) -> dict[str, Any]:
    return {"type": "text", "text": content}


def user(*blocks: Any, purpose: str | None = None) -> Message:
    content = blocks[0] if len(blocks) == 1 and isinstance(blocks[0], str) else list(blocks)
    return Message({"role": "user", "content": content}, purpose=purpose)


def assistant(*blocks: Any, model: str | None = None) -> Message:
    content = blocks[0] if len(blocks) == 1 and isinstance(blocks[0], str) else list(blocks)
    return Message({"role": "assistant", "content": content}, model=model)


def call(call_id: str, name: str = "read", **inputs: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": inputs}


def result(call_id: str, content: Any = "ok", **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **more}


def thinking(content: str = "hm", signature: str = "c2ln") -> dict[str, Any]:
    return {"type": "thinking", "thinking": content, "signature": signature}


def server_use(call_id: str) -> dict[str, Any]:
    return {"type": "server_tool_use", "id": call_id, "name": "web_search", "input": {"query": "q"}}


def server_result(call_id: str) -> dict[str, Any]:
    return {"type": "web_search_tool_result", "tool_use_id": call_id, "content": []}


def tool_turns(count: int, chars: int = 100, *, first: int = 0) -> list[Message]:
    """Calls with results of `chars` characters, one a turn."""
    return [
        message
        for number in range(first, first + count)
        for message in (
            assistant(call(f"c{number}", path=f"f{number}.py"), model=MODELS[0]),
            user(result(f"c{number}", f"{number:04d}" + "x" * (chars - 4)), purpose="tool_results"),
        )
    ]


@st.composite
def _thoughts(draw: st.DrawFn) -> list[dict[str, Any]]:
    kind = draw(st.sampled_from(["none", "thinking", "redacted", "both"]))
    blocks: list[dict[str, Any]] = []
    if kind in ("thinking", "both"):
        blocks.append(thinking(draw(st.one_of(st.just(""), words)), draw(st.sampled_from(["c2lnMQ==", "c2lnMg=="]))))
    if kind in ("redacted", "both"):
        blocks.append({"type": "redacted_thinking", "data": "cmVkYWN0ZWQ="})
    return blocks


_contents = st.one_of(
    st.just(""),
    texts,
    st.lists(st.one_of(st.builds(text, words), st.builds(image)), max_size=3),
)


class _Ids:
    def __init__(self) -> None:
        self.count = 0

    def fresh(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}_{self.count:03d}"


@st.composite
def _server_pairs(draw: st.DrawFn, ids: _Ids) -> list[dict[str, Any]]:
    names = [ids.fresh("srvtoolu") for _ in range(draw(st.integers(0, 1)))]
    return [block for name in names for block in (server_use(name), server_result(name))]


@st.composite
def _results(draw: st.DrawFn, names: list[str]) -> Message:
    blocks: list[dict[str, Any]] = []
    for name in names:
        content = draw(_contents)
        only_text = isinstance(content, str) or all(part["type"] == "text" for part in content)
        more = {"is_error": draw(st.booleans())} if only_text and draw(st.booleans()) else {}
        blocks.append(result(name, content, **more))
    blocks += [text(draw(words)) for _ in range(draw(st.integers(0, 1)))]
    return user(*blocks, purpose=draw(st.sampled_from([None, "tool_results"])))


@st.composite
def _tool_group(draw: st.DrawFn, ids: _Ids, model: str) -> list[Message]:
    """A reply with calls, and its results; sometimes after a pause, or with a tool of the API's own that waits."""
    group: list[Message] = []
    waiting: list[dict[str, Any]] = []
    if draw(st.integers(0, 5)) == 0:
        name = ids.fresh("srvtoolu")
        group.append(assistant(text("I search."), server_use(name), model=model))
        waiting = [server_result(name)]
    names = [ids.fresh("toolu") for _ in range(draw(st.integers(1, 3)))]
    calls = [call(name, draw(st.sampled_from(["read", "run"])), path=draw(words)) for name in names]
    said = [text(draw(texts)) for _ in range(draw(st.integers(0, 1)))]
    pairs = draw(_server_pairs(ids))
    late = draw(st.integers(0, 5)) == 0
    open_use = [server_use(ids.fresh("srvtoolu"))] if late else []
    thoughts = [] if waiting else draw(_thoughts())
    group.append(assistant(*waiting, *thoughts, *said, *pairs, *open_use, *calls, model=model))
    group.append(draw(_results(names)))
    if late:
        again = ids.fresh("toolu")
        group.append(assistant(server_result(open_use[0]["id"]), call(again), model=model))
        group.append(draw(_results([again])))
    return group


@st.composite
def histories(draw: st.DrawFn, *, max_prompts: int = 3, max_groups: int = 4, ends: str | None = None) -> list[Message]:
    """A valid history. `ends` is the role of its last message: `user` (about to be sent) or `assistant`; None: either.

    Messages remember their model, and sometimes their purpose, as those of the loop do.
    """
    ids = _Ids()
    messages: list[Message] = []
    marked = draw(st.booleans())
    ending = ends or draw(st.sampled_from(["user", "assistant"]))
    prompts = draw(st.integers(1, max_prompts))
    for number in range(prompts):
        model = draw(st.sampled_from(MODELS))
        content = [text(draw(texts))] + ([image()] if draw(st.integers(0, 4)) == 0 else [])
        prompt = user(*content) if draw(st.booleans()) or len(content) > 1 else user(content[0]["text"])
        prompt.purpose = "prompt" if marked else None
        messages.append(prompt)
        for _ in range(draw(st.integers(0, max_groups))):
            messages += draw(_tool_group(ids, model))
            if draw(st.integers(0, 4)) == 0:
                messages.append(user(draw(words), purpose="queued" if marked else None))
        if number < prompts - 1 or ending == "assistant":
            messages.append(assistant(*draw(_thoughts()), text(draw(texts)), model=model))
    return messages


def refusal(messages: list[Any]) -> str | None:
    """What the Messages API would say to a request with these messages; None if it would be served."""
    body = {
        "model": MODELS[0],
        "max_tokens": 1_000,
        "messages": messages,
        "tools": [{"name": name, "input_schema": {"type": "object"}} for name in ("read", "run")]
        + [{"type": "web_search_20250305", "name": "web_search"}],
        "thinking": {"type": "adaptive"},
    }
    found = validate(body)
    return None if found is None else str(found)
