"""SPIN, which knows nothing of our checker, finds what it finds."""

import pytest

from fsm_agent.machine import AGENT_LOOP, Definition
from fsm_agent.verify import check
from fsm_agent.verify.bounds_given import bounds_of
from tests.verify.other_tools import Spin
from tests.verify.published_loop import PUBLISHED_LOOP
from tests.verify.sketch import SKETCH
from tests.verify.test_agent_loop_proof import ALL_ONE, configurations_of, reached

pytestmark = pytest.mark.slow


@pytest.fixture
def spin(tmp_path):
    def ask(definition: Definition, limits=None) -> Spin:
        return Spin(definition, bounds_of(definition, limits), tmp_path)

    return ask


def test_it_stores_as_many_states_as_there_are_configurations(spin):
    mine, theirs = check(SKETCH, exact=True), spin(SKETCH)
    theirs.run()
    assert (theirs.states, theirs.errors) == (mine.configurations, 0)


def test_it_finds_the_same_reasons_at_the_same_distance(spin):
    mine, theirs = check(SKETCH), spin(SKETCH)
    theirs.run("LENGTHS")
    assert theirs.lengths() == {reason: len(mine.witness(reason).word) for reason in mine.reasons}


@pytest.mark.parametrize("reason", SKETCH.reasons)
def test_its_word_for_a_reason_is_ours(spin, reason):
    mine, theirs = check(SKETCH), spin(SKETCH)
    target = f"TARGET={SKETCH.reasons.index(reason) + 1}"
    theirs.run(target, options=("-DSAFETY", "-DBFS"))
    assert theirs.errors == 1
    assert tuple(theirs.trail(target)) == mine.witness(reason).word


def test_a_hole_is_an_invalid_end_state(spin):
    broken = SKETCH.without_row("calling", "give_up")
    theirs = spin(broken)
    assert "invalid end state" in theirs.run()
    [hole] = check(broken).holes
    word = theirs.trail()
    assert word[-1] == "waited"
    assert word.count("retry") == 2 == hole.witness.word.count("retry")


def test_the_shipped_loop_has_as_many_states_transitions_and_no_hole(spin):
    theirs = spin(AGENT_LOOP, ALL_ONE)
    theirs.run()
    exact = reached(AGENT_LOOP, ALL_ONE)
    assert (theirs.states, theirs.transitions, theirs.errors) == (len(exact), exact.edges + 1, 0)


def test_the_shipped_loop_ends_for_the_same_reasons_at_the_same_distance(spin):
    theirs = spin(AGENT_LOOP, ALL_ONE)
    theirs.run("LENGTHS")
    mine = check(AGENT_LOOP, ALL_ONE)
    assert theirs.lengths() == {reason: len(run.word) for reason, run in mine.reasons.items() if run is not None}


@pytest.mark.parametrize(
    ("definition", "limits", "endless"), [(PUBLISHED_LOOP, None, True), (AGENT_LOOP, ALL_ONE, False)]
)
def test_it_finds_an_endless_run_where_we_do(spin, definition, limits, endless):
    theirs = spin(definition, limits)
    theirs.run("ENDLESS", options=(), flags=("-a", "-E"))
    assert ("acceptance cycle" in theirs.output) is endless
    assert bool(check(definition, limits).cycles) is endless


@pytest.mark.deep
def test_the_shipped_loop_at_limits_of_two(spin):
    limits = dict.fromkeys(ALL_ONE, 2)
    theirs = spin(AGENT_LOOP, limits)
    theirs.run(options=("-DSAFETY", "-O2", "-DMEMLIM=8000"), flags=("-w27",))
    assert (theirs.states, theirs.errors) == (configurations_of(AGENT_LOOP, limits), 0)
