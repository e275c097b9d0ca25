"""What can be seen of a loop from outside: its requests, its calls of tools, and what it returned."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from fsm_agent.testing.other_loops.tools import RecordedCall, ToolFunction
from fsm_agent.testing.rules import ApiRefusal
from fsm_agent.testing.shapes import JsonObject, objects

__all__ = ["Drive", "Ended", "Observed", "Outcome", "merged_turns", "tool_results"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one run of the loop came to, in the words of its adapter.

    >>> Outcome("All done.", ended="end_turn").ok
    True
    """

    text: str
    """The answer, as a user of the loop would print it."""
    ended: str = "completed"
    """How it ended, in the loop's own word."""
    ok: bool = True
    """Whether a user of the loop would take this for success."""
    follow_up: Callable[[str], Awaitable[Outcome]] | None = field(default=None, repr=False)
    """Runs again, on what this run left, with another prompt; `None` when the loop offers no such thing."""


Drive: TypeAlias = Callable[[str, str, Sequence[ToolFunction]], Awaitable[Outcome]]
"""Runs the loop once: base URL of the API, prompt and tools in, outcome out.

It is cancelled to abort the run. Let the cancellation pass, or, if the loop then has something to show (a history that
can be gone on with), catch it and return an outcome. What it raises is taken as a failure that the loop told.
"""

Ended: TypeAlias = Literal["by itself", "aborted", "too many requests", "too slow", "deaf"]
"""`deaf`: it did not end after it was cancelled."""


@dataclass(slots=True)
class Observed:
    """One scenario as it went."""

    bodies: list[JsonObject] = field(default_factory=list[JsonObject])
    """The requests that were accepted, whole, also where only their end was sent."""
    refusals: list[ApiRefusal] = field(default_factory=list[ApiRefusal])
    calls: list[RecordedCall] = field(default_factory=list[RecordedCall])
    requests: int = 0
    """Requests of the run itself, repetitions by the client included."""
    requests_after_abort: int = 0
    ended: Ended = "by itself"
    outcome: Outcome | None = None
    raised: BaseException | None = None
    follow_up: Outcome | None = None
    """What the next run, on what this one left, came to."""
    follow_up_refusals: list[ApiRefusal] = field(default_factory=list[ApiRefusal])
    follow_up_raised: BaseException | None = None
    follow_up_body: JsonObject | None = None
    """The first accepted request of the run that followed."""

    @property
    def word(self) -> str:
        """How the run ended, in a word."""
        if self.ended not in {"by itself", "aborted"}:
            return self.ended
        if self.outcome is not None:
            return self.outcome.ended
        return "nothing" if self.raised is None else type(self.raised).__name__


def merged_turns(body: JsonObject) -> Iterator[tuple[str, list[JsonObject]]]:
    """The messages as the API reads them: neighbours of one role are one turn, and a string is a text block."""
    role, blocks = "", list[JsonObject]()
    for message in objects(body.get("messages")):
        if message.get("role") != role:
            if role:
                yield role, blocks
            role, blocks = str(message.get("role")), []
        content = message.get("content")
        blocks += [{"type": "text", "text": content}] if isinstance(content, str) else objects(content)
    if role:
        yield role, blocks


def tool_results(body: JsonObject) -> Iterator[JsonObject]:
    """Every `tool_result` of a request."""
    for role, blocks in merged_turns(body):
        if role == "user":
            yield from (block for block in blocks if block.get("type") == "tool_result")
