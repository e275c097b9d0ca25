"""A row of the table, and the table as text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

__all__ = ["HEAD", "Row", "lines"]

_WIDTHS = (40, 46, 10, 10)


@dataclass(frozen=True, slots=True)
class Row:
    """One thing that was measured: `value` against `bound`, both in `unit`.

    Without a bound it is there to be known. Without a value it could not be measured, and `figures` says why.
    """

    what: str
    figures: str
    """The measured figures that the value comes from, with their units."""
    value: float | None = None
    bound: float | None = None
    unit: str = ""
    """`""` for a ratio."""
    kind: Literal["at most", "at least"] = "at most"

    @property
    def holds(self) -> bool | None:
        """Whether the bound holds; None where there is nothing to compare."""
        if self.value is None or self.bound is None:
            return None
        return self.value <= self.bound if self.kind == "at most" else self.value >= self.bound

    @property
    def verdict(self) -> str:
        return {True: "ok", False: "NOT", None: "-"}[self.holds]


def lines(row: Row) -> Iterator[str]:
    """The row as lines of text; long cells are wrapped."""
    sign = {"at most": "<=", "at least": ">="}[row.kind]
    value = "" if row.value is None else _number(row.value, row.unit)
    bound = "" if row.bound is None else f"{sign} {_number(row.bound, row.unit)}"
    return _laid_out(row.what, row.figures, value, bound, row.verdict)


def _number(value: float, unit: str) -> str:
    digits = 0 if abs(value) >= 100 or isinstance(value, int) else 2 if abs(value) < 10 else 1
    return f"{value:,.{digits}f}{' ' if unit else ''}{unit}"


def _laid_out(*cells: str) -> Iterator[str]:
    wrapped = [textwrap.wrap(cell, width) or [""] for cell, width in zip(cells, (*_WIDTHS, 6), strict=True)]
    for line in range(max(map(len, wrapped))):
        texts = [cell[line] if line < len(cell) else "" for cell in wrapped]
        yield "  ".join(f"{text:<{width}}" for text, width in zip(texts, (*_WIDTHS, 0), strict=True)).rstrip()


HEAD = "\n".join(_laid_out("what", "measured", "value", "bound", "holds")) + "\n" + "-" * (sum(_WIDTHS) + 13)
