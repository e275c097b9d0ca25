"""The work of each state: one function for each effect of the declaration. None of them decides what happens next."""

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType

from fsm_agent.loop.effects.calling import response
from fsm_agent.loop.effects.ending import budget, hooks, output
from fsm_agent.loop.effects.preparing import context
from fsm_agent.loop.effects.repairing import backoff, compact, drain, escalation, media
from fsm_agent.loop.effects.running import stop_tools, tools
from fsm_agent.loop.visit import EffectFunction, Visit
from fsm_agent.machine import Effect

EFFECTS: Mapping[str, EffectFunction] = MappingProxyType(
    {
        Effect.CONTEXT: context,
        Effect.RESPONSE: response,
        Effect.TOOLS: tools,
        Effect.BACKOFF: backoff,
        Effect.DRAIN: drain,
        Effect.COMPACT: compact,
        Effect.MEDIA: media,
        Effect.ESCALATION: escalation,
        Effect.OUTPUT: output,
        Effect.HOOKS: hooks,
        Effect.BUDGET: budget,
    }
)
"""Every effect of the shipped declaration."""

ON_ABORT: Mapping[str, Callable[[Visit], Awaitable[None]]] = MappingProxyType({Effect.TOOLS: stop_tools})
"""What is left to do for an effect that an abort keeps from being performed at all."""
