"""Whether what a run did is what the machine says: the first step of its trace that no row explains.

A trace is a sequence of steps: the `transition` events of a run (as objects or as dicts), lines of JSON with such
events or with log records, or only the names of the triggers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from fsm_agent.machine import Ask, Automaton, Control, Definition, HoleError, Row
from fsm_agent.verify.bounds_given import Bounds, bounds_of

Record: TypeAlias = Mapping[str, Any] | str | object
"""A step: a trigger's name, a mapping with at least `trigger`, or an object with such attributes."""

KEYS = ("source", "trigger", "dest", "facts", "control", "reason")
ROW = re.compile(r"(?P<source>\S+) --(?P<trigger>\S+)--> (?P<dest>[^\s:]+)(?:: (?P<reason>\S+))?")


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first step that no row explains."""

    step: int
    """Its number in the trace, from 1."""
    trigger: str
    before: tuple[Control, ...]
    """The control records that were possible before it: one, unless outcomes are missing from the trace."""
    why: str

    def __str__(self) -> str:
        where = " or ".join(map(str, self.before))
        return f"Step {self.step}, {self.trigger!r}, does not follow from {where}: {self.why}"


@dataclass(frozen=True, slots=True)
class _Place:
    control: Control
    facts: tuple[tuple[str, str], ...]


def conform(definition: Definition, trace: Iterable[Record], limits: Bounds = None) -> Divergence | None:
    """Follow a trace by the rows of a definition; None if every step is explained.

    A step may leave out what is not known (outcomes, control); then everything is possible that fits. A trace need not
    have come to an end.

    >>> from fsm_agent.machine import AGENT_LOOP
    >>> conform(AGENT_LOOP, ["context_ready", "response_ended", "complete"])
    >>> print(conform(AGENT_LOOP, ["context_ready", "tools_requested", "complete"]))
    Step 3, 'complete', does not follow from executing_tools(turn=1): the state has the triggers abort, hook_stop, \
defer, turn_limit, next_turn.
    """
    bounds = bounds_of(definition, limits)
    automaton = Automaton(definition, bounds)
    places = {_Place(automaton.initial, ())}
    for number, record in enumerate(trace, 1):
        step = _step(record)
        after: set[_Place] = set()
        reasons: list[str] = []
        for place in places:
            for row, facts, control in _moves(automaton, place, step):
                fault = _fault(step, row, control)
                if fault is None:
                    after.add(_Place(control, tuple(definition.inherited(row.dest, facts).items())))
                else:
                    reasons.append(fault)
        if not after:
            before = tuple(sorted({place.control for place in places}, key=str))
            why = reasons[0] if reasons else _no_row(automaton, before, step)
            return Divergence(number, str(step.get("trigger")), before, why)
        places = after
    return None


def records(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    """The transitions in lines of JSON: events of a run, or log records of it (flat, or with the fields under `fsm`).

    Lines that are no JSON object, and objects that are no transition, are passed over.
    """
    for line in lines:
        try:
            found: object = json.loads(line)
        except ValueError:
            continue
        if isinstance(found, dict):
            entry = cast("dict[str, Any]", found)
            if "transition" in (entry.get("type"), entry.get("event"), entry.get("message"), entry.get("msg")):
                yield {**entry, **entry["fsm"]} if isinstance(entry.get("fsm"), dict) else entry


def _step(record: Record) -> dict[str, Any]:
    if isinstance(record, str):
        return {"trigger": record}
    if isinstance(record, Mapping):
        given = cast("Mapping[str, Any]", record)
        step = {key: given[key] for key in KEYS if key in given}
        named = ROW.fullmatch(str(given.get("row", "")))
        if named is not None:
            step = {**named.groupdict(), **step}
        return step
    return {key: getattr(record, key) for key in KEYS if hasattr(record, key)}


def _moves(
    automaton: Automaton, place: _Place, step: Mapping[str, Any]
) -> Iterator[tuple[Row, dict[str, str], Control]]:
    """The rows with the trigger of the step that may fire here, by outcomes that the step allows."""
    told = cast("Mapping[str, str] | None", step.get("facts"))
    waiting = [dict(place.facts)]
    while waiting:
        facts = waiting.pop()
        try:
            decision = automaton.decide(place.control, facts)
        except HoleError:
            continue
        if isinstance(decision, Ask):
            outcomes = automaton.definition.effect(decision.effect).outcomes
            if told is not None:
                outcomes = tuple(o for o in outcomes if told.get(decision.effect) == o)
            waiting += [{**facts, decision.effect: outcome} for outcome in outcomes]
        elif decision.row.trigger == step.get("trigger") and (told is None or dict(told) == facts):
            yield decision.row, facts, automaton.definition.updated(place.control, decision.row)


def _fault(step: Mapping[str, Any], row: Row, after: Control) -> str | None:
    """What the step says and the row does not."""
    for key in ("source", "dest", "reason"):
        if key in step and step[key] != getattr(row, key):
            return f"the trace says {key} {step[key]!r}, and the row is «{row}»."
    for name, value in cast("Mapping[str, int]", step.get("control") or {}).items():
        if name in after.index and after[name] != value:
            return f"the trace says {name} = {value} after it, and by the row it is {after[name]}."
    return None


def _no_row(automaton: Automaton, before: tuple[Control, ...], step: Mapping[str, Any]) -> str:
    rows = [row for control in before for row in automaton.definition.rows_from(control.state)]
    triggers = tuple(dict.fromkeys(row.trigger for row in rows))
    if step.get("trigger") not in triggers:
        return f"the state has the triggers {', '.join(triggers) or 'none: it is final'}."
    told = step.get("facts")
    if told is None:
        return "its guards, or the rows above it, do not let it fire there."
    known = ", ".join(f"{effect}: {outcome}" for effect, outcome in cast("Mapping[str, str]", told).items())
    fired = _would_fire(automaton, before[0], cast("Mapping[str, str]", told))
    return f"with {known or 'no outcome'}, {fired}."


def _would_fire(automaton: Automaton, control: Control, told: Mapping[str, str]) -> str:
    try:
        decision = automaton.decide(control, told)
    except HoleError:
        return "no row fires"
    if isinstance(decision, Ask):
        return f"the effect {decision.effect!r} is asked for first"
    return f"the row «{decision.row}» fires" if decision.row.trigger else "nothing fires"
