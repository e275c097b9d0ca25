"""Prompt-cache accounting as the API does it, with an estimate of tokens.

A prompt is a sequence of segments (tools, system, messages). At each cache mark the prefix that ends there is kept for
the mark's time to live, provided that it has the model's minimum size. A later request reads the longest kept prefix
that ends at one of its marks or within the 20 segments before one (the API's look-back); the rest up to its last mark
is written. Reading renews the time to live. A change anywhere in a prefix makes it another prefix.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

from fsm_agent.testing.shapes import JsonObject, as_object
from fsm_agent.testing.tokens import Segment, prompt_segments

__all__ = ["LOOK_BACK", "CacheUsage", "PromptCache"]

LOOK_BACK = 20
"""Segments before a mark that are searched for a kept prefix (docs: prompt caching)."""
_SECONDS = {"5m": 300.0, "1h": 3600.0}


@dataclass(frozen=True, slots=True)
class CacheUsage:
    """How the input tokens of one request divide."""

    input_tokens: int
    """Neither read from the cache nor written to it."""
    read_tokens: int = 0
    written_5m: int = 0
    written_1h: int = 0

    @property
    def total(self) -> int:
        """All input tokens."""
        return self.input_tokens + self.read_tokens + self.written_5m + self.written_1h

    def as_usage(self) -> JsonObject:
        """The input side of a usage object."""
        return {
            "input_tokens": self.input_tokens,
            "cache_creation_input_tokens": self.written_5m + self.written_1h,
            "cache_read_input_tokens": self.read_tokens,
            "cache_creation": {
                "ephemeral_5m_input_tokens": self.written_5m,
                "ephemeral_1h_input_tokens": self.written_1h,
            },
        }


@dataclass(frozen=True, slots=True)
class _Mark:
    position: int
    """How many segments the prefix has."""
    ttl: str


class PromptCache:
    """The prefixes that one server keeps. `clock` gives seconds.

    >>> cache = PromptCache(lambda: 0.0)
    >>> body = {"model": "m", "system": "x" * 8000, "cache_control": {"type": "ephemeral"},
    ...         "messages": [{"role": "user", "content": "hi"}]}
    >>> cache.account(body, 1024, 4.0).read_tokens, cache.account(body, 1024, 4.0).input_tokens
    (0, 0)
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._until: dict[bytes, tuple[float, str]] = {}

    def account(self, body: JsonObject, minimum: int, characters_per_token: float) -> CacheUsage:
        """Read and write the cache for a request; `minimum` is the model's smallest cacheable prefix in tokens."""
        segments = prompt_segments(body, characters_per_token)
        total = max(1, sum(segment.tokens for segment in segments))
        marks = _marks(body, segments)
        if not marks:
            return CacheUsage(total)
        keys = _prefix_keys(str(body.get("model")), segments)
        sizes = _running_totals(segments)
        read = self._longest_kept(marks, keys)
        written = self._write(marks, keys, sizes, read, minimum)
        read_tokens = sizes[read]
        return CacheUsage(total - read_tokens - sum(written.values()), read_tokens, written["5m"], written["1h"])

    def _longest_kept(self, marks: list[_Mark], keys: list[bytes]) -> int:
        now = self._clock()
        candidates = {at for mark in marks for at in range(max(1, mark.position - LOOK_BACK), mark.position + 1)}
        for position in sorted(candidates, reverse=True):
            until, ttl = self._until.get(keys[position], (now, ""))
            if until > now:
                self._until[keys[position]] = (now + _SECONDS[ttl], ttl)
                return position
        return 0

    def _write(
        self, marks: list[_Mark], keys: list[bytes], sizes: list[int], read: int, minimum: int
    ) -> dict[str, int]:
        now = self._clock()
        written = {"5m": 0, "1h": 0}
        done = sizes[read]
        for mark in sorted(marks, key=lambda mark: mark.position):
            if mark.position > read and sizes[mark.position] >= minimum:
                written[mark.ttl] += sizes[mark.position] - done
                done = sizes[mark.position]
                self._until[keys[mark.position]] = (now + _SECONDS[mark.ttl], mark.ttl)
        return written


def _marks(body: JsonObject, segments: list[Segment]) -> list[_Mark]:
    marks = [_Mark(at + 1, _ttl(segment.mark)) for at, segment in enumerate(segments) if segment.mark is not None]
    automatic = as_object(body.get("cache_control"))
    if automatic is not None:
        last = next((at for at in reversed(range(len(segments))) if segments[at].cacheable), None)
        if last is not None:
            marks.append(_Mark(last + 1, _ttl(automatic)))
    return marks


def _ttl(mark: JsonObject) -> str:
    return "1h" if mark.get("ttl") == "1h" else "5m"


def _prefix_keys(model: str, segments: list[Segment]) -> list[bytes]:
    running = hashlib.sha256(model.encode())
    keys = [running.digest()]
    for segment in segments:
        running.update(f"\x00{segment.part}\x00{segment.content}".encode())
        keys.append(running.digest())
    return keys


def _running_totals(segments: list[Segment]) -> list[int]:
    totals = [0]
    for segment in segments:
        totals.append(totals[-1] + segment.tokens)
    return totals
