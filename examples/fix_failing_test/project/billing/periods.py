"""Spans of days. Both ends belong to a span, as on a printed invoice."""

from calendar import monthrange
from dataclasses import dataclass
from datetime import date


@dataclass(frozen=True)
class Period:
    """From the first to the last day, both included."""

    first: date
    last: date

    def __post_init__(self) -> None:
        if self.last < self.first:
            raise ValueError(f"A period ends on or after its first day; got {self.first} to {self.last}.")

    @property
    def days(self) -> int:
        return (self.last - self.first).days

    def overlap(self, other: "Period") -> "Period | None":
        """The days that are in both periods, or None if there are none."""
        first = max(self.first, other.first)
        last = min(self.last, other.last)
        return Period(first, last) if first <= last else None


def month(year: int, number: int) -> Period:
    """The whole calendar month; January is 1."""
    return Period(date(year, number, 1), date(year, number, monthrange(year, number)[1]))
