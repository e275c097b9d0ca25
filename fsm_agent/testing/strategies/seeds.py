"""Scenarios made from the checker's witnesses: the search begins at every row, not only near the start.

A seed need not follow its witness to the letter; it is a good place from which to look further.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fsm_agent.machine import Definition, Row
from fsm_agent.machine.guards import Increment, Reset
from fsm_agent.machine.vocabulary import Effect
from fsm_agent.testing.content import tool_use
from fsm_agent.testing.events import Chunking
from fsm_agent.testing.scenario import HookAct, Scenario, ToolAct, UserAct
from fsm_agent.testing.script import ApiError, Item, Reply, Stream, When
from fsm_agent.testing.strategies.answers import PAUSED
from fsm_agent.testing.strategies.settings import IMAGE_HISTORY, LONG, LONG_HISTORY, TALK
from fsm_agent.testing.witness_script import TOOL, script_of, token_budget
from fsm_agent.verify import Step, check
from fsm_agent.verify.bounds_given import bounds_of

__all__ = ["SHIPPED_EFFECTS", "beginnings", "seeds"]

SHIPPED_EFFECTS = frozenset(str(effect) for effect in Effect)
"""Effects that the library performs; others are a user's own."""

_HOOKS = {"pass": "pass", "block": "block", "prevent": "prevent", "aborted": "hang"}
_SOON = 1.0
"""Seconds after the beginning of an answer at which it is over, and what follows takes long."""
_TURNS = (2, 3)
"""Turns that the witnesses have beyond the first: the fewer, the shorter they are."""


def seeds(definition: Definition) -> tuple[Scenario, ...]:
    """One scenario for each row that can be reached under small limits. Made once for each definition.

    Their calls are of a tool named `act`.
    """
    return tuple(seed.scenario for seed in _seeds(definition))


def beginnings(definition: Definition) -> tuple[tuple[Scenario, ...], tuple[Scenario, ...]]:
    """The seeds that lead to every row, without those that others go through; and longer ones, which first go through
    the rows of a seed that does not end the run.
    """
    made = _seeds(definition)
    ways = [seed for seed in made if not any(seed.rows < other.rows for other in made)]
    links = [seed for seed in made if seed.may_be_first]
    return tuple(way.scenario for way in ways), tuple(_after(link, way.scenario) for way in ways for link in links)


@dataclass(frozen=True, slots=True)
class _Seed:
    rows: frozenset[tuple[str, str]]
    raised: Mapping[str, int]
    """How often each limit is come nearer to, unless it is set back after that."""
    ends: bool
    scenario: Scenario

    @property
    def may_be_first(self) -> bool:
        """Whether the run goes on, in a world like any other."""
        return not self.ends and all(getattr(self.scenario, name) == getattr(_PLAIN, name) for name in _WORLD)


_PLAIN = Scenario()
_WORLD = ("prompt", "tools", "permissions", "before_tool", "after_tool", "system", "acts", "history", "chunking")


def _seeds(definition: Definition) -> tuple[_Seed, ...]:
    known = _MADE.get(id(definition))
    if known is None or known[0] is not definition:
        known = _MADE[id(definition)] = (definition, tuple(_made(definition)))
    return known[1]


_MADE: dict[int, tuple[Definition, tuple[_Seed, ...]]] = {}


def _made(definition: Definition) -> Iterator[_Seed]:
    found: dict[Any, _Seed] = {}
    for turns in _TURNS:
        small = {
            counter.limit: 1 if counter.initial == 0 else counter.initial + turns
            for counter in definition.counters
            if isinstance(counter.limit, str) and counter.limit in definition.limits.model_fields
        }
        report = check(definition, {**bounds_of(definition, None), **small}, contracts=())
        for row, witness in report.rows.items():
            if row not in found:
                found[row] = _seed(definition, witness.steps, small)
        if len(found) == len(definition.rows):
            break
    yield from found.values()


def _seed(definition: Definition, steps: Sequence[Step], small: Mapping[str, Any]) -> _Seed:
    rows = _rows(definition, steps)
    raised: dict[str, int] = {}
    for row in rows:
        for update in row.update:
            if isinstance(update, Increment):
                raised[update.counter] = raised.get(update.counter, 0) + 1
            elif isinstance(update, Reset):
                raised.pop(update.name, None)
    limits = {str(each.limit): raised[each.name] for each in definition.counters if each.name in raised}
    final = {str(state.name) for state in definition.states if state.final}
    return _Seed(
        frozenset((str(row.source), str(row.trigger)) for row in rows),
        limits,
        bool(rows) and str(rows[-1].dest) in final,
        _scenario(definition, steps, small),
    )


def _rows(definition: Definition, steps: Sequence[Step]) -> list[Row]:
    return [definition.row(step.state, step.trigger) for step in steps if step.trigger is not None]


def _after(link: _Seed, way: Scenario) -> Scenario:
    """The way of the one after that of the other, in the world of the one."""
    first = link.scenario
    calls = sum(isinstance(item, Reply) and any(b.get("name") == TOOL for b in item.blocks) for item in first.script)
    limits = {**first.limits, **way.limits}
    for name, times in link.raised.items():
        if name in way.limits:
            limits[name] += times
    return Scenario(
        [*first.script, *way.script],
        prompt=way.prompt,
        tools=way.tools,
        stop_hooks=[*first.stop_hooks, *way.stop_hooks],
        permissions=[*[HookAct()] * calls, *way.permissions] if way.permissions else (),
        after_tool=[*[HookAct()] * calls, *way.after_tool] if way.after_tool else (),
        system=way.system,
        effects={
            name: [*first.effects.get(name, ()), *way.effects.get(name, ())]
            for name in dict.fromkeys((*first.effects, *way.effects))
        },
        acts=[replace(act, request=act.request + len(first.script)) if act.request else act for act in way.acts],
        limits=limits,
        history=way.history,
        chunking=way.chunking,
    )


def _scenario(definition: Definition, steps: Sequence[Step], small: Mapping[str, Any]) -> Scenario:
    outcomes = [outcome for step in steps for outcome in step.outcomes]
    effects: dict[str, list[str]] = {}
    for effect, outcome in outcomes:
        effects.setdefault(effect, []).append(outcome)
    tools = effects.get("tools", [])
    filled = _filled(steps)
    contexts = set(effects.get("context", ()))
    return Scenario(
        _script(steps, filled),
        prompt=LONG if "too_large" in contexts else "Go.",
        tools={TOOL: [ToolAct(hangs=True)]} if "aborted" in tools else {},
        stop_hooks=[HookAct(_HOOKS.get(outcome, "pass")) for outcome in effects.get("hooks", []) if outcome != "pass"],
        permissions=_one_call_each(tools, "deferred", HookAct("defer")),
        after_tool=_one_call_each(tools, "hook_stopped", HookAct("stop")),
        system=[HookAct("raise")] if "failed" in contexts else (),
        effects={name: effects[name] for name in effects if name not in SHIPPED_EFFECTS},
        acts=_acts(steps),
        limits=_limits(definition, steps, small, more_turns=-1 in filled),
        history=_history(effects, contexts),
        chunking=Chunking(text=None) if filled else None,
    )


def _script(steps: Sequence[Step], filled: set[int]) -> list[Item]:
    """What the model says. Before a context that is full once more it says much.

    What is no summary is kept for turns, where summaries are asked for: nothing of it is to be served as one.
    """
    script = [PAUSED if getattr(item, "stop", None) == PAUSED.stop else item for item in script_of(steps)]
    script = [_much(number, item) if number in filled else item for number, item in enumerate(script)]
    if -1 in filled:
        script.insert(0, _much(-1, Reply(tool_use(TOOL))))
    summarised = any(
        effect == "compact" or outcome in _COMPACTED for step in steps for effect, outcome in step.outcomes
    )
    return [_for_turns(item) for item in script] if summarised else script


_COMPACTED = {"compacted", "refilled"}


def _filled(steps: Sequence[Step]) -> set[int]:
    """The answers, by their number in the script, that fill the context once more; -1 is one before all of them."""
    filled: set[int] = set()
    number, last = 0, -1
    for step in steps:
        for effect, outcome in step.outcomes:
            if (effect, outcome) == ("context", "refilled"):
                filled.add(last)
            elif effect == "response":
                number, last = number + 1, number
            elif effect == "compact":
                number += 1
    return filled


def _much(number: int, item: Item) -> Item:
    """The answer with so many words that they fill a context that was just compacted; each time others."""
    if not isinstance(item, Reply):
        return item
    return Reply(f"{number} {LONG * 16}", *item.blocks, stop=item.stop)


def _for_turns(item: Item) -> Item:
    turn = When(kind="turn")
    match item:
        case Reply(when=None):
            return Reply(*item.blocks, stop=item.stop, usage=item.usage, when=turn)
        case Stream(when=None):
            return Stream(item.steps, usage=item.usage, when=turn)
        case ApiError(when=None):
            return ApiError(item.status, item.type, item.message, headers=item.headers, when=turn)
        case _:
            return item


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
                late = effect != "context"
                return [UserAct("abort", request, seconds=_SOON) if late else UserAct("abort", request, 4)]
    return []


def _limits(
    definition: Definition, steps: Sequence[Step], small: Mapping[str, Any], *, more_turns: bool
) -> dict[str, Any]:
    """The limits that the run comes to, and those that bring its outcomes about."""
    limits: dict[str, Any] = {name: small[name] for name in _counted(definition, steps) if name in small}
    if more_turns and "max_turns" in limits:
        limits["max_turns"] += 1
    named = [outcome for step in steps for outcome in step.outcomes]
    for outcome in named:
        limits |= _BRING_ABOUT.get(outcome, {})
    if {("response", "cut"), ("backoff", "too_long")} <= set(named):
        limits["max_stream_resumes"] = 0  # a stream that was lost cannot say how long to wait
    budget = token_budget(steps)
    if budget is not None and ("budget", "under") in named:
        limits["token_budget"] = budget
    return {name: value for name, value in limits.items() if name in definition.limits.model_fields}


_BRING_ABOUT: Mapping[tuple[str, str], Mapping[str, Any]] = {
    ("drain", "drained"): {"context_window": 70_000},
    ("context", "compacted"): {"context_window": 50_000},
    ("context", "refilled"): {"context_window": 50_000},
    ("context", "too_large"): {"context_window": 1_000, "max_output_tokens": 1_000},
    ("escalation", "at_ceiling"): {"escalated_max_output_tokens": 8_192},
    ("response", "budget_spent"): {"max_total_tokens": 1_000_000},
}


def _counted(definition: Definition, steps: Sequence[Step]) -> set[str]:
    """The limits of the counters that the run raises."""
    updates = [update for row in _rows(definition, steps) for update in row.update]
    raised = {update.counter for update in updates if isinstance(update, Increment)}
    return {str(counter.limit) for counter in definition.counters if counter.name in raised}


def _history(effects: Mapping[str, Sequence[str]], contexts: set[str]) -> Sequence[Mapping[str, Any]]:
    if contexts & _COMPACTED:
        return TALK
    if "removed" in effects.get("media", ()):
        return IMAGE_HISTORY
    needed = "drained" in effects.get("drain", ()) or {"compacted", "head_too_long"} & set(effects.get("compact", ()))
    return LONG_HISTORY if needed else ()
