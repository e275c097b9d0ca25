"""What the headers of an error say about a repetition."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

__all__ = ["retry_after", "should_retry"]


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds from `retry-after-ms` or `retry-after` (seconds or an HTTP date); None if absent, invalid or negative.

    A date is measured against the answer's own `date` header where there is one, so that a wrong clock here does not
    matter. Keys are lower case, or the mapping ignores case.

    >>> retry_after({"retry-after-ms": "1500"}), retry_after({"retry-after": "abc"}), retry_after({"retry-after": "-1"})
    (1.5, None, None)
    """
    milliseconds = _seconds(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after")
    seconds = _seconds(value)
    return _until(value, headers.get("date")) if seconds is None else seconds


def should_retry(headers: Mapping[str, str]) -> bool | None:
    """What `x-should-retry` says, or None."""
    return {"true": True, "false": False}.get(str(headers.get("x-should-retry")).lower())


def _seconds(value: str | None) -> float | None:
    try:
        number = float(value or "")
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _until(value: str | None, date: str | None) -> float | None:
    end = _moment(value)
    if end is None:
        return None
    start = _moment(date)
    seconds = end - (time.time() if start is None else start)
    return seconds if seconds >= 0 else None


def _moment(value: str | None) -> float | None:
    try:
        moment: datetime = parsedate_to_datetime(value or "")
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None
