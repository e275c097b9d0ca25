"""The history of one conversation: each message is encoded once, and a request is those bytes joined.

Rules of the house
------------------

- A message's bytes are made when it enters and never again. So what was sent once is sent the same way for ever, and
  the cost of a turn does not grow with the conversation, but for the joining.
- What the API would refuse does not enter: see `tidying`.
- An edit makes a new list of entries; the old one stays as it is, which is what makes `snapshot` free.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

from fsm_agent.session.loading import HistoryError, readable
from fsm_agent.session.message import (
    THINKING,
    JsonObject,
    Message,
    OpenArray,
    blocks_of,
    cache_marks,
    encoded,
    estimated_tokens,
    is_server_result,
    is_server_use,
    strict_json,
    user_message,
)
from fsm_agent.session.repair import repaired, without_blocks
from fsm_agent.session.server_tools import at_the_end
from fsm_agent.session.tidying import tidied, without_cache_marks, without_thinking

__all__ = ["Entry", "History", "HistoryError", "Snapshot"]


class Entry:
    """One message with its bytes and what was read from it when it entered. It never changes."""

    __slots__ = ("_bare", "calls", "data", "has_thinking", "message", "model", "open_server_uses", "results", "tokens")

    def __init__(self, message: Message) -> None:
        self.data: bytes
        """The message as compact JSON."""
        try:
            self.data = encoded(message)
        except (ValueError, TypeError):  # a lone surrogate, a NaN, an object: rare, so it costs nothing usually
            message = Message(strict_json(message), model=message.model, purpose=message.purpose)
            self.data = encoded(message)
        self.message = message
        self.model = message.model
        self.tokens = estimated_tokens(message, len(self.data))
        """An estimate of what the message costs."""
        calls: list[str] = []
        results: list[str] = []
        server: dict[str, None] = {}
        self.has_thinking = False
        for block in blocks_of(message):
            kind = block.get("type")
            if kind == "tool_use":
                calls.append(str(block.get("id")))
            elif kind == "tool_result":
                results.append(str(block.get("tool_use_id")))
            elif kind in THINKING:
                self.has_thinking = True
            elif is_server_use(block):
                server[str(block.get("id"))] = None
            elif is_server_result(block):
                server.pop(str(block.get("tool_use_id")), None)
        self.calls = tuple(calls)
        """Ids of the tools that it calls, in order."""
        self.results = tuple(results)
        """Ids of the calls that it answers, in order."""
        self.open_server_uses = tuple(server)
        """Ids of calls of the API's own tools whose results are not in this message."""
        self._bare: Entry | None = None

    @property
    def role(self) -> str:
        return str(self.message["role"])

    @property
    def purpose(self) -> str | None:
        return self.message.purpose

    def sent_to(self, model: str | None) -> Entry | None:
        """What `model` is sent of it: thinking goes only to the model that made it. None: nothing is left."""
        if not self.has_thinking or model is None or self.model is None or self.model == model:
            return self
        if self._bare is None:
            bare = without_thinking(self.message)
            if bare is None:
                return None
            self._bare = Entry(bare)
        return self._bare

    def __repr__(self) -> str:
        return f"Entry({self.data.decode()})"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A moment of a history, to go back to. Taking one costs nothing."""

    entries: list[Entry]
    length: int
    tokens: int
    tokens_at_reply: int | None


class History(Sequence[Entry]):
    """The messages of a conversation, oldest first.

    >>> history = History.load("What is 2 + 2?")
    >>> entry = history.append({"role": "assistant", "content": "4."}, model="claude-sonnet-5-5")
    >>> history.encode("claude-sonnet-5-5").decode()
    '[{"role":"user","content":"What is 2 + 2?"},{"role":"assistant","content":"4."}]'
    >>> history.messages[1].model
    'claude-sonnet-5-5'
    """

    __slots__ = (
        "_body",
        "_cache_marks",
        "_encoded",
        "_encoded_model",
        "_entries",
        "_tokens",
        "marks",
        "repairs",
        "tokens_at_reply",
        "version",
    )

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self._entries: list[Entry] = [Entry(message) for message in messages]
        self._tokens = sum(entry.tokens for entry in self._entries)
        self.tokens_at_reply: int | None = None
        """The estimate of the whole as it was when the last assistant message was appended: what the usage of that
        reply has counted."""
        self.version = 0
        """Changes when something else than an append happens."""
        self.marks: dict[str, Any] = {}
        """What the stages of the context pipeline remember of this conversation, each under its name."""
        self.repairs: list[str] = []
        """What `load` had to mend, in words."""
        self._body = bytearray(b"[")
        self._encoded = 0
        self._cache_marks = 0
        self._encoded_model: str | None = None

    @classmethod
    def load(
        cls, messages: Iterable[Mapping[str, Any]] | History | str, *, model: str | None = None, paused: bool = False
    ) -> History:
        """A history from outside: a prompt, or a list of messages, such as the `messages` of an earlier result.

        It is checked to the last block, once, and copied. What a crash leaves behind is mended, and told in `repairs`:
        a call without a result gets one that says that its outcome is unknown; results without a call, blank texts and
        unsigned thinking are left out. `model` is the model that is taken to have made the assistant messages that do
        not say who made them. `paused`: the last message is a reply that the API paused, and is sent again as it is;
        else what waits in it is left out, since a prompt follows. Raises `HistoryError` for what is no list of
        messages.

        >>> crashed = [{"role": "user", "content": "ls"},
        ...            {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "sh", "input": {}}]}]
        >>> History.load(crashed).repairs
        ['messages[1]: the call a (sh) had no result; it got one that says that its outcome is unknown.']
        """
        if isinstance(messages, str):
            if not messages.strip():
                raise HistoryError("The prompt is blank; write what the model should do.")
            messages = [user_message(messages, "prompt")]
        elif isinstance(messages, History):
            messages = messages.messages
        read, notes = readable(messages, model=model)
        mended, more = repaired(read, paused=paused)
        history = cls(Message(m, model=getattr(m, "model", None), purpose=getattr(m, "purpose", None)) for m in mended)
        history.repairs = [*notes, *more]
        return history

    # Reading.

    @overload
    def __getitem__(self, index: int) -> Entry: ...
    @overload
    def __getitem__(self, index: slice) -> list[Entry]: ...
    def __getitem__(self, index: int | slice) -> Entry | list[Entry]:
        return self._entries[index]

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries)

    @property
    def messages(self) -> list[Message]:
        """The messages as plain dicts, oldest first. The list is a new one, the messages are not."""
        return [entry.message for entry in self._entries]

    @property
    def tokens(self) -> int:
        """An estimate of the tokens of all messages."""
        return self._tokens

    def open_calls(self) -> list[str]:
        """Ids of the tool calls of the last assistant message that have no result, in order."""
        answered: set[str] = set()
        for entry in reversed(self._entries):
            if entry.role == "assistant":
                return [call for call in entry.calls if call not in answered]
            answered.update(entry.results)
        return []

    def begins_with_thinking(self, model: str | None = None) -> bool:
        """Whether the reply whose tool results end the history begins with thinking, as `model` is sent it.

        True where no tool results end it: nothing is asked of the replies before a prompt.
        """
        answered = False
        for entry in reversed(self._entries):
            if entry.role == "assistant":
                sent = entry.sent_to(model)
                blocks = blocks_of(sent.message) if sent is not None else []
                return not answered or bool(blocks and blocks[0].get("type") in THINKING)
            answered = answered or bool(entry.results)
        return True

    def encode(self, model: str | None = None) -> bytes:
        """The JSON array of the messages as `model` is sent them; None: as they are.

        As long as nothing is edited and the model stays, each array without its last byte is a prefix of the next.
        """
        return b"".join((self.encoded(model).data, b"]"))

    def encoded(self, model: str | None = None) -> OpenArray:
        """What `encode` gives, without its last byte and without a copy: a request copies it anyway, once."""
        body = self._body
        if self._encoded_model != model:
            self._encoded_model = model
            self._forget_body()
        for entry in self._entries[self._encoded :]:
            sent = entry.sent_to(model)
            if sent is not None:
                if len(body) > 1:
                    body += b","
                body += sent.data
                self._cache_marks += cache_marks(sent.data)
        self._encoded = len(self._entries)
        return OpenArray(body, self._cache_marks)

    # Changing.

    def append(
        self, message: Mapping[str, Any], *, model: str | None = None, purpose: str | None = None
    ) -> Entry | None:
        """Add a message, and return its entry: None if nothing of it can be sent, and so nothing was added.

        `model` is the name that was asked for, which is what thinking is bound to. See `tidied` for what is left out.
        """
        mine = Message(
            message,
            model=model or getattr(message, "model", None),
            purpose=purpose or getattr(message, "purpose", None),
        )
        clean = tidied(mine)
        if clean is None:
            return None
        entry = Entry(clean)
        self._entries.append(entry)
        self._tokens += entry.tokens
        if entry.role == "assistant":
            self.tokens_at_reply = self._tokens
        return entry

    def replace(self, start: int, stop: int, messages: Iterable[Mapping[str, Any]]) -> list[Entry]:
        """Put `messages` in the place of the entries from `start` to before `stop`; returns what was taken out.

        A message that is among those (the same object) keeps its bytes.
        """
        before = self._entries[start:stop]
        known = {id(entry.message): entry for entry in before}
        after: list[Entry] = []
        for message in messages:
            entry = known.get(id(message))
            if entry is None:
                clean = tidied(Message(message, model=_of(message, "model"), purpose=_of(message, "purpose")))
                entry = None if clean is None else Entry(clean)
            if entry is not None:
                after.append(entry)
        self._tokens += sum(entry.tokens for entry in after) - sum(entry.tokens for entry in before)
        self._set(self._entries[:start] + after + self._entries[stop:])
        return before

    def repair(self, *, paused: bool = True) -> list[str]:
        """Mend what the validator would refuse, by the smallest edit; returns what was done, in words.

        `paused`: the last message may be a reply that the API paused and that is to be sent back.
        """
        mended, notes = repaired(self.messages, paused=paused)
        if notes:
            self.replace(0, len(self), mended)
        return notes

    def waiting_server_uses(self) -> set[str]:
        """Ids of the calls of the API's own tools that the next reply may answer."""
        return set(at_the_end(self._entries)[0].waiting)

    def settle_server_uses(self, *, paused: bool) -> bool:
        """Take out the calls of the API's own tools that nothing answers any more, and results without a call; returns
        whether a call still waits.

        `paused`: the next message is a reply; else the user has spoken.
        """
        pairs, alone = at_the_end(self._entries)
        if not paused:
            alone += pairs.ended()
        for index in sorted({index for index, _ in alone}, reverse=True):
            message = without_blocks(self._entries[index].message, {place for at, place in alone if at == index})
            self.replace(index, index + 1, [] if message is None else [message])
        return bool(pairs.waiting)

    def drop_cache_marks(self, count: int) -> None:
        """Take this many cache marks out, the oldest first: the API takes few, and the newest are worth most."""
        for position, entry in enumerate(self._entries):
            if count <= 0:
                return
            if b'"cache_control":' in entry.data:
                bare, lost = without_cache_marks(entry.message, count)
                count -= lost
                self.replace(position, position + 1, [bare])

    def snapshot(self) -> Snapshot:
        return Snapshot(self._entries, len(self._entries), self._tokens, self.tokens_at_reply)

    def restore(self, snapshot: Snapshot) -> None:
        """Go back to the moment of the snapshot."""
        self._set(snapshot.entries[: snapshot.length])
        self._tokens = snapshot.tokens
        self.tokens_at_reply = snapshot.tokens_at_reply

    def part(self, start: int = 0, stop: int | None = None) -> History:
        """Another history with these entries. It shares them, so nothing is encoded again."""
        other = History()
        other._entries = self._entries[start:stop]
        other._tokens = sum(entry.tokens for entry in other._entries)
        return other

    def _set(self, entries: list[Entry]) -> None:
        self._entries = entries
        self.version += 1
        self._forget_body()

    def _forget_body(self) -> None:
        self._encoded = self._cache_marks = 0
        del self._body[1:]


def _of(message: Mapping[str, Any], name: str) -> Any:
    return getattr(message, name, None)


def content_of(entry: Entry) -> list[JsonObject]:
    """The content blocks of an entry."""
    return blocks_of(entry.message)
