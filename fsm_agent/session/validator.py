"""The invariants of a history that is about to be sent, in one place. Every request, session and test is held to them.

I1  Each assistant message with `tool_use` is followed at once by a user message that begins with exactly one
    `tool_result` for each call, in call order; no result is without its call, and no block in the wrong role. The API's
    own tools have their results in the turn that calls.
I2  Ids of `tool_use` are unique, and of letters, digits, `_` and `-`.
I3  No blank text, no empty message, the first role is `user`.
I4  Thinking is whole, with its signature, goes only to the model that made it, and does not end a message.
I5  Strict UTF-8 and strict JSON.

Where the API is known to be more lenient (results spread over two messages, blank text beside other blocks), we are
not: what is always sent in one way is accepted by every model, and cached.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from fsm_agent.session.history import History
from fsm_agent.session.message import (
    THINKING,
    JsonObject,
    blocks_of,
    encoded,
    inner_blocks,
    is_blank_text,
    is_misplaced,
    is_signed,
)
from fsm_agent.session.repair import ID_PATTERN, repaired
from fsm_agent.session.server_tools import ServerPairs

__all__ = ["HistoryValidator", "Invariant", "InvariantError", "Violation", "repaired", "violations"]

Invariant: TypeAlias = Literal["I1", "I2", "I3", "I4", "I5"]


@dataclass(frozen=True, slots=True)
class Violation:
    """One breach of an invariant.

    >>> print(Violation("I3", 0, "the text is blank"))
    I3 in messages[0]: the text is blank
    """

    invariant: Invariant
    index: int
    """Of the message, in the list that was checked."""
    text: str

    def __str__(self) -> str:
        return f"{self.invariant} in messages[{self.index}]: {self.text}"


class InvariantError(AssertionError):
    """A history of our own making breaks an invariant: a fault of this library, told loudly."""


def violations(messages: Iterable[Mapping[str, Any]], model: str | None = None) -> list[Violation]:
    """Every breach in a list of messages: the full check. `model` is the one that the list is sent to, if known.

    >>> [v.invariant for v in violations([{"role": "user", "content": " "}])]
    ['I3']
    >>> violations([{"role": "user", "content": "Hello"}])
    []
    """
    check = _Check(model)
    for message in messages:
        check.feed(message)
        check.strict(message)
    return [*check.found, *check.unanswered()]


class HistoryValidator:
    """Checks a growing history: what was checked is not looked at again, unless it was edited or the model changed."""

    __slots__ = ("_check", "_history", "_length", "_version")

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Check everything the next time."""
        self._check = _Check(None)
        self._history: History | None = None
        self._length = 0
        self._version = -1

    def check(self, history: History, model: str | None = None) -> list[Violation]:
        """The breaches in what `model` would be sent now: those of messages that came since the last call, and calls
        that are unanswered at the end. Costs O(new messages)."""
        if self._history is not history or self._version != history.version or self._check.model != model:
            self._check = _Check(model)
            self._history, self._version, self._length = history, history.version, 0
        self._check.found = []
        for entry in history[self._length :]:
            sent = entry.sent_to(model)
            if sent is not None:
                self._check.feed(sent.message)  # its bytes are strict by construction
        self._length = len(history)
        return [*self._check.found, *self._check.unanswered()]

    def require(self, history: History, model: str | None = None) -> None:
        """Raise `InvariantError` if there is a breach."""
        found = self.check(history, model)
        if found:
            raise InvariantError("The history breaks " + "; ".join(map(str, found)))


class _Check:
    """The state of a check after some messages."""

    __slots__ = ("calls", "calls_at", "found", "ids", "index", "model", "server")

    def __init__(self, model: str | None) -> None:
        self.model = model
        self.index = 0
        self.found: list[Violation] = []
        self.ids: set[str] = set()
        self.calls: list[str] = []
        """Calls of the last message."""
        self.calls_at = 0
        self.server = ServerPairs()

    def breach(self, invariant: Invariant, text: str, index: int | None = None) -> None:
        self.found.append(Violation(invariant, self.index if index is None else index, text))

    def feed(self, message: Mapping[str, Any]) -> None:
        self._shape(message)
        self._results(message)
        self._blocks(message)
        for index, position in self.server.feed(self.index, message):
            self.breach("I1", f"content[{position}]: a call of the API's own tool, or its result, is alone", index)
        self.index += 1

    def strict(self, message: Mapping[str, Any]) -> None:
        try:
            encoded(message)
        except (TypeError, ValueError) as error:
            self.breach("I5", f"not strict JSON in strict UTF-8: {error}", self.index - 1)

    def unanswered(self) -> list[Violation]:
        if not self.calls:
            return []
        return [Violation("I1", self.calls_at, f"no results follow the calls {', '.join(self.calls)}")]

    def _shape(self, message: Mapping[str, Any]) -> None:
        role = message.get("role")
        if role not in ("user", "assistant", "system"):
            self.breach("I3", f"the role is {role!r}")
        elif self.index == 0 and role != "user":
            self.breach("I3", f"the first role is {role}")
        content = message.get("content")
        if not isinstance(content, str | list):
            self.breach("I3", "the content is neither a string nor a list")
        elif not blocks_of(message):
            self.breach("I3", "the message is empty")

    def _results(self, message: Mapping[str, Any]) -> None:
        calls, self.calls = self.calls, []
        blocks = blocks_of(message) if message.get("role") == "user" else []
        answers = [str(block.get("tool_use_id")) for block in blocks if block.get("type") == "tool_result"]
        if answers != calls:
            self.breach("I1", f"the results are for [{', '.join(answers)}], the calls before are [{', '.join(calls)}]")
        elif any(block.get("type") != "tool_result" for block in blocks[: len(calls)]):
            self.breach("I1", "something stands before the results")

    def _blocks(self, message: Mapping[str, Any]) -> None:
        role = message.get("role")
        blocks = blocks_of(message)
        for position, block in enumerate(blocks):
            kind = block.get("type")
            if kind == "text":
                self._no_blank(position, block)
            elif kind == "tool_use":
                self._call(position, block, role)
            elif kind == "tool_result":
                for part in inner_blocks(block):
                    self._no_blank(position, part)
            elif kind in THINKING:
                self._thinking(position, block, message)
            if is_misplaced(block, role):
                invariant: Invariant = "I4" if kind in THINKING else "I1"
                self.breach(invariant, f"content[{position}]: {kind} in a message of role {role}")
        if blocks and blocks[-1].get("type") in THINKING:
            self.breach("I4", "the message ends in thinking")

    def _no_blank(self, position: int, block: JsonObject) -> None:
        if is_blank_text(block):
            self.breach("I3", f"content[{position}]: the text is blank")

    def _call(self, position: int, block: JsonObject, role: object) -> None:
        name = str(block.get("id"))
        if role == "assistant":
            self.calls.append(name)
            self.calls_at = self.index
        if name in self.ids:
            self.breach("I2", f"content[{position}]: the id {name} was used before")
        if not ID_PATTERN.fullmatch(name):
            self.breach("I2", f"content[{position}]: the id {name!r} has characters that are not allowed")
        if not isinstance(block.get("input"), dict):
            self.breach("I5", f"content[{position}]: the input of the call {name} is no JSON object")
        self.ids.add(name)

    def _thinking(self, position: int, block: JsonObject, message: Mapping[str, Any]) -> None:
        if not is_signed(block):
            self.breach("I4", f"content[{position}]: thinking without a signature")
        maker = getattr(message, "model", None)
        if self.model is not None and maker is not None and maker != self.model:
            self.breach("I4", f"content[{position}]: thinking of {maker} for {self.model}")
