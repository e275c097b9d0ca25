"""The control record: the state and the few counters and flags that the machine decides on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Control:
    """Where a run is and what it has counted. Immutable; nothing else is read by a guard.

    `control["turn"]` reads a counter (an `int`) or a flag (0 or 1).
    """

    state: str
    values: tuple[int, ...]
    index: Mapping[str, int] = field(compare=False, repr=False)

    def __getitem__(self, name: str) -> int:
        return self.values[self.index[name]]

    def __iter__(self) -> Iterator[str]:
        return iter(self.index)

    def items(self) -> Iterator[tuple[str, int]]:
        """Every counter and flag with its value, in the order of their declaration."""
        return zip(self.index, self.values, strict=True)

    def as_dict(self) -> dict[str, int]:
        return dict(self.items())

    def __str__(self) -> str:
        counted = ", ".join(f"{name}={value}" for name, value in self.items() if value)
        return f"{self.state}({counted})"
