"""Signatures of thinking blocks: issued with a reply, checked when the block comes back.

As on the real API a signature binds the text of a block to the model that wrote it. Signatures are a keyed hash, so a
server that has been restarted still knows its own; those that a script fixes by hand are remembered when served.
"""

import base64
import hashlib
import hmac
from typing import Literal, TypeAlias

from fsm_agent.testing.shapes import JsonObject, as_object

__all__ = ["ReplyWatcher", "SignatureBook", "Verdict"]

Verdict: TypeAlias = Literal["genuine", "foreign", "edited"]
"""`foreign`: not issued here, or for another model; `edited`: issued here for this model, but for another text."""

_KEY = b"fsm_agent.testing: this key proves nothing to anybody else"
_PREFIX = b"fsm-agent-1"


class SignatureBook:
    """The signatures that one server has issued, and the thinking that belongs to each tool call.

    >>> book = SignatureBook()
    >>> signature = book.issue("claude-sonnet-5-5", "hm")
    >>> book.judge(signature, "claude-sonnet-5-5", "hm"), book.judge(signature, "claude-opus-5-5", "hm")
    ('genuine', 'foreign')
    >>> book.judge(signature, "claude-sonnet-5-5", "something else")
    'edited'
    """

    def __init__(self) -> None:
        self._by_hand: dict[str, tuple[str, str]] = {}
        self._thinking_before: dict[str, tuple[str, list[JsonObject]]] = {}

    def issue(self, model: str, thinking: str) -> str:
        """The signature of a thinking text for a model; the same arguments give the same signature."""
        owner = base64.b64encode(_PREFIX + b"|" + model.encode() + b"|").decode()
        return f"{owner}.{_seal(model, thinking)}"

    def note_thinking(self, model: str, block: JsonObject) -> None:
        """Remember a thinking block that was served with a signature of the script's own."""
        if block["type"] == "redacted_thinking":
            self._by_hand[str(block.get("data"))] = (model, "")
            return
        signature, thought = str(block.get("signature")), str(block.get("thinking"))
        if self.judge(signature, model, thought) != "genuine":
            self._by_hand[signature] = (model, thought)

    def note_call(self, tool_use_id: str, model: str, thoughts: list[JsonObject]) -> None:
        """Remember which thinking came before a tool call in the reply that made it."""
        if thoughts:
            self._thinking_before[tool_use_id] = (model, list(thoughts))
        else:
            self._thinking_before.pop(tool_use_id, None)

    def judge(self, signature: str, model: str, thinking: str) -> Verdict:
        """Whether a signature that came back belongs to this model and this text."""
        noted = self._by_hand.get(signature)
        if noted is not None:
            if noted[0] != model:
                return "foreign"
            return "genuine" if noted[1] == thinking else "edited"
        owner, _, seal = signature.rpartition(".")
        if owner != base64.b64encode(_PREFIX + b"|" + model.encode() + b"|").decode():
            return "foreign"
        return "genuine" if hmac.compare_digest(seal, _seal(model, thinking)) else "edited"

    def knows_redacted(self, data: str, model: str) -> bool:
        """Whether redacted thinking was served to this model."""
        noted = self._by_hand.get(data)
        return noted is not None and noted[0] == model

    def thinking_before(self, tool_use_id: str, model: str) -> list[JsonObject]:
        """The thinking blocks that preceded a tool call in the reply that made it, if that model made it here."""
        maker, thoughts = self._thinking_before.get(tool_use_id, ("", []))
        return thoughts if maker == model else []


def _seal(model: str, thinking: str) -> str:
    content = model.encode() + b"\x00" + thinking.encode("utf-8", "surrogatepass")
    return base64.b64encode(hmac.new(_KEY, content, hashlib.sha256).digest()).decode()


class ReplyWatcher:
    """Notes the thinking of one reply in the book while its events go out."""

    def __init__(self, book: SignatureBook, model: str) -> None:
        self._book = book
        self._model = model
        self._open: JsonObject | None = None
        self._pieces: list[str] = []
        self._thoughts: list[JsonObject] = []

    def see(self, event: JsonObject) -> None:
        """Look at the next event of the reply; an event of a wrong shape is not noted."""
        kind = event.get("type")
        if kind == "content_block_start":
            self._start(as_object(event.get("content_block")) or {})
        elif self._open is not None and kind == "content_block_delta":
            self._delta(self._open, as_object(event.get("delta")) or {})
        elif self._open is not None and kind == "content_block_stop":
            self._keep({**self._open, "thinking": "".join(self._pieces)})
            self._open = None

    def _start(self, block: JsonObject) -> None:
        if block.get("type") == "thinking":
            self._open = {"type": "thinking", "thinking": "", "signature": block.get("signature", "")}
            self._pieces = [str(block.get("thinking", ""))]
        elif block.get("type") == "redacted_thinking":
            self._keep({"type": "redacted_thinking", "data": block.get("data")})
        elif block.get("type") == "tool_use":
            self._book.note_call(str(block.get("id")), self._model, self._thoughts)

    def _delta(self, block: JsonObject, delta: JsonObject) -> None:
        if delta.get("type") == "thinking_delta":
            self._pieces.append(str(delta.get("thinking", "")))
        elif delta.get("type") == "signature_delta":
            block["signature"] = f"{block['signature']}{delta.get('signature', '')}"

    def _keep(self, block: JsonObject) -> None:
        self._book.note_thinking(self._model, block)
        self._thoughts.append(block)
