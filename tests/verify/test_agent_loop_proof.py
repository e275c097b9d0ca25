"""What is proved about the shipped loop."""

from dataclasses import dataclass, field
from functools import cache

import pytest

from fsm_agent.machine import AGENT_LOOP, Ask, Automaton, Cursor, Fire, LoopLimits, TerminalReason, compiled
from fsm_agent.machine.coarse import AGENT_PHASES
from fsm_agent.verify import AGENT_LOOP_CONTRACTS, check, refine
from fsm_agent.verify.bounds_given import bounds_of
from fsm_agent.verify.configurations import Configurations
from fsm_agent.verify.decisions import Decisions
from fsm_agent.verify.explore import Exploration, explore, longest
from fsm_agent.verify.layout import Layout
from fsm_agent.verify.limits_at_edge import names_of_limits
from fsm_agent.verify.system import Ask as Asking
from fsm_agent.verify.system import Hole, Move, System, happenings
from tests.verify.test_two_ways import facts_of

ALL_ONE = dict.fromkeys(names_of_limits(AGENT_LOOP), 1)
MIXED = ALL_ONE | {
    "max_turns": 4,
    "max_pauses": 0,
    "max_malformed": 0,
    "max_media_removals": 0,
    "max_stop_hook_blocks": 2,
}
MIXED |= {"max_transport_retries": 2, "max_fallbacks": 0, "max_stream_resumes": 0, "max_rapid_refills": 0}


def reached(definition, limits) -> Exploration:
    return _reached(definition, tuple(limits.items()))


@cache
def _reached(definition, limits) -> Exploration:
    bounds = dict(limits)
    return explore(Configurations(System(Decisions(definition, bounds)), Layout(definition, bounds)), 10_000_000)


@pytest.fixture(scope="module")
def report():
    return check(AGENT_LOOP)


def test_nothing_speaks_against_it(report):
    assert report.ok, str(report)
    assert not report.switched_off


def test_every_terminal_reason_is_reached(report):
    assert set(report.reasons) == set(TerminalReason)
    assert all(run is not None and run.reason == reason for reason, run in report.reasons.items())


def test_every_row_fires(report):
    assert set(report.rows) == {row.key for row in AGENT_LOOP.rows}
    assert all(run.word[-1] == trigger for (_, trigger), run in report.rows.items())


def test_the_certificate_is_complete_and_begins_with_the_turn(report):
    assert report.certificate.complete
    assert report.certificate.order[:2] == ("turn", "fallbacks")


def test_there_is_no_hole_under_any_limits():
    system = System(Decisions(AGENT_LOOP, None))
    assert not [h for node in system.nodes for _, h in happenings(node) if isinstance(h, Hole)]


def test_every_contract_holds(report):
    assert len(report.contracts) == len(AGENT_LOOP_CONTRACTS) + 1
    assert [verdict for verdict in report.contracts if not verdict.holds] == []


def test_the_worst_case_is_exact_and_its_formula_true(report):
    for bound in report.bounds().values():
        assert bound is not None
        assert bound.exact
        assert eval(bound.formula, {}, dict(report.limits)) == bound.value
    assert report.max_requests_per_run > report.limits["max_turns"]


@pytest.mark.parametrize("turns", [1, 2, 50, 2_000])
def test_it_holds_for_other_limits(turns):
    assert check(AGENT_LOOP, LoopLimits(max_turns=turns)).ok


def test_no_bound_on_turns_is_reported_as_the_one_declared_cycle():
    report = check(AGENT_LOOP, LoopLimits(max_turns=None))
    [cycle] = report.cycles
    assert report.ok
    assert cycle.declared_by == "max_turns"
    assert "next_turn" in [step.trigger for step in cycle.lasso.loop]
    assert report.max_requests_per_run is None
    assert report.max_requests_per_turn == check(AGENT_LOOP).max_requests_per_turn


def test_a_limit_of_zero_switches_rows_off_and_is_no_fault():
    report = check(AGENT_LOOP, LoopLimits(max_media_removals=0, max_fallbacks=0))
    assert report.ok
    assert report.switched_off == {
        ("recovering", "media_removed_retry"): "max_media_removals",
        ("recovering", "model_fallback"): "max_fallbacks",
    }


def test_the_published_phases_are_a_projection_of_it():
    refinement = refine(AGENT_LOOP, AGENT_PHASES)
    assert refinement.ok
    assert set(refinement.taken) == {str(step) for step in AGENT_PHASES.steps}


# ---- against every configuration of the product


@pytest.mark.slow
@pytest.mark.parametrize("limits", [ALL_ONE, MIXED], ids=["all one", "mixed"])
def test_both_ways_agree_on_it(limits):
    exact, compositional = check(AGENT_LOOP, limits, exact=True, state_cap=5_000_000), check(AGENT_LOOP, limits)
    assert facts_of(compositional) == facts_of(exact)
    assert [v.holds for v in compositional.contracts] == [v.holds for v in exact.contracts]


@pytest.mark.slow
@pytest.mark.parametrize("limits", [ALL_ONE, MIXED], ids=["all one", "mixed"])
def test_the_worst_case_is_that_of_the_whole_product(limits):
    exact, found = longest(reached(AGENT_LOOP, limits), "turn"), check(AGENT_LOOP, limits).as_json()
    assert exact is not None
    assert found["max_requests_per_run"] == exact.requests
    assert found["max_requests_per_turn"] == exact.requests_per_turn
    assert found["max_moves_per_run"] == exact.moves


@dataclass
class Walk:
    """What is left of an exploration when only the set of configurations is kept (some millions of them)."""

    configurations: int = 0
    rows: dict = field(default_factory=dict)
    holes: int = 0


@cache
def walked(definition, limits) -> Walk:
    bounds = dict(limits)
    configurations = Configurations(System(Decisions(definition, bounds)), Layout(definition, bounds))
    walk, seen, level, moves = Walk(), set(), [configurations.initial], 0
    while level:
        further, moves = [], moves + 1
        for here in level:
            if here not in seen:
                seen.add(here)
                happening = configurations.happening(here)
                if isinstance(happening, Move):
                    walk.rows.setdefault(happening.row.key, moves)
                    further += configurations.after(happening, here)
                else:
                    walk.holes += isinstance(happening, Hole)
                    level += configurations.after(happening, here)
        level = further
    walk.configurations = len(seen)
    return walk


def configurations_of(definition, limits) -> int:
    return walked(definition, tuple(limits.items())).configurations


@pytest.mark.deep
def test_both_ways_agree_on_it_at_limits_of_two():
    limits = dict.fromkeys(ALL_ONE, 2)
    walk, report = walked(AGENT_LOOP, tuple(limits.items())), check(AGENT_LOOP, limits)
    assert walk.rows == {key: len(run.word) for key, run in report.rows.items()}
    assert walk.holes == len(report.holes) == 0


@pytest.mark.slow
def test_the_real_transitions_machine_moves_as_the_checker_says():
    """In each of the configurations in which a row fires, over the whole reachable set."""
    exact = reached(AGENT_LOOP, ALL_ONE)
    configurations = exact.configurations
    automaton = Automaton(AGENT_LOOP, ALL_ONE)
    machine, cursor = compiled(AGENT_LOOP), Cursor(automaton)
    moves = 0
    for here in exact.came_from:
        happening = configurations.happening(here)
        situation = configurations.system.situations[here >> configurations.bits]
        control = configurations.layout.unpack(here & configurations.control_mask, situation.state)
        facts = dict(situation.facts)
        if situation.reason is not None:
            continue
        decision = automaton.decide(control, facts)
        if not isinstance(happening, Move):
            assert isinstance(decision, Ask)
            assert isinstance(happening, Asking)
            assert decision.effect == happening.effect
            continue
        assert decision == Fire(happening.row)
        cursor.control, cursor.state, cursor.facts = control, situation.state, facts
        machine.move(cursor, happening.row.trigger)
        [there] = configurations.after(happening, here)
        after = configurations.system.situations[there >> configurations.bits]
        assert cursor.state == after.state
        assert cursor.control.values == configurations.layout.unpack(there & configurations.control_mask, "").values
        assert cursor.facts == dict(after.facts)
        moves += 1
    assert moves > 10_000


def test_bounds_are_taken_from_a_settings_model_or_from_numbers():
    limits = LoopLimits(max_turns=7)
    assert bounds_of(AGENT_LOOP, limits)["max_turns"] == 7
    assert (
        check(AGENT_LOOP, bounds_of(AGENT_LOOP, limits)).max_requests_per_run
        == check(AGENT_LOOP, limits).max_requests_per_run
    )
