"""One content block of a reply, put together from its events, and the client tool call that it may be."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn, cast

from fsm_agent.model.faults import PROTOCOL, StreamFault
from fsm_agent.model.json_types import is_object
from fsm_agent.model.surrogates import mended, mended_text

__all__ = ["Block", "ToolCall", "parsed_input"]

# The field that each kind of delta carries, and the field of the block that it extends.
_DELTAS: Final[dict[str, tuple[str, str]]] = {
    "text_delta": ("text", "text"),
    "input_json_delta": ("partial_json", "input"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("signature", "signature"),
}
_CALLS: Final = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
_TEXTS: Final[dict[str, tuple[str, ...]]] = {
    "text": ("text",),
    "thinking": ("thinking", "signature"),
    **dict.fromkeys(_CALLS, ("input",)),
}
# Null in a citation is part of it for these, for the API requires them in requests too.
_REQUIRED_OF_CITATIONS: Final = frozenset({"document_title", "title"})


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One complete call of a client tool. It may run, unless its message is discarded or was cut."""

    id: str
    """Unique in the conversation, and as the API takes it back."""
    name: str
    input: dict[str, Any]
    """The parsed input; `{}` when there is an `input_error`."""
    input_error: str | None
    """Why the input could not be read, in a sentence for the model; None for an input that could."""
    raw_json: str
    """The text of the input as it was streamed."""
    index: int
    """Position among the calls of the message, from 0."""


@dataclass(slots=True)
class Block:
    """A block while it is received. Deltas are kept as a list and joined once: O(1) each."""

    start: dict[str, Any]
    """The content block as it came in `content_block_start`, without its nulls."""
    kind: str
    pieces: dict[str, list[str]]
    """The pieces of text of each field that the block is streamed in."""
    complete: bool = False
    call: ToolCall | None = None
    """The call, once the block of a client tool use is complete."""
    _citations: list[Any] = field(default_factory=list[Any])
    _wire: dict[str, Any] | None = None

    @classmethod
    def begin(cls, content_block: dict[str, Any]) -> Block:
        kind = content_block.get("type")
        if not isinstance(kind, str):
            raise StreamFault(PROTOCOL, f"A content block of the stream has no type: {_shown(content_block)}.")
        start = {key: mended(value) for key, value in content_block.items() if value is not None}
        return cls(start, kind, {name: [] for name in _TEXTS.get(kind, ())})

    def extend(self, delta: dict[str, Any]) -> None:
        """Take one `content_block_delta`."""
        known = _DELTAS.get(cast("str", delta.get("type")))
        if known is not None:
            pieces = self.pieces.get(known[1])
            piece = delta.get(known[0])
            if pieces is not None and type(piece) is str:
                pieces.append(piece)
                return
            self._unfit(delta)
        self._extend_otherwise(delta)

    def _extend_otherwise(self, delta: dict[str, Any]) -> None:
        kind = delta.get("type")
        if not isinstance(kind, str):
            self._unfit(delta)
        if kind == "citations_delta":
            if self.kind != "text":
                self._unfit(delta)
            self._citations.append(mended(delta.get("citation")))
            return
        # `compaction_delta` and what is yet to come: the fields of the delta are those of the block, and replace them.
        self.start |= {key: mended(value) for key, value in delta.items() if key != "type" and value is not None}

    def _unfit(self, delta: dict[str, Any]) -> NoReturn:
        raise StreamFault(PROTOCOL, f"A delta does not fit a block of type {self.kind!r}: {_shown(delta)}.")

    def finish(self) -> None:
        """The block is complete: what it is streamed in is joined, once."""
        self.complete = True
        self._wire = self._built()
        self.pieces = {}

    @property
    def is_client_call(self) -> bool:
        return self.kind == "tool_use"

    @property
    def is_server_call(self) -> bool:
        return self.kind in ("server_tool_use", "mcp_tool_use")

    @property
    def answers(self) -> str | None:
        """The id of the server tool use that this block is the result of."""
        return self.start.get("tool_use_id") if self.kind.endswith("_tool_result") else None

    @property
    def id(self) -> str | None:
        return self.start.get("id")

    @property
    def text(self) -> str:
        """The text received so far of a text block, '' for any other."""
        return cast("str", self.wire["text"]) if self.kind == "text" else ""

    @property
    def wire(self) -> dict[str, Any]:
        """The block as a request holds it. Of an incomplete block, what there is of it so far."""
        return self._built() if self._wire is None else self._wire

    @property
    def raw_json(self) -> str:
        """The text of a call's input as it was streamed; the input itself if it came whole in the start."""
        streamed = "".join(self.pieces.get("input", ()))
        given = self.start.get("input")
        if streamed.strip() or given in (None, {}, ""):
            return streamed
        return given if isinstance(given, str) else json.dumps(given, ensure_ascii=False, separators=(",", ":"))

    def _built(self) -> dict[str, Any]:
        built = dict(self.start)
        if self.kind == "text":
            built["text"] = mended_text(str(built.get("text", "")) + "".join(self.pieces["text"]))
            citations = [*built.pop("citations", []), *self._citations]
            if citations:
                built["citations"] = [_as_sent(citation) for citation in citations]
        elif self.kind == "thinking":
            built["thinking"] = mended_text(str(built.get("thinking", "")) + "".join(self.pieces["thinking"]))
            built["signature"] = "".join(self.pieces["signature"]) or built.get("signature", "")
        elif self.kind in _CALLS:
            built["input"] = parsed_input(self.raw_json)[0]
        return built


def parsed_input(raw: str) -> tuple[dict[str, Any], str | None]:
    """The input of a call from its JSON text, and what is wrong with it. Strict; an empty text is an empty input.

    >>> parsed_input('{"path": "a.txt"}')
    ({'path': 'a.txt'}, None)
    >>> parsed_input('{"path": "a.t')[1]
    'The input is not valid JSON (Unterminated string starting at character 9 of 13); send one whole JSON object.'
    >>> parsed_input('["a"]')[1]
    'The input is a JSON array; send one JSON object.'
    """
    if not raw.strip():
        return {}, None
    try:
        value = mended(_DECODER.decode(raw))
    except json.JSONDecodeError as error:
        where = f"{error.msg.removesuffix(' at')} at character {error.pos} of {len(raw)}"
        return {}, f"The input is not valid JSON ({where}); send one whole JSON object."
    except (ValueError, RecursionError) as error:
        return {}, f"The input is not valid JSON ({error}); send one whole JSON object."
    if not is_object(value):
        return {}, f"The input is a JSON {_json_type(value)}; send one JSON object."
    return value, None


def _no_json(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


_DECODER: Final = json.JSONDecoder(parse_constant=_no_json)  # `json.loads` with an option makes one for each call


def _json_type(value: object) -> str:
    if isinstance(value, list):
        return "array"
    if isinstance(value, bool) or value is None:
        return "literal"
    return "string" if isinstance(value, str) else "number"


def _as_sent(citation: Any) -> Any:
    """A citation without the nulls that only answers have (`file_id`)."""
    if not is_object(citation):
        return citation
    return {key: value for key, value in citation.items() if value is not None or key in _REQUIRED_OF_CITATIONS}


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 200 else text[:200] + "…"
