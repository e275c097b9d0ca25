"""Any way through the table, not only the shortest: the engine follows it, and keeps every invariant on it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsm_agent import AGENT_LOOP, Definition, LoopLimits
from fsm_agent.machine import Ask, Automaton, Row
from fsm_agent.testing.invariants import assert_invariants
from fsm_agent.testing.witness import from_witness
from fsm_agent.verify import Witness, conform
from fsm_agent.verify.bounds_given import bounds_of
from fsm_agent.verify.witness import Outcome, witness
from tests.witness.machines import was_followed

LIMITS = LoopLimits(max_turns=8, max_fallbacks=2)
GOES_ON = ("done", "tool_use", "ready", "block")
"""Outcomes that lead on in a long run, drawn more often than the others."""


@st.composite
def walks(draw: st.DrawFn, definition: Definition, limits: LoopLimits, moves: int = 40) -> Witness:
    """A run along the table: the outcome of each effect is drawn, until the end or for so many moves."""
    automaton = Automaton(definition, bounds_of(definition, limits))
    control, facts, events = automaton.initial, dict[str, str](), list[Outcome | Row]()
    while moves:
        decision = automaton.decide(control, facts)
        if isinstance(decision, Ask):
            outcomes = definition.effect(decision.effect).outcomes
            usual = [outcome for outcome in outcomes if outcome in GOES_ON]
            outcome = draw(st.sampled_from([*usual * len(outcomes), *outcomes]))
            facts = {**facts, decision.effect: outcome}
            events.append((decision.effect, outcome))
            continue
        row, moves = decision.row, moves - 1
        events.append(row)
        if row.reason is not None:
            break
        control, facts = definition.updated(control, row), definition.inherited(row.dest, facts)
    return witness(definition.initial, events)


@pytest.mark.slow
@given(walks(AGENT_LOOP, LIMITS))
async def test_the_engine_follows_any_way_through_the_table(walk: Witness) -> None:
    rehearsal = from_witness(AGENT_LOOP, walk, LIMITS)
    done = await rehearsal.run()
    assert was_followed(rehearsal, done)
    assert done.forced == ()
    assert conform(AGENT_LOOP, [event for event in done.events if event.type == "transition"], LIMITS) is None
    if walk.reason is not None:
        assert done.observed is not None
        assert_invariants(done.observed)
