"""Images and documents: one that the API refuses is replaced by a note, in the same place, under the same result."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final, TypeAlias

from fsm_agent.context.view import Edit
from fsm_agent.session.history import History
from fsm_agent.session.message import JsonObject, Message, blocks_of, inner_blocks, media_of, payload_size, with_content

MANY_IMAGES: Final = 20
"""Images from which on a smaller size is allowed for each ("for many-image requests: 2000 pixels")."""

_Where: TypeAlias = tuple[int, int, int | None]  # message, block, block inside a tool result
_Found: TypeAlias = list[tuple[_Where, JsonObject]]
_POINTER: Final = re.compile(r"messages\.(\d+)\.content\.(\d+)(?:\.tool_result(?:\.content\.(\d+))?)?")


def removal(history: History, error: str, model: str | None = None) -> list[Edit]:
    """The edits that take away what the API refused with this error text; none if there are no media.

    The text names `messages.N.content.M`, or else the newest message with media is taken for the cause: the requests
    before it were accepted. Of too many images the oldest go.
    """
    found = list(_all_media(history))
    if not found:
        return []
    images = [where for where, block in found if block.get("type") == "image"]
    if "many-image" in error and len(images) > MANY_IMAGES:
        doomed = images[:-MANY_IMAGES]
    else:
        doomed = _named(history, found, error, model) or _newest(found)
    return _edits(history, doomed, error)


def without_media(message: Message) -> Message:
    """The message with a note for each image or document; the same object if there is none."""
    return with_media(message, lambda block: note_for(block, "left out of the summary"))


def with_media(message: Message, change: Callable[[JsonObject], JsonObject]) -> Message:
    """The message with each image and document changed; the same object if none was."""
    places = [(place, inner, change(block), block) for place, inner, block in media_of(message)]
    if all(new is old for _, _, new, old in places):
        return message
    blocks = list(blocks_of(message))
    for place, inner, new, _ in places:
        if inner is None:
            blocks[place] = new
        else:
            blocks[place] = {**blocks[place], "content": _replaced(inner_blocks(blocks[place]), inner, new)}
    return with_content(message, blocks)


def _replaced(parts: list[JsonObject], place: int, new: JsonObject) -> list[JsonObject]:
    return [*parts[:place], new, *parts[place + 1 :]]


def note_for(block: Mapping[str, Any], why: str) -> JsonObject:
    """The text that takes the place of an image or a document."""
    return {"type": "text", "text": f"[{'Image' if block.get('type') == 'image' else 'Document'} removed: {why}.]"}


def _all_media(history: History) -> Iterator[tuple[_Where, JsonObject]]:
    for index, entry in enumerate(history):
        for place, inner, block in media_of(entry.message):
            yield (index, place, inner), block


def _newest(found: _Found) -> list[_Where]:
    newest = found[-1][0][0]
    return [where for where, _ in found if where[0] == newest]


def _named(history: History, found: _Found, error: str, model: str | None) -> list[_Where]:
    """What the error names. Some errors count the messages as sent, some after joining those of one role."""
    pointer = _POINTER.search(error)
    if pointer is None:
        return []
    turn, place = int(pointer[1]), int(pointer[2])
    inner = None if pointer[3] is None else int(pointer[3])
    for where in (*_as_sent(history, turn, place, model), *_as_joined(history, turn, place, model)):
        named = [(payload_size(block), one) for one, block in found if one[:2] == where and inner in (None, one[2])]
        if named:
            return [max(named, key=lambda sized: sized[0])[1]]
    return []


def _sent(history: History, model: str | None) -> list[int]:
    return [index for index, entry in enumerate(history) if entry.sent_to(model) is not None]


def _as_sent(history: History, turn: int, place: int, model: str | None) -> Iterator[tuple[int, int]]:
    sent = _sent(history, model)
    if turn < len(sent):
        yield sent[turn], place


def _as_joined(history: History, turn: int, place: int, model: str | None) -> Iterator[tuple[int, int]]:
    """The position in the message of the history that became content `place` of the joined turn `turn`."""
    joined, offset, role = -1, 0, ""
    for index in _sent(history, model):
        entry = history[index]
        if entry.role != role:
            joined, offset, role = joined + 1, 0, entry.role
        count = len(blocks_of(entry.message))
        if joined == turn and offset <= place < offset + count:
            yield index, place - offset
        offset += count


def _edits(history: History, doomed: list[_Where], error: str) -> list[Edit]:
    gone = set(doomed)
    why = "the API refused it"
    reason = " ".join(error.split())[:200]
    note = f"{why} ({reason})" if reason else why
    edits: list[Edit] = []
    for index in sorted({where[0] for where in doomed}):
        entry = history[index]
        places = {id(block) for place, inner, block in media_of(entry.message) if (index, place, inner) in gone}
        message = with_media(entry.message, partial(_noted, places=places, why=note))
        after = History([message]).tokens
        total = edits[-1].tokens_after if edits else history.tokens
        removed = f"{len(places)} media of messages[{index}] were removed: {note}."
        edits.append(Edit("media_removal", index, index + 1, (message,), removed, total, total - entry.tokens + after))
    return edits


def _noted(block: JsonObject, places: set[int], why: str) -> JsonObject:
    return note_for(block, why) if id(block) in places else block
