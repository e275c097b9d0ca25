"""Scenarios made from the checker's witnesses: the search begins at every row, not only near the start.

A seed need not follow its witness to the letter; it is a good place from which to look further.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fsm_agent.machine import Definition
from fsm_agent.machine.guards import Increment
from fsm_agent.machine.vocabulary import Effect
from fsm_agent.testing.scenario import HookAct, Scenario, UserAct
from fsm_agent.testing.script import Item, Reply, Usage
from fsm_agent.testing.strategies.answers import PAUSED
from fsm_agent.testing.strategies.settings import IMAGE_HISTORY, LONG_HISTORY
from fsm_agent.testing.witness_script import script_of, token_budget
from fsm_agent.verify import Step, check
from fsm_agent.verify.bounds_given import bounds_of

__all__ = ["SHIPPED_EFFECTS", "seeds"]

SHIPPED_EFFECTS = frozenset(str(effect) for effect in Effect)
"""Effects that the library performs; others are a user's own."""

_FULL = Usage(input_tokens=175_000, output_tokens=500)
_HOOKS = {"pass": "pass", "block": "block", "prevent": "prevent", "aborted": "hang"}
_ABORT_AFTER = 25
"""Steps of the event loop after the beginning of an answer at which it is over, and what follows has begun."""


def seeds(definition: Definition) -> tuple[Scenario, ...]:
    """One scenario for each row that can be reached under small limits. Made once for each definition."""
    known = _MADE.get(id(definition))
    if known is None or known[0] is not definition:
        known = _MADE[id(definition)] = (definition, tuple(_made(definition)))
    return known[1]


_MADE: dict[int, tuple[Definition, tuple[Scenario, ...]]] = {}


def _made(definition: Definition) -> Iterator[Scenario]:
    small = {
        counter.limit: 1 if counter.initial == 0 else counter.initial + 3
        for counter in definition.counters
        if isinstance(counter.limit, str) and counter.limit in definition.limits.model_fields
    }
    report = check(definition, {**bounds_of(definition, None), **small}, contracts=())
    for witness in report.rows.values():
        yield _scenario(definition, witness.steps, small)


def _scenario(definition: Definition, steps: Sequence[Step], small: Mapping[str, Any]) -> Scenario:
    outcomes = [outcome for step in steps for outcome in step.outcomes]
    effects: dict[str, list[str]] = {}
    for effect, outcome in outcomes:
        effects.setdefault(effect, []).append(outcome)
    tools = effects.get("tools", [])
    return Scenario(
        _script(steps),
        stop_hooks=[HookAct(_HOOKS.get(outcome, "pass")) for outcome in effects.get("hooks", []) if outcome != "pass"],
        permissions=_one_call_each(tools, "deferred", HookAct("defer")),
        after_tool=_one_call_each(tools, "hook_stopped", HookAct("stop")),
        effects={name: effects[name] for name in effects if name not in SHIPPED_EFFECTS},
        acts=_acts(steps),
        limits=_limits(definition, steps, small),
        history=_history(effects, steps),
    )


def _script(steps: Sequence[Step]) -> list[Item]:
    """What the model says; before a context that was compacted it reports one that is full."""
    script = [PAUSED if getattr(item, "stop", None) == PAUSED.stop else item for item in script_of(steps)]
    full = {
        number
        for number, step in enumerate(step for step in steps if any(effect == "context" for effect, _ in step.outcomes))
        if ("context", "compacted") in step.outcomes or ("context", "refilled") in step.outcomes
    }
    return [
        Reply(*item.blocks, stop=item.stop, usage=_FULL) if isinstance(item, Reply) and number + 1 in full else item
        for number, item in enumerate(script)
    ]


def _one_call_each(tools: Sequence[str], outcome: str, act: HookAct) -> list[HookAct]:
    return [act if each == outcome else HookAct() for each in tools] if outcome in tools else []


def _acts(steps: Sequence[Step]) -> list[UserAct]:
    request = 0
    if ("context", "aborted") in steps[0].outcomes:
        return [UserAct("abort", 0)]
    for step in steps:
        for effect, outcome in step.outcomes:
            request += effect in {"response", "compact"}
            if outcome == "aborted":
                return [UserAct("abort", request, 4 if effect in {"response", "compact", "context"} else _ABORT_AFTER)]
    return []


def _limits(definition: Definition, steps: Sequence[Step], small: Mapping[str, Any]) -> dict[str, Any]:
    """The limits that the run comes to, and those that bring its outcomes about."""
    limits: dict[str, Any] = {name: small[name] for name in _counted(definition, steps) if name in small}
    named = {outcome for step in steps for outcome in step.outcomes}
    for outcome, settings in _BRING_ABOUT.items():
        if outcome in named:
            limits |= settings
    budget = token_budget(steps)
    if budget is not None and ("budget", "under") in named:
        limits["token_budget"] = budget
    if _compacts_at_once(steps):
        limits["context_window"] = 55_000
    return {name: value for name, value in limits.items() if name in definition.limits.model_fields}


_BRING_ABOUT: Mapping[tuple[str, str], Mapping[str, Any]] = {
    ("drain", "drained"): {"context_window": 70_000},
    ("context", "too_large"): {"context_window": 1_000, "max_output_tokens": 1_000},
    ("escalation", "at_ceiling"): {"escalated_max_output_tokens": 8_192},
    ("response", "budget_spent"): {"max_total_tokens": 1_000_000},
}


def _counted(definition: Definition, steps: Sequence[Step]) -> set[str]:
    """The limits of the counters that the run raises."""
    rows = [definition.row(step.state, step.trigger) for step in steps if step.trigger is not None]
    raised = {update.counter for row in rows for update in row.update if isinstance(update, Increment)}
    return {str(counter.limit) for counter in definition.counters if counter.name in raised}


def _compacts_at_once(steps: Sequence[Step]) -> bool:
    return bool({("context", "compacted"), ("context", "refilled")} & set(steps[0].outcomes))


def _history(effects: Mapping[str, Sequence[str]], steps: Sequence[Step]) -> Sequence[Mapping[str, Any]]:
    if "removed" in effects.get("media", ()):
        return IMAGE_HISTORY
    needed = "drained" in effects.get("drain", ()) or {"compacted", "head_too_long"} & set(effects.get("compact", ()))
    if needed or _compacts_at_once(steps):
        return LONG_HISTORY
    return ()


def fills_up(scenario: Scenario) -> bool:
    """Whether a reply reports a full context: then tools should return much, so that there is something to fold."""
    return any(getattr(item, "usage", None) == _FULL for item in scenario.script)
