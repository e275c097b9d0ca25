"""python-statemachine, loading our SCXML, goes where we go."""

import random
import warnings
from functools import cache

import pytest

from fsm_agent.machine import AGENT_LOOP, Definition, Predicate, Row
from fsm_agent.verify import check
from fsm_agent.verify.bounds_given import bounds_of
from fsm_agent.verify.export import ExportError, scxml
from fsm_agent.verify.export.steps import GO, steps
from tests.verify.events import end_of, events
from tests.verify.sketch import SKETCH
from tests.verify.test_agent_loop_proof import ALL_ONE


@cache
def loaded(text: str):
    from statemachine.io import load

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return load(text, format="scxml")


class Chart:
    """A run of the SCXML document. Only the first instance of a loaded class has its data, so there is one."""

    def __init__(self, definition: Definition, limits) -> None:
        self.machine = loaded(scxml(definition, limits))()
        self.names = [variable.name for variable in steps(definition, limits).variables]
        self.start = self.configuration

    @property
    def configuration(self):
        model = self.machine.model
        return self.machine.current_state_value, tuple(getattr(model, name) for name in self.names)

    def go_to(self, configuration) -> None:
        self.machine._engine.running = True  # a final state stops it, and there is no public way back
        self.machine.current_state_value = configuration[0]
        for name, value in zip(self.names, configuration[1], strict=True):
            setattr(self.machine.model, name, value)

    def send(self, event: str) -> None:
        self.machine.send(event)


def chart_of(definition: Definition, limits=None) -> Chart:
    return _chart_of(definition, tuple(bounds_of(definition, limits).items()))


@cache
def _chart_of(definition: Definition, limits) -> Chart:
    return Chart(definition, dict(limits))


@pytest.mark.slow
def test_it_reaches_the_same_configurations_and_the_same_ends():
    chart, final = chart_of(SKETCH), {state.name for state in SKETCH.states if state.final}
    exact = check(SKETCH, exact=True)
    arcs = steps(SKETCH).arcs
    seen, level, moves = {chart.start}, [chart.start], 0
    shortest: dict[str, int] = {}
    while level:
        further: list = []
        for here in level:
            if here[0] in final:
                reason = SKETCH.reasons[here[1][chart.names.index("reason")] - 1]
                shortest.setdefault(reason, moves)
                continue
            for event in dict.fromkeys(arc.event for arc in arcs[here[0]]):
                chart.go_to(here)
                chart.send(event)
                there = chart.configuration
                if there not in seen:
                    seen.add(there)
                    (further if event == GO else level).append(there)
        level, moves = further, moves + 1
    assert len(seen) == exact.configurations
    assert shortest == {reason: len(exact.witness(reason).word) for reason in exact.reasons}


@pytest.mark.slow
@pytest.mark.parametrize("key", [row.key for row in AGENT_LOOP.rows], ids=" ".join)
def test_it_follows_the_shortest_run_through_each_row_of_the_shipped_loop(key):
    limits = ALL_ONE | {"max_turns": 4}
    chart, run = chart_of(AGENT_LOOP, limits), check_of_small_loop().rows[key]
    chart.go_to(chart.start)
    for event in events(run):
        before = chart.configuration
        chart.send(event)
        assert chart.configuration != before or event == GO
    state, values = end_of(AGENT_LOOP, limits, run)
    assert chart.configuration == (state, tuple(values[name] for name in chart.names))


@cache
def check_of_small_loop():
    return check(AGENT_LOOP, ALL_ONE | {"max_turns": 4})


@pytest.mark.slow
def test_it_agrees_on_random_runs():
    from fsm_agent.machine import Ask, Automaton

    limits, chance = bounds_of(AGENT_LOOP, ALL_ONE | {"max_turns": 4}), random.Random(7)
    chart, automaton = chart_of(AGENT_LOOP, limits), Automaton(AGENT_LOOP, limits)
    for _ in range(60):
        chart.go_to(chart.start)
        control, facts = automaton.initial, dict[str, str]()
        while not AGENT_LOOP.state(control.state).final:
            decision = automaton.decide(control, facts)
            if isinstance(decision, Ask):
                outcome = chance.choice(AGENT_LOOP.effect(decision.effect).outcomes)
                facts[decision.effect] = outcome
                chart.send(f"{decision.effect}.{outcome}")
            else:
                control = AGENT_LOOP.updated(control, decision.row)
                facts = AGENT_LOOP.inherited(decision.row.dest, facts)
                chart.send(GO)
            state, values = chart.configuration
            assert state == control.state
            assert {n: v for n, v in zip(chart.names, values, strict=True) if n in control.index} == {
                n: control[n] for n in chart.names if n in control.index
            }


def test_a_guard_of_ones_own_cannot_be_exported():
    odd = Predicate("odd", lambda control, limits: control["turn"] % 2 == 1, frozenset(["turn"]))
    machine = SKETCH.with_rows(Row("backoff", "odd", "over", when=odd, reason="completed"), before="waited")
    with pytest.raises(ExportError, match="The guard odd of the machine 'sketch' is a function of your own"):
        scxml(machine)
