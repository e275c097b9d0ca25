"""XState (version 5) JSON: data only, with one guard (`holds`) and two actions (`put`, `raise`).

Whoever loads it gives these three their meaning; `RUNTIME` is that, in ten lines of JavaScript.
"""

from __future__ import annotations

import json
from typing import Any as Json

from fsm_agent.machine import Definition
from fsm_agent.verify.bounds_given import Bounds
from fsm_agent.verify.export.steps import ALWAYS, NEVER, All, Any, Arc, Compare, Condition, steps

RUNTIME = """\
import { assign, setup } from "xstate";

const compare = { "==": (a, b) => a === b, "<": (a, b) => a < b, ">=": (a, b) => a >= b };
export const holds = (context, it) =>
  it.all ? it.all.every((part) => holds(context, part))
  : it.any ? it.any.some((part) => holds(context, part))
  : compare[it.is](context[it.variable], it.number);

export const runtime = setup({
  guards: { holds: ({ context }, it) => holds(context, it) },
  actions: {
    put: assign(({ context }, { variable, number }) => ({ ...context, [variable]: number })),
    raise: assign(({ context }, { variable, top }) => (
      { ...context, [variable]: Math.min(context[variable] + 1, top) })),
  },
});
export const machine = (json) => runtime.createMachine(json);
"""


def xstate(definition: Definition, limits: Bounds = None) -> str:
    """A machine under its limits as JSON for `createMachine` of XState, with the guards and actions of `RUNTIME`."""
    machine = steps(definition, limits)
    states: dict[str, Json] = {}
    for state in definition.states:
        if state.final:
            states[state.name] = {"type": "final"}
            continue
        on: dict[str, list[Json]] = {}
        for arc in machine.arcs[state.name]:
            if arc.condition != NEVER:
                on.setdefault(arc.event, []).append(_transition(arc))
        states[state.name] = {"on": on}
    document = {
        "id": definition.name,
        "initial": definition.initial,
        "context": {variable.name: variable.initial for variable in machine.variables},
        "meta": {"reasons": list(definition.reasons)},
        "states": states,
    }
    return json.dumps(document, indent=1) + "\n"


def _transition(arc: Arc) -> Json:
    transition: dict[str, Json] = {}
    if arc.condition != ALWAYS:
        transition["guard"] = {"type": "holds", "params": _condition(arc.condition)}
    if arc.dest is not None:
        transition["target"] = arc.dest
    actions = [
        {"type": "raise", "params": {"variable": a.variable, "top": a.top}}
        if a.raises
        else {"type": "put", "params": {"variable": a.variable, "number": a.number}}
        for a in arc.assigns
    ]
    if actions:
        transition["actions"] = actions
    if arc.trigger:
        transition["description"] = arc.trigger
    return transition


def _condition(condition: Condition) -> Json:
    match condition:
        case Compare(variable, operator, number):
            return {"variable": variable, "is": operator, "number": number}
        case All(parts):
            return {"all": [_condition(part) for part in parts]}
        case Any(parts):
            return {"any": [_condition(part) for part in parts]}
