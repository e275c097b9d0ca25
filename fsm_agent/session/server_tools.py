"""Calls of the API's own tools (web search, code execution, MCP) and their results, which are blocks of the assistant.

A call waits for its result in the same turn. It may wait longer while each turn since also calls a tool of ours, since
the API's tool then waits for that (recorded: code execution that calls our tool); and at the very end (`pause_turn`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from fsm_agent.session.message import blocks_of, is_server_result, is_server_use

if TYPE_CHECKING:
    from fsm_agent.session.history import Entry

Place: TypeAlias = tuple[int, int]
"""Index of the message, position of the block."""


class ServerPairs:
    """Follows a conversation, message by message."""

    __slots__ = ("_calls_ours", "_in_turn", "waiting")

    def __init__(self) -> None:
        self.waiting: dict[str, Place] = {}
        """The calls that have no result so far."""
        self._calls_ours = False
        self._in_turn = False

    def feed(self, index: int, message: Mapping[str, Any]) -> list[Place]:
        """Take the next message; returns the blocks that are now known to be alone."""
        if message.get("role") != "assistant":
            self._in_turn = False
            return []
        alone: list[Place] = []
        if not self._in_turn:
            if not self._calls_ours:
                alone = self.expired()
            self._in_turn, self._calls_ours = True, False
        for position, block in enumerate(blocks_of(message)):
            if is_server_use(block):
                name = str(block.get("id"))
                if name in self.waiting:
                    alone.append(self.waiting[name])
                self.waiting[name] = (index, position)
            elif is_server_result(block):
                if self.waiting.pop(str(block.get("tool_use_id")), None) is None:
                    alone.append((index, position))
            elif block.get("type") == "tool_use":
                self._calls_ours = True
        return alone

    def expired(self) -> list[Place]:
        """The waiting calls, which nothing can answer any more."""
        alone = list(self.waiting.values())
        self.waiting.clear()
        return alone

    def ended(self) -> list[Place]:
        """The calls that are alone if a user message follows now."""
        return [] if self._calls_ours else self.expired()


def at_the_end(entries: Sequence[Entry]) -> tuple[ServerPairs, list[Place]]:
    """Where the calls stand at the end of a conversation whose earlier part is sound, and the blocks alone by now.

    Looks back no further than to the last turn that calls no tool of ours: no call waits beyond it.
    """
    start = len(entries)
    while start and entries[start - 1].role != "assistant":  # what was said since the last turn
        start -= 1
    while start and entries[start - 1].role == "assistant":  # the last turn
        start -= 1
    while start and not _expired_between(entries[start - 1], entries[start]):
        start -= 1
    pairs = ServerPairs()
    alone: list[Place] = []
    for index in range(start, len(entries)):
        alone += pairs.feed(index, entries[index].message)
    return pairs, alone


def _expired_between(entry: Entry, following: Entry) -> bool:
    """The user spoke after a turn, and not to answer calls of ours."""
    return entry.role == "assistant" and following.role != "assistant" and not following.results
