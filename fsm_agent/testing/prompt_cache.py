"""Prompt-cache accounting as the API does it, with an estimate of tokens.

A prompt is a sequence of segments (tools, system, messages). At each cache mark the prefix that ends there is kept for
the mark's time to live, provided that it has the model's minimum size. A later request reads the longest kept prefix
that ends at one of its marks or within the 20 segments before one (the API's look-back); the rest up to its last mark
is written. Reading renews the time to live. A change anywhere in a prefix makes it another prefix.
"""

from collections.abc import Callable
from dataclasses import dataclass

from fsm_agent.testing.prompt import Mark, Prompt
from fsm_agent.testing.shapes import JsonObject

__all__ = ["LOOK_BACK", "CacheUsage", "PromptCache"]

LOOK_BACK = 20
"""Segments before a mark that are searched for a kept prefix (docs: prompt caching)."""
_SECONDS = {"5m": 300.0, "1h": 3600.0}
_SWEEP_AT = 10_000
"""Kept prefixes after which those that have expired are swept out."""


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


class PromptCache:
    """The prefixes that one server keeps. `clock` gives seconds.

    >>> cache = PromptCache(lambda: 0.0)
    >>> body = {"model": "m", "system": "x" * 8000, "cache_control": {"type": "ephemeral"},
    ...         "messages": [{"role": "user", "content": "hi"}]}
    >>> cache.account(body, Prompt(body), 1024).read_tokens, cache.account(body, Prompt(body), 1024).read_tokens
    (0, 2014)
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._until: dict[bytes, tuple[float, str]] = {}
        self._sweep_at = _SWEEP_AT

    def account(self, body: JsonObject, prompt: Prompt, minimum: int) -> CacheUsage:
        """Read and write the cache for a request; `minimum` is the model's smallest cacheable prefix in tokens."""
        marks = prompt.marks(body)
        if not marks:
            return CacheUsage(prompt.tokens)
        read = self._longest_kept(marks, prompt.keys)
        written = self._write(marks, prompt, read, minimum)
        read_tokens = prompt.totals[read]
        rest = prompt.tokens - read_tokens - sum(written.values())
        return CacheUsage(rest, read_tokens, written["5m"], written["1h"])

    def _longest_kept(self, marks: list[Mark], keys: list[bytes]) -> int:
        now = self._clock()
        candidates = {at for mark in marks for at in range(max(1, mark.position - LOOK_BACK), mark.position + 1)}
        for position in sorted(candidates, reverse=True):
            until, ttl = self._until.get(keys[position], (now, ""))
            if until > now:
                self._until[keys[position]] = (now + _SECONDS[ttl], ttl)
                return position
        return 0

    def _write(self, marks: list[Mark], prompt: Prompt, read: int, minimum: int) -> dict[str, int]:
        now = self._clock()
        written = {"5m": 0, "1h": 0}
        done = prompt.totals[read]
        for mark in sorted(marks, key=lambda mark: mark.position):
            size = prompt.totals[mark.position]
            if mark.position > read and size >= minimum:
                written[mark.ttl] += size - done
                done = size
                self._until[prompt.keys[mark.position]] = (now + _SECONDS[mark.ttl], mark.ttl)
        if len(self._until) > self._sweep_at:
            self._until = {key: kept for key, kept in self._until.items() if kept[0] > now}
            self._sweep_at = max(_SWEEP_AT, 2 * len(self._until))
        return written
