"""A run as a program that anyone can paste and execute."""

from __future__ import annotations

import sys

from fsm_agent.machine import Definition, Limits
from fsm_agent.verify.bounds_given import unbounded
from fsm_agent.verify.limits_at_edge import names_of_limits
from fsm_agent.verify.witness import Lasso, Step, Witness

FOLLOW = '''

def follow(control, facts, visits):
    """Give each effect the outcome that is written down, and see the row fire."""
    for outcomes, trigger in visits:
        for effect, outcome in outcomes:
            assert automaton.decide(control, facts) == Ask(effect), (control, facts)
            facts = {**facts, effect: outcome}
        if trigger is not None:
            decision = automaton.decide(control, facts)
            assert isinstance(decision, Fire), decision
            assert decision.row.trigger == trigger, decision
            control = definition.updated(control, decision.row)
            facts = definition.inherited(control.state, facts)
    return control, facts

'''


def origin(definition: Definition) -> str | None:
    """Where a definition can be imported from, as `module:name`, if a module has it."""
    for module_name, module in sorted(sys.modules.items(), key=lambda item: item[0].count(".")):
        if module_name != "__main__":
            for name, value in list(vars(module).items()) if hasattr(module, "__dict__") else ():
                if value is definition and name.isidentifier():
                    return f"{module_name}:{name}"
    return None


def program(definition: Definition, limits: Limits, run: Witness | Lasso) -> str:
    """A program that follows a run with the real `decide`. A lasso is gone round a thousand times."""
    place = origin(definition)
    imported = (
        f"from {place.partition(':')[0]} import {place.partition(':')[2]} as definition\n"
        if place is not None
        else f"definition = ...  # the machine {definition.name!r} that was checked\n"
    )
    bounds = {name: limits[name] for name in (*names_of_limits(definition), *unbounded(definition, limits))}
    head = (
        f"from fsm_agent.machine import Ask, Automaton, Fire\n{imported}\nautomaton = Automaton(definition, {bounds})\n"
    )
    if isinstance(run, Witness):
        last = run.steps[-1].trigger if run.steps else ""
        body = (
            f"run = {_visits(run.steps)}\n"
            "control, facts = follow(automaton.initial, {}, run)\nprint(control, facts)\n"
            + ("automaton.decide(control, facts)  # raises HoleError\n" if last is None else "")
        )
    else:
        body = (
            f"stem = {_visits(run.stem)}\nloop = {_visits(run.loop)}\n"
            "control, facts = follow(automaton.initial, {}, stem)\n"
            "for _ in range(1_000):\n    control, facts = follow(control, facts, loop)\n"
            'print("still running:", control)\n'
        )
    return head + FOLLOW + body


def _visits(steps: tuple[Step, ...]) -> str:
    lines = "".join(f"    ({list(step.outcomes)}, {step.trigger!r}),\n" for step in steps)
    return f"[\n{lines}]"
