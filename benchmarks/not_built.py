"""Bounds of parts that are not there yet: the table says so."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.rows import Row

__all__ = ["rows"]


def rows() -> Iterator[Row]:
    yield Row("journal, an effect, synchronous FULL", "not built yet", None, 0.5, "ms")
    yield Row("message threads: a turn at 2,000 against one at 200", "not built yet", None, 1.2)
