"""How long to wait before a request is repeated. Pure: chance is handed in."""

from __future__ import annotations

import random as chance

from fsm_agent.machine.limits import LoopLimits
from fsm_agent.model.classify import Failure

__all__ = ["delay"]

# Above this the ceiling is the cap, whatever the base: 2**64 times the smallest float that a person would write.
_MOST_DOUBLINGS = 64
_SPREAD = 0.1


def delay(
    retry: int, failure: Failure | None, limits: LoopLimits, random: chance.Random, *, previous: float = 0.0
) -> float | None:
    """Seconds to wait before repetition number `retry` (0 is the first), or None: the service asks for too long a wait.

    Exponential with full jitter: drawn evenly below `min(backoff_cap, backoff_base * 2**retry)`, and with `previous`
    (the last wait of the same turn) not shorter than that, below the ceiling. A `retry-after` is the least, with up to
    a tenth added so that agents told the same do not come back at the same moment; above `limits.retry_after_cap` it
    is not shortened but refused.

    >>> delay(0, None, LoopLimits(), chance.Random(1)) < 0.5
    True
    """
    ceiling = min(limits.backoff_cap, limits.backoff_base * 2.0 ** min(max(retry, 0), _MOST_DOUBLINGS))
    fraction = random.random()
    drawn = max(ceiling * fraction, min(previous, ceiling))
    asked = failure.retry_after if failure is not None else None
    if asked is None:
        return drawn
    if asked > limits.retry_after_cap:
        return None
    return max(drawn, asked * (1 + _SPREAD * fraction))
