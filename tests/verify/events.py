"""Runs in the words of the exports: `effect.outcome` and `go`."""

from fsm_agent.machine import Definition, Limits
from fsm_agent.verify import Witness, replay
from fsm_agent.verify.export.steps import outcome_variable, steps


def events(run: Witness) -> list[str]:
    word = []
    for step in run.steps:
        word += [f"{effect}.{outcome}" for effect, outcome in step.outcomes]
        word += ["go"] if step.trigger else []
    return word


def end_of(definition: Definition, limits: Limits, run: Witness):
    """The state and the exported variables after a run, by the real `decide`."""
    control = replay(definition, limits, run.steps)[-1]
    values = {}
    for variable in steps(definition, limits).variables:
        if variable.name == "reason":
            values["reason"] = definition.reasons.index(run.reason) + 1 if run.reason else 0
        elif variable.name in control.index:
            values[variable.name] = min(control[variable.name], variable.top)
    facts: dict[str, str] = {}
    for step in run.steps:
        facts = facts | dict(step.outcomes)
        if step.dest is not None:
            facts = definition.inherited(step.dest, facts)
    for effect in definition.effects:
        known = facts.get(effect.name)
        values[outcome_variable(effect.name)] = effect.outcomes.index(known) + 1 if known else 0
    return control.state, values
