"""Mending a list of messages that the API would refuse: the smallest edit that makes it valid, told in words.

A crash, a kill or another program leaves such lists behind. Nothing here guesses what a tool did: a call without a
result is answered by "outcome unknown", and the model decides.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final

from fsm_agent.session.message import (
    THINKING,
    JsonObject,
    Message,
    blocks_of,
    inner_blocks,
    is_misplaced,
    user_message,
    with_content,
)
from fsm_agent.session.server_tools import Place, ServerPairs
from fsm_agent.session.tidying import tidied

ID_PATTERN: Final = re.compile(r"[a-zA-Z0-9_-]+")
"""What the API takes as the id of a tool use."""

OUTCOME_UNKNOWN: Final = (
    "The outcome of this call is unknown: the run ended before its result was recorded. "
    "It may have taken effect; check before you make it again."
)
BEGINNING_LOST: Final = "[The beginning of this conversation is not available.]"

_Note = Callable[[int, str], None]
_Indexed = tuple[int, Message]  # with the index that the message had when it was given: what notes speak of


def repaired(messages: Iterable[Mapping[str, Any]], *, paused: bool = True) -> tuple[list[Message], list[str]]:
    """The messages as the validator accepts them, and what was done, in words. A message without a fault is the same
    object as before (a `Message`) or a shallow copy (a dict).

    `paused`: the last message may be a reply that the API paused, whose own tool still waits; it is then the last that
    is sent. Not so where a user message is to follow.

    >>> repaired([{"role": "assistant", "content": "Hello."}])[1]
    ['messages[0]: the first message is not of role user; a note was put before it.']
    """
    notes: list[str] = []

    def note(index: int, text: str) -> None:
        notes.append(f"messages[{index}]: {text}")

    given = [m if isinstance(m, Message) else Message(m) for m in messages]
    tidy = [(index, clean) for index, message in enumerate(given) if (clean := _tidy(index, message, note))]
    paired = _Pairing(note).paired(_server_pairs(_joined(tidy, note), note, paused=paused))
    if paired and paired[0]["role"] != "user":
        note(0, "the first message is not of role user; a note was put before it.")
        paired.insert(0, user_message(BEGINNING_LOST, "repair"))
    return paired, notes


def _tidy(index: int, message: Message, note: _Note) -> Message | None:
    """Faults of one message alone."""
    sound = _mended(index, _placed(index, message, note), note)
    clean = tidied(sound)
    if clean is None:
        note(index, "left out, since nothing of it can be sent.")
    elif clean is not sound:
        note(index, "blank texts, or thinking without a signature or at the very end, were left out.")
    return clean


def _placed(index: int, message: Message, note: _Note) -> Message:
    """Blocks that a message of this role cannot have are left out."""
    kept = [block for block in blocks_of(message) if not is_misplaced(block, message["role"])]
    if len(kept) == len(blocks_of(message)):
        return message
    note(index, f"blocks that a message of role {message['role']} cannot have were left out.")
    return with_content(message, kept)


def _mended(index: int, message: Message, note: _Note) -> Message:
    if isinstance(message["content"], str):
        return message
    blocks = [_mended_block(index, block, note) for block in blocks_of(message)]
    same = all(new is old for new, old in zip(blocks, blocks_of(message), strict=True))
    return message if same else with_content(message, blocks)


def _mended_block(index: int, block: JsonObject, note: _Note) -> JsonObject:
    kind = block.get("type")
    if kind == "tool_use" and not isinstance(block.get("input"), dict):
        note(index, f"the input of the call {block.get('id')} was no object; it was made one.")
        return {**block, "input": _input(block.get("input"))}
    if kind == "tool_result" and block.get("is_error"):
        if all(part.get("type") == "text" for part in inner_blocks(block)):
            return block
        note(index, f"the result of {block.get('tool_use_id')} is no longer marked as an error: only text may be.")
        return {key: value for key, value in block.items() if key != "is_error"}
    return block


def _input(value: object) -> JsonObject:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return {"unreadable_input": value}
    if isinstance(value, dict):
        return value  # pyright: ignore[reportUnknownVariableType]
    return {} if value is None else {"unreadable_input": value}


def _calls(message: Message) -> list[JsonObject]:
    return [block for block in blocks_of(message) if block.get("type") == "tool_use"]


def _joined(messages: list[_Indexed], note: _Note) -> list[_Indexed]:
    """An assistant message that goes on in the next one after a call becomes one with it.

    Some programs store one message for each block. The API joins them, but results must follow the message itself.
    """
    joined: list[_Indexed] = []
    for index, message in messages:
        before = joined[-1][1] if joined else None
        if before is None or message["role"] != "assistant" or before["role"] != "assistant" or not _calls(before):
            joined.append((index, message))
            continue
        more = blocks_of(message)
        if before.model != message.model:
            more = [block for block in more if block.get("type") not in THINKING]
        joined[-1] = (joined[-1][0], with_content(before, [*blocks_of(before), *more]))
        note(index, "joined to the assistant message before it, which it continues.")
    return joined


def _server_pairs(messages: list[_Indexed], note: _Note, *, paused: bool) -> list[_Indexed]:
    """Leave out calls of the API's own tools that were never answered, and results without a call."""
    pairs = ServerPairs()
    alone: set[Place] = set()
    for place, (_, message) in enumerate(messages):
        alone.update(pairs.feed(place, message))
    if not paused:
        alone.update(pairs.ended())
    if not alone:
        return messages
    return [one for place, given in enumerate(messages) if (one := _without(place, given, alone, note)) is not None]


def _without(place: int, one: _Indexed, alone: set[Place], note: _Note) -> _Indexed | None:
    index, message = one
    positions = {position for at, position in alone if at == place}
    if not positions:
        return one
    note(index, "calls of the API's own tools without a result, or results without a call, were left out.")
    clean = without_blocks(message, positions)
    return None if clean is None else (index, clean)


def without_blocks(message: Message, positions: Collection[int]) -> Message | None:
    """The message without these blocks, as it can be sent; None if nothing of it is left."""
    kept = [block for position, block in enumerate(blocks_of(message)) if position not in positions]
    return tidied(with_content(message, kept))


class _Pairing:
    """Puts one result for each call right behind the message that calls, in call order, under ids that are unique."""

    def __init__(self, note: _Note) -> None:
        self.note = note
        self.taken: set[str] = set()

    def paired(self, messages: list[_Indexed]) -> list[Message]:
        self.taken = set()
        done: list[Message] = []
        place = 0
        while place < len(messages):
            index, message = messages[place]
            if message["role"] != "assistant":
                done += self._with_results([messages[place]], [])
                place += 1
                continue
            after = place + 1
            while after < len(messages) and messages[after][1]["role"] == "user":
                after += 1
            message, calls = self._with_unique_ids(index, message)
            done.append(message)
            done += self._with_results(messages[place + 1 : after], calls, index)
            place = after
        return done

    def _with_unique_ids(self, index: int, message: Message) -> tuple[Message, list[tuple[str, JsonObject]]]:
        """The message, and for each of its calls the id that its result has in what was given."""
        calls: list[tuple[str, JsonObject]] = []
        blocks: list[JsonObject] = []
        renamed = False
        for block in blocks_of(message):
            if block.get("type") != "tool_use":
                blocks.append(block)
                continue
            old = str(block.get("id"))
            new = self._fresh(old)
            if new != old:
                renamed = True
                self.note(index, f"the id {old!r} of a call is not unique or not allowed; the call is now {new}.")
            blocks.append(block if new == old else {**block, "id": new})
            calls.append((old, blocks[-1]))
        return (with_content(message, blocks) if renamed else message), calls

    def _fresh(self, name: str) -> str:
        stem = name if ID_PATTERN.fullmatch(name) else re.sub(r"[^a-zA-Z0-9_-]", "_", name) or "call"
        fresh, count = stem, 1
        while fresh in self.taken:
            count += 1
            fresh = f"{stem}_{count}"
        self.taken.add(fresh)
        return fresh

    def _with_results(
        self, users: list[_Indexed], calls: list[tuple[str, JsonObject]], index: int = -1
    ) -> list[Message]:
        """The user messages that follow a call, with the results in their place."""
        results = self._results(users, calls, index)
        if not results:
            return [clean for one in users if (clean := self._without_results(one)) is not None]
        first = users[0][1] if users else user_message([], "tool_results")
        rest = [block for block in blocks_of(first) if block.get("type") != "tool_result"]
        wanted = [*results, *rest]
        given = blocks_of(first)
        same = len(wanted) == len(given) and all(new is old for new, old in zip(wanted, given, strict=True))
        following = [clean for one in users[1:] if (clean := self._without_results(one)) is not None]
        return [first if same else with_content(first, wanted), *following]

    def _results(self, users: list[_Indexed], calls: list[tuple[str, JsonObject]], index: int) -> list[JsonObject]:
        given: dict[str, list[JsonObject]] = {}
        for _, message in users:
            for block in blocks_of(message):
                if block.get("type") == "tool_result":
                    given.setdefault(str(block.get("tool_use_id")), []).append(block)
        results: list[JsonObject] = []
        for old, call in calls:
            found = given.get(old)
            if found:
                result = found.pop(0)
                results.append(result if call["id"] == old else {**result, "tool_use_id": call["id"]})
            else:
                self.note(
                    index,
                    f"the call {call['id']} ({call.get('name')}) had no result; it got one that says that its outcome "
                    "is unknown.",
                )
                results.append(_unknown(call["id"]))
        self._tell_moved(users, results, given)
        return results

    def _tell_moved(self, users: list[_Indexed], results: list[JsonObject], left: dict[str, list[JsonObject]]) -> None:
        for index, _ in users:
            orphans = sorted(name for name, blocks in left.items() if blocks)
            if orphans:
                self.note(index, f"results without a call of their own were left out: {', '.join(orphans)}.")
                return
        if users and results:
            index, first = users[0]
            lead = blocks_of(first)[: len(results)]
            if len(lead) < len(results) or any(new is not old for new, old in zip(results, lead, strict=False)):
                self.note(index, "the results were put in the order of the calls, right behind them.")

    def _without_results(self, one: _Indexed) -> Message | None:
        _, message = one
        kept = [block for block in blocks_of(message) if block.get("type") != "tool_result"]
        if len(kept) == len(blocks_of(message)):
            return message
        return with_content(message, kept) if kept else None


def _unknown(call_id: str) -> JsonObject:
    return {"type": "tool_result", "tool_use_id": call_id, "content": OUTCOME_UNKNOWN, "is_error": True}
