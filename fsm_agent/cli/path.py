"""The path of a run through the machine, told shortly: repeated parts once, with their number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

LONGEST_PART: Final = 24
"""Triggers of the longest repeated part that is looked for."""


def folded(trace: Sequence[str]) -> list[tuple[int, tuple[str, ...]]]:
    """The trace as parts with the number of times that each is repeated in a row.

    >>> folded(["ready", "tools", "next", "ready", "tools", "next", "ready", "end"])
    [(2, ('ready', 'tools', 'next')), (1, ('ready', 'end'))]
    """
    parts: list[tuple[int, tuple[str, ...]]] = []
    place = 0
    while place < len(trace):
        length, times = _longest_repetition(trace, place)
        part = tuple(trace[place : place + length])
        if times == 1 and parts and parts[-1][0] == 1:
            parts[-1] = (1, (*parts[-1][1], *part))
        else:
            parts.append((times, part))
        place += length * times
    return parts


def _longest_repetition(trace: Sequence[str], place: int) -> tuple[int, int]:
    """Length and times of the part that, repeated from here, covers most; (1, 1) if nothing is repeated."""
    best = (1, 1)
    for length in range(1, min(LONGEST_PART, (len(trace) - place) // 2) + 1):
        part = trace[place : place + length]
        times = 1
        while trace[place + length * times : place + length * (times + 1)] == part:
            times += 1
        if times > 1 and length * times > best[0] * best[1]:
            best = (length, times)
    return best


def path_text(trace: Sequence[str], arrow: str = " \N{RIGHTWARDS ARROW} ") -> str:
    """The folded trace in one line.

    >>> path_text(["ready", "tools", "next", "ready", "tools", "next", "ready", "end"], " > ")
    '2 x (ready > tools > next) > ready > end'
    """
    parts = [
        arrow.join(part) if times == 1 else f"{times} x {part[0] if len(part) == 1 else f'({arrow.join(part)})'}"
        for times, part in folded(trace)
    ]
    return arrow.join(parts)
