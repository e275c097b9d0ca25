"""Runs through each pair of rows that can follow each other."""

import pytest

from fsm_agent.machine import AGENT_LOOP
from fsm_agent.verify import check, replay, transition_pairs
from fsm_agent.verify.system import Move
from tests.verify.sketch import SKETCH
from tests.verify.test_agent_loop_proof import MIXED, reached


def test_each_run_ends_with_its_pair():
    pairs = transition_pairs(SKETCH)
    assert {(first[1], second[1]) for first, second in pairs} == {
        ("called", "abort"), ("called", "next_turn"), ("called", "turn_limit"), ("retry", "waited"),
        *((first, second) for first in ("next_turn", "waited") for second in ("replied", "refuse", "called", "retry")),
        ("waited", "give_up"),  # not after next_turn: a call of tools resets the retries
    }  # fmt: skip
    for (first, second), run in pairs.items():
        assert run.word[-2:] == (first[1], second[1])
        replay(SKETCH, check(SKETCH).limits, run.steps)


@pytest.mark.slow
def test_the_pairs_are_those_of_the_whole_product():
    exact, found = reached(AGENT_LOOP, MIXED), set()
    configurations = exact.configurations
    into: dict[int, set] = {}
    # The rows by which each configuration's visit was entered, carried along outcomes.
    waiting = [configurations.initial]
    into[configurations.initial] = {None}
    while waiting:
        here = waiting.pop()
        happening = configurations.happening(here)
        if isinstance(happening, Move):
            found |= {(before, happening.row.key) for before in into[here] if before is not None}
        for there in configurations.after(happening, here):
            entered = {happening.row.key} if isinstance(happening, Move) else into[here]
            if not entered <= into.get(there, set()):
                into[there] = into.get(there, set()) | entered
                waiting.append(there)
    assert set(transition_pairs(AGENT_LOOP, MIXED)) == found
