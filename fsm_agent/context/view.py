"""What a stage of the pipeline sees of a run, and how it says what it would change."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from fsm_agent.machine import LoopLimits, ResponseOutcome
from fsm_agent.session.history import Entry, History

if TYPE_CHECKING:
    from pathlib import Path

    from fsm_agent.model.classify import Failure
    from fsm_agent.model.usage import Usage


@dataclass(frozen=True, slots=True)
class Edit:
    """The entries from `start` to before `stop` are to be replaced by `messages`.

    Edits of one plan are made in their order; each counts the entries as the ones before it left them.
    """

    stage: str
    start: int
    stop: int
    messages: tuple[Mapping[str, Any], ...]
    """A message that stays is the same object as before, so that it is not encoded again."""
    removed: str
    """What was removed or replaced, in words."""
    tokens_before: int
    """Estimate of the whole context, in tokens."""
    tokens_after: int


def apply_edits(history: History, edits: Iterable[Edit]) -> None:
    for edit in edits:
        history.replace(edit.start, edit.stop, edit.messages)


@dataclass(frozen=True, slots=True)
class SummaryRequest:
    """One request for a summary, to be sent with the same system prompt and tools as a turn."""

    body: bytes
    """The messages as a JSON array, the instruction last."""
    max_tokens: int


@dataclass(frozen=True, slots=True)
class SummaryResult:
    """How that request ended."""

    outcome: ResponseOutcome | str | None = None
    """None: it was not made."""
    text: str = ""
    failure: Failure | None = None
    usage: Usage | None = None
    detail: str = ""


class Store(Protocol):
    """Keeps the whole text of a result that was cut (`results.ResultStore`)."""

    def save(self, call_id: str, text: str) -> Path | None: ...


Summarise: TypeAlias = Callable[[SummaryRequest], Awaitable[SummaryResult]]
Replacement: TypeAlias = Callable[
    ["ContextView"], "Sequence[Mapping[str, Any]] | Awaitable[Sequence[Mapping[str, Any]] | None] | None"
]
"""A stage of the program's own, in the place of `microcompact` or `autocompact`: is asked in each turn, and returns all
messages as they are to be, or None to leave them."""


@dataclass(frozen=True, slots=True)
class ContextView:
    """What the pipeline may see of a run. It reads, and proposes; it changes nothing."""

    history: History
    limits: LoopLimits
    summarise: Summarise
    model: str | None = None
    turn: int = 1
    last_usage: Usage | None = None
    """Usage of the last reply that entered the history; None before the first, and right after a compaction."""
    last_compaction_turn: int | None = None
    autocompact_failures: int = 0
    """Compactions in a row that the pipeline tried in vain."""
    fixed_tokens: int = 0
    """Estimate of the system prompt and the tools, in tokens."""
    microcompact: Replacement | None = None
    autocompact: Replacement | None = None
    store: Store | None = None

    def tokens(self) -> int:
        """The size of the context now, in tokens: what the API counted for the last reply and an estimate of what came
        since, or an estimate of all. Usage of other requests (of the run so far, of summaries) has no part in it.
        """
        counted = self.history.tokens_at_reply
        if self.last_usage is None or counted is None:
            return self.fixed_tokens + self.history.tokens
        since = self.history.tokens - counted
        return max(1, round(self.last_usage.context_tokens + since * self._density(counted)))

    def _density(self, counted: int) -> float:
        """Tokens as the API counts them for one that we estimate. Bounded: a few words may cost anything."""
        assert self.last_usage is not None
        return min(2.0, max(0.5, self.last_usage.context_tokens / max(1, self.fixed_tokens + counted)))

    @property
    def measured(self) -> bool:
        """Whether the API has counted this context, so that its size is more than an estimate."""
        return self.last_usage is not None and self.history.tokens_at_reply is not None


def pressure_threshold(limits: LoopLimits) -> int:
    """Tokens from which the context is made smaller: 33,000 below the window (as observed in the reference loop, with
    windows of 100,000 and 200,000), and in a small window two thirds of it.

    >>> pressure_threshold(LoopLimits(context_window=200_000)), pressure_threshold(LoopLimits(context_window=3_000))
    (167000, 2000)
    """
    return limits.context_window - min(33_000, limits.context_window // 3)


@dataclass(slots=True)
class Draft:
    """A history in the making: the stages edit it one after another, and the run's own history stays as it is."""

    view: ContextView
    edits: list[Edit] = field(default_factory=list[Edit])
    compaction: str = ""
    """`compacted` or `failed`, if the model was asked for a summary."""
    too_large: str = ""
    """Why the request must fail, if it must."""
    detail: str = ""
    _given: int | None = None
    """Size of the context without edits."""
    _edited: History | None = None
    _size: float = 0.0
    """Real tokens for one that we estimate, over the whole context."""

    @property
    def history(self) -> History:
        return self.view.history if self._edited is None else self._edited

    @property
    def tokens(self) -> int:
        """Size of the context with the edits made so far."""
        if self._edited is None:
            if self._given is None:
                self._given = self.view.tokens()
            return self._given
        return round(self._size * (self.view.fixed_tokens + self._edited.tokens))

    def replace(self, stage: str, start: int, stop: int, messages: Sequence[Mapping[str, Any]], removed: str) -> None:
        """Make an edit, and note it."""
        before = self.tokens
        if self._edited is None:
            self._edited = self.view.history.part()
            self._size = before / max(1, self.view.fixed_tokens + self.view.history.tokens)
        self._edited.replace(start, stop, messages)
        self.edits.append(Edit(stage, start, stop, tuple(messages), removed, before, self.tokens))

    def replace_messages(self, stage: str, changed: Mapping[int, Mapping[str, Any]], removed: str) -> None:
        """One edit that changes some messages, by index, and leaves what stands between as it is."""
        if changed:
            start, stop = min(changed), max(changed) + 1
            messages = [changed.get(index, self.history[index].message) for index in range(start, stop)]
            self.replace(stage, start, stop, messages, removed)


class Stage(Protocol):
    """One stage: edits the draft, or leaves it. All but `autocompact` are pure."""

    def __call__(self, draft: Draft) -> Awaitable[None] | None: ...


def new_entries(history: History, stage: str) -> list[tuple[int, Entry]]:
    """The entries that the stage has not seen in this history, with their indexes; `mark_seen` is called when done.

    After an edit all entries are new: an edit is rare, and what a stage has bounded it will leave alone.
    """
    version, seen = history.marks.get(stage, (history.version, 0))
    start = seen if version == history.version else 0
    return list(enumerate(history[start:], start))


def mark_seen(history: History, stage: str) -> None:
    history.marks[stage] = (history.version, len(history))
