"""The compositional way, the exact way and brute force tell the same about machines that nobody designed."""

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from fsm_agent.machine import Definition
from fsm_agent.verify import Report, check
from fsm_agent.verify.bounds_given import bounds_of
from fsm_agent.verify.configurations import Configurations
from fsm_agent.verify.decisions import Decisions
from fsm_agent.verify.explore import cycle, explore, longest
from fsm_agent.verify.layout import Layout
from fsm_agent.verify.system import System
from tests.verify.brute_force import brute_force
from tests.verify.random_tables import definitions

SLOW = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
MANY = 30_000
"""Configurations after which a machine is given up: one with a counter that nothing bounds would have any number."""
pytestmark = pytest.mark.slow


def explored(definition: Definition):
    limits = bounds_of(definition, None)
    return explore(Configurations(System(Decisions(definition, limits)), Layout(definition, limits)))


def facts_of(report: Report):
    return {
        "rows": {key: len(run.word) for key, run in report.rows.items()},
        "reasons": {reason: run and len(run.word) for reason, run in report.reasons.items()},
        "holes": {(hole.state, frozenset(hole.facts)) for hole in report.holes},
        "dead": {dead.row.key for dead in report.dead_rows},
        "off": set(report.switched_off),
        "ends": not report.cycles,
        "certificate": report.certificate,
        "within limits": report.contracts[0].holds,
        "problems": report.problems,
    }


@SLOW
@given(definitions(bounded=True, predicates=True))
def test_the_exact_way_finds_what_brute_force_finds(definition: Definition):
    rival = brute_force(definition, bounds_of(definition, None))
    assume(rival is not None)
    assert rival is not None
    found = explored(definition)
    assert {key: len(found.witness(at, fire=True).word) for key, at in found.fired.items()} == rival.rows
    assert {reason: rival.rows[key] for reason, key in found.by_reason().items()} == rival.reasons
    assert bool(found.holes) == bool(rival.holes)
    assert (cycle(found) is not None) == rival.has_cycle()


@SLOW
@given(definitions(predicates=True))
def test_both_ways_give_the_same_verdicts(definition: Definition):
    exact = check(definition, exact=True, state_cap=MANY)
    assume(not exact.problems)
    assert facts_of(check(definition)) == facts_of(exact)


@SLOW
@given(definitions(bounded=True))
def test_both_ways_agree_where_counters_have_many_values(definition: Definition):
    limits = {"zero": 0, "one": 11, "two": 2, "three": 17}
    exact = check(definition, limits, exact=True, state_cap=MANY)
    assume(not exact.problems)
    compositional = check(definition, limits)
    assume(all("shortest" not in note for note in compositional.notes))
    assert facts_of(compositional) == facts_of(exact)


@SLOW
@given(definitions())
def test_a_complete_certificate_means_that_no_run_is_endless(definition: Definition):
    report = check(definition)
    if report.certificate.complete:
        rival = brute_force(definition, bounds_of(definition, None))
        assume(rival is not None)
        assert rival is not None
        assert not rival.has_cycle()


@SLOW
@given(definitions(bounded=True), st.sampled_from([None, "n0", "n1"]))
def test_no_run_exceeds_the_worst_case(definition: Definition, turn: str | None):
    assume(turn is None or turn in definition.initial_control().index)
    report = check(definition, turn=turn)
    assume(report.requests_per_run is not None)
    exact = longest(explored(definition), turn)
    assert exact is not None
    for bound, most in (
        (report.requests_per_run, exact.requests),
        (report.moves_per_run, exact.moves),
        (report.requests_per_turn, exact.requests_per_turn),
    ):
        if bound is not None and most is not None:
            assert bound.seen <= most <= bound.value
            assert eval(bound.formula, {}, dict(report.limits)) == bound.value
