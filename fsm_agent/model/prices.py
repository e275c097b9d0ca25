"""What tokens cost."""

from __future__ import annotations

import math
from dataclasses import dataclass

from fsm_agent.model.usage import Usage

__all__ = ["Price", "cost"]

# Ratios of the price of input, from the API's published prices: a cache write of five minutes, a cache read.
_CACHE_WRITE = 1.25
_CACHE_READ = 0.1
_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens. What the cache costs follows from `input`, if it is left out.

    >>> Price(input=3.0, output=15.0).cache_write
    3.75
    """

    input: float
    output: float
    cache_write: float | None = None
    """Writing a prefix to the cache; by default 1.25 times `input`."""
    cache_read: float | None = None
    """Reading it again; by default a tenth of `input`."""

    def __post_init__(self) -> None:
        if self.cache_write is None:
            object.__setattr__(self, "cache_write", self.input * _CACHE_WRITE)
        if self.cache_read is None:
            object.__setattr__(self, "cache_read", self.input * _CACHE_READ)
        for name in ("input", "output", "cache_write", "cache_read"):
            price = getattr(self, name)
            if not (math.isfinite(price) and price >= 0):
                raise ValueError(f"Price({name}={price!r}): give US dollars per million tokens, from 0.")


def cost(usage: Usage, price: Price) -> float:
    """US dollars that this usage costs. Fees of server tools are not part of it.

    >>> cost(Usage(input_tokens=1_000_000, output_tokens=100_000), Price(input=3.0, output=15.0))
    4.5
    """
    cache_write = price.cache_write or 0.0
    cache_read = price.cache_read or 0.0
    return (
        usage.input_tokens * price.input
        + usage.output_tokens * price.output
        + usage.cache_creation_input_tokens * cache_write
        + usage.cache_read_input_tokens * cache_read
    ) / _MILLION
