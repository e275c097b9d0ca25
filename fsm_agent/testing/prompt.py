"""A request as a prompt: a sequence of segments with running totals, for token counts and the prompt cache."""

import hashlib
from dataclasses import dataclass

from fsm_agent.testing.shapes import JsonObject, as_object, is_list, is_object, objects
from fsm_agent.testing.sse import compact_json
from fsm_agent.testing.tokens import CHARACTERS_PER_TOKEN, tokens_of_json

__all__ = ["Mark", "Prompt"]


@dataclass(frozen=True, slots=True)
class Mark:
    """A cache mark: the prefix of so many segments is to be kept for `ttl` (`5m` or `1h`)."""

    position: int
    ttl: str


class Prompt:
    """The tools, the system prompt and the messages of a request, in the order in which the API reads them.

    A segment is a tool, a system block or a content block. A string and a list with one text block are the same prompt.
    Messages may be added at the end, so that a growing conversation is counted once.

    >>> prompt = Prompt({"model": "m", "system": "s", "messages": [{"role": "user", "content": "hello"}]})
    >>> prompt.size, prompt.tokens
    (2, 15)
    """

    def __init__(self, body: JsonObject, characters_per_token: float = CHARACTERS_PER_TOKEN) -> None:
        self._characters_per_token = characters_per_token
        self._hash = hashlib.sha256(str(body.get("model")).encode("utf-8", "replace"))
        self.totals = [0]
        """Tokens of each prefix, by its number of segments."""
        self.keys = [self._hash.digest()]
        """What tells each prefix from every other one (with the model, without cache marks)."""
        self._marks: list[Mark] = []
        self._last_cacheable = 0
        for tool in objects(body.get("tools")):
            self._add("tools", tool)
        self.tools_size = self.size
        """How many segments are tools."""
        for block in _blocks(body.get("system")):
            self._add("system", block)
        self.fixed_size = self.size
        """How many segments come before the messages."""
        self.extend(objects(body.get("messages")))

    def extend(self, messages: list[JsonObject]) -> None:
        """Add messages at the end."""
        for message in messages:
            role = str(message.get("role"))
            for block in _blocks(message.get("content")):
                self._add(role, block)

    @property
    def size(self) -> int:
        """The number of segments."""
        return len(self.totals) - 1

    @property
    def tokens(self) -> int:
        """Input tokens, at least 1."""
        return max(1, self.totals[-1])

    def marks(self, body: JsonObject) -> list[Mark]:
        """The cache marks, that of a top-level `cache_control` included: it settles on the last cacheable segment."""
        automatic = as_object(body.get("cache_control"))
        if automatic is None or not self._last_cacheable:
            return self._marks
        return [*self._marks, Mark(self._last_cacheable, _ttl(automatic))]

    def _add(self, part: str, block: JsonObject) -> None:
        mark = _mark(block)
        bare = block if mark is None else _without_marks(block)
        written = compact_json(bare)
        self._hash.update(f"\x00{part}\x00{written}".encode("utf-8", "replace"))
        self.keys.append(self._hash.digest())
        self.totals.append(self.totals[-1] + tokens_of_json(written, bare, self._characters_per_token))
        if mark is not None:
            self._marks.append(Mark(self.size, _ttl(mark)))
        if block.get("type") not in ("thinking", "redacted_thinking") and block.get("text") != "":
            self._last_cacheable = self.size


def _blocks(content: object) -> list[JsonObject]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return objects(content)


def _ttl(mark: JsonObject) -> str:
    return "1h" if mark.get("ttl") == "1h" else "5m"


def _mark(block: JsonObject) -> JsonObject | None:
    """The block's own mark, or that of a block inside a tool result, which the API counts too."""
    own = as_object(block.get("cache_control"))
    if own is not None or not is_list(block.get("content")):
        return own
    inner = [as_object(part.get("cache_control")) for part in objects(block.get("content"))]
    return next((mark for mark in reversed(inner) if mark is not None), None)


def _without_marks(block: JsonObject) -> JsonObject:
    bare = {key: value for key, value in block.items() if key != "cache_control"}
    content = bare.get("content")
    if is_list(content):
        bare["content"] = [_without_marks(part) if is_object(part) else part for part in content]
    return bare
