"""Where a script stands: which item the next request gets."""

from dataclasses import dataclass
from math import inf

from fsm_agent.testing.script import ApiError, Item, RawResponse, Repeat, Reply, RequestKind, Script, Stream
from fsm_agent.testing.shapes import JsonObject, as_list

__all__ = ["Cursor", "describe_item", "describe_request"]


@dataclass(slots=True)
class _Entry:
    item: Item
    left: float


class Cursor:
    """Serves the items of a script: the first that is left and whose `when` admits the request.

    >>> cursor = Cursor([Repeat(Reply("a"), 2), Reply("b")])
    >>> [cursor.take({}, "turn", 0) is not None for _ in range(4)], cursor.missing()
    ([True, True, True, False], [])
    """

    def __init__(self, script: Script) -> None:
        self._function = script if callable(script) else None
        self._entries = [] if callable(script) else [_entry(item) for item in script]
        self._start = 0
        self._largest = 0

    def take(self, body: JsonObject, kind: RequestKind, size: int) -> Item | None:
        """The item for a request whose body has `size` bytes, or `None` when the script has none for it."""
        self._largest = max(self._largest, size)
        if self._function is not None:
            return self._function(body)
        while self._start < len(self._entries) and self._entries[self._start].left <= 0:
            self._start += 1
        for at in range(self._start, len(self._entries)):
            entry = self._entries[at]
            when = entry.item.when
            if entry.left > 0 and (when is None or when.admits(body, kind, size=size, largest=self._largest)):
                entry.left -= 1
                return entry.item
        return None

    def missing(self) -> list[str]:
        """The items that were not served as often as the script says; those for ever count as served."""
        left = [entry for entry in self._entries if 0 < entry.left < inf]
        return [f"{int(entry.left)} x {describe_item(entry.item)}" for entry in left]

    def describe(self) -> str:
        """What is left, for an error message."""
        if self._function is not None:
            return "a function"
        left = [entry for entry in self._entries if entry.left > 0]
        return ", ".join(describe_item(entry.item) for entry in left) or "nothing"


def _entry(item: Item | Repeat) -> _Entry:
    if not isinstance(item, Repeat):
        return _Entry(item, 1)
    return _Entry(item.item, inf if item.times == "always" else item.times)


def describe_item(item: Item) -> str:
    """An item in a few words.

    >>> describe_item(Reply("hi"))
    "Reply(text 'hi', stop='end_turn')"
    """
    kept = "" if item.when is None else f", when={item.when!r}"
    if isinstance(item, Reply):
        blocks = ", ".join(_describe_block(block) for block in item.blocks)
        return f"Reply({blocks or 'nothing'}, stop={item.stop_reason!r}{kept})"
    if isinstance(item, ApiError):
        return f"ApiError({item.status}, {item.type!r}{kept})"
    if isinstance(item, RawResponse):
        return f"RawResponse({len(item.body)} bytes, status={item.status}{kept})"
    assert isinstance(item, Stream)
    return f"Stream({len(item.steps)} steps{kept})"


def _describe_block(block: JsonObject) -> str:
    kind = str(block["type"])
    if kind == "tool_use":
        return f"tool_use {block['name']!r}"
    return f"text {_short(str(block.get('text', '')))!r}" if kind == "text" else kind


def _short(value: str, length: int = 60) -> str:
    return value if len(value) <= length else f"{value[:length]}..."


def describe_request(body: JsonObject) -> str:
    """A request in a few words: model, number of messages and the last message.

    >>> describe_request({"model": "m", "messages": [{"role": "user", "content": "hi"}]})
    "model 'm', 1 messages, the last: {'role': 'user', 'content': 'hi'}"
    """
    messages = as_list(body.get("messages")) or []
    last = _short(repr(messages[-1]), 300) if messages else "none"
    return f"model {body.get('model')!r}, {len(messages)} messages, the last: {last}"
