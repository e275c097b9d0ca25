"""Durations and token counts as a person reads them."""

from __future__ import annotations


def duration(seconds: float) -> str:
    """
    >>> [duration(s) for s in (0.0042, 0.23, 2.06, 64.9, 3_725)]
    ['4 ms', '230 ms', '2.1 s', '1:04', '1:02:05']
    """
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    return clock(seconds)


def clock(seconds: float) -> str:
    """
    >>> clock(7), clock(3_725)
    ('0:07', '1:02:05')
    """
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def short_count(count: int) -> str:
    """
    >>> [short_count(n) for n in (0, 999, 1_000, 12_345, 2_500_000)]
    ['0', '999', '1.0k', '12.3k', '2.5M']
    """
    if count < 1_000:
        return str(count)
    return f"{count / 1_000:.1f}k" if count < 999_950 else f"{count / 1_000_000:.1f}M"
