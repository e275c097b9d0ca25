"""Rate limits per minute (R190), with the headers that report them.

Each limit is a bucket that fills continuously, as the API's does: after a full stop of a minute all of it is there
again.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import ceil

from fsm_agent.testing.rules.refusal import ApiRefusal

__all__ = ["RateLimiter", "RateLimits"]

_EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
"""What second 0 of the clock is called in the `reset` headers."""


@dataclass(frozen=True, slots=True)
class RateLimits:
    """Limits per minute; `None`: none."""

    requests: int | None = None
    input_tokens: int | None = None

    def __post_init__(self) -> None:
        for name in ("requests", "input_tokens"):
            limit = getattr(self, name)
            if limit is not None and limit < 1:
                raise ValueError(f"RateLimits({name}={limit}): give a number from 1, or None for no limit.")


class _Bucket:
    def __init__(self, name: str, words: str, size: int, now: float) -> None:
        self.name = name
        self.words = words
        self.size = size
        self.level = float(size)
        self.at = now

    def refill(self, now: float) -> None:
        self.level = min(self.size, self.level + (now - self.at) * self.size / 60)
        self.at = now

    def wait(self, amount: float) -> float:
        """Seconds until the amount is there; an amount above the size waits for a full bucket."""
        return max(0.0, (min(amount, self.size) - self.level) * 60 / self.size)


class RateLimiter:
    """Counts requests against limits. `clock` gives seconds.

    >>> limiter = RateLimiter(RateLimits(requests=1), lambda: 0.0)
    >>> limiter.admit("m", 10) is None, limiter.admit("m", 10)[1]["retry-after"]
    (True, '60')
    """

    def __init__(self, limits: RateLimits, clock: Callable[[], float]) -> None:
        self._clock = clock
        now = clock()
        self._buckets: list[_Bucket] = []
        if limits.requests is not None:
            self._buckets.append(_Bucket("requests", "requests per minute", limits.requests, now))
        if limits.input_tokens is not None:
            self._buckets.append(_Bucket("input-tokens", "input tokens per minute", limits.input_tokens, now))

    def admit(self, model: str, tokens: int) -> tuple[ApiRefusal, dict[str, str]] | None:
        """Take a request's share, or answer with the refusal and its headers (`retry-after` in whole seconds)."""
        now = self._clock()
        amounts = {"requests": 1, "input-tokens": tokens}
        for bucket in self._buckets:
            bucket.refill(now)
        for bucket in self._buckets:
            wait = bucket.wait(amounts[bucket.name])
            if wait > 0:
                headers = {"retry-after": str(ceil(wait)), "x-should-retry": "true"}
                return _refusal(bucket, model), self.headers() | headers
        for bucket in self._buckets:
            bucket.level -= amounts[bucket.name]
        return None

    def headers(self) -> dict[str, str]:
        """The `anthropic-ratelimit-*` headers for the present state."""
        headers: dict[str, str] = {}
        for bucket in self._buckets:
            full = bucket.at + (bucket.size - bucket.level) * 60 / bucket.size
            reset = (_EPOCH + timedelta(seconds=ceil(full))).strftime("%Y-%m-%dT%H:%M:%SZ")
            start = f"anthropic-ratelimit-{bucket.name}"
            headers[f"{start}-limit"] = str(bucket.size)
            headers[f"{start}-remaining"] = str(max(0, int(bucket.level)))
            headers[f"{start}-reset"] = reset
        return headers


def _refusal(bucket: _Bucket, model: str) -> ApiRefusal:
    text = (
        f"This request would exceed your organization's rate limit of {bucket.size:,} {bucket.words} (org:"
        f" 00000000-0000-0000-0000-000000000000, model: {model}). For details, refer to:"
        " https://docs.claude.com/en/api/rate-limits. You can see the response headers for current usage. Please reduce"
        " the prompt length or the maximum tokens requested, or try again later. You may also contact sales at"
        " https://www.anthropic.com/contact-sales to discuss your options for a rate limit increase."
    )
    return ApiRefusal("R190", text, 429, "rate_limit_error")
