"""What touches the world, replaceable as one object: the model, the summaries, ids, the clock, chance."""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from fsm_agent.model.transport import CallModel


def _uuid() -> str:
    return uuid.uuid4().hex


@dataclass(frozen=True, slots=True)
class Deps:
    """The dependencies of a machine. Leave one out, and the real thing is used.

    - `call_model`: request in, raw stream events out; by default the Anthropic SDK.
    - `microcompact`, `autocompact`: replace those stages of the context pipeline.
    - `uuid`: a fresh id for each run.
    - `sleep`: waits a number of seconds (backoff). `random`: draws the jitter.
    """

    call_model: CallModel | None = None
    microcompact: Callable[..., Any] | None = None
    autocompact: Callable[..., Any] | None = None
    uuid: Callable[[], str] = _uuid
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    random: random.Random = field(default_factory=random.SystemRandom)
