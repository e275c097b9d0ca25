"""Where a history may be cut: never between a call and its result, and never inside a turn of the model."""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

from fsm_agent.session.history import Entry, History
from fsm_agent.session.message import Message, blocks_of, text_of, with_content
from fsm_agent.session.server_tools import ServerPairs

SUMMARY_OPENING: Final = "<conversation_summary>"
PROMPTS: Final = frozenset({"prompt", "queued"})


def cuts(history: History) -> list[int]:
    """The indexes, ascending, at which both sides are whole: 0, some between, and the end unless calls are open."""
    found: list[int] = []
    server = ServerPairs()
    calls_open = False
    before = ""
    for index, entry in enumerate(history):
        role = entry.role
        if not calls_open and not server.waiting and not (role == before == "assistant"):
            found.append(index)
        server.feed(index, entry.message)
        calls_open = bool(entry.calls)
        before = role
    if not calls_open and not server.waiting:
        found.append(len(history))
    return found


def cut_before(history: History, index: int) -> int:
    """The last legal cut at `index` or before it."""
    legal = cuts(history)
    return legal[bisect_right(legal, index) - 1]


def cut_keeping(history: History, tokens: int) -> int:
    """The first legal cut behind which at most `tokens` tokens stay, by estimate; 0 if there is none.

    Where even the last group is larger, that is the end, or the last legal cut if calls are open.
    """
    legal = cuts(history)
    left = history.tokens
    sizes = iter(history)
    done = 0
    for cut in legal:
        while done < cut:
            left -= next(sizes).tokens
            done += 1
        if left <= tokens:
            return cut
    return legal[-1]


def is_summary(entry: Entry) -> bool:
    return entry.purpose == "summary" or (entry.role == "user" and text_of(entry.message).startswith(SUMMARY_OPENING))


def prompt_in(entry: Entry) -> Message | None:
    """What the user wrote in this message, as a message without tool results; None if nothing.

    Where the purpose is not known, each text of role `user` that is not a summary is taken for the user's.
    """
    if entry.role != "user" or is_summary(entry):
        return None
    if entry.purpose is not None and entry.purpose not in PROMPTS:
        return None
    if not entry.results:
        return entry.message
    words = [block for block in blocks_of(entry.message) if block.get("type") != "tool_result"]
    return with_content(entry.message, words) if words else None


def prompts(history: History) -> list[int]:
    """Indexes of the messages in which the user wrote."""
    return [index for index, entry in enumerate(history) if prompt_in(entry) is not None]


def live_prompts(history: History) -> list[int]:
    """Indexes of the user's latest prompt and of what the user added while it was worked on."""
    found = prompts(history)
    start = len(found) - 1
    while start > 0 and history[found[start]].purpose == "queued":
        start -= 1
    return found[max(0, start) :]
