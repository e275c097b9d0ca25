"""The checker says what can happen; here it happens: the engine follows each witness."""

import anthropic
import pytest

from fsm_agent import AGENT_LOOP
from fsm_agent.machine import Row
from fsm_agent.session.validator import violations
from fsm_agent.testing.invariants import assert_invariants
from fsm_agent.testing.server import MessagesServer
from fsm_agent.testing.witness import Rehearsal, Rehearsed, from_witness
from fsm_agent.testing.witness_cover import covering_witnesses, pairs_of
from tests.witness.machines import SMALL, cover, fired, fired_pairs, report, was_followed

GROUPS = 4


@pytest.mark.parametrize("row", AGENT_LOOP.rows, ids=str)
async def test_the_witness_of_each_row_is_followed(row: Row) -> None:
    rehearsal = from_witness(AGENT_LOOP, report().rows[row.key], report().limits)
    done = await rehearsal.run()
    assert was_followed(rehearsal, done)
    assert fired(done)[-1] == row.key
    assert done.forced == ()
    assert (done.result.reason if done.result else None) == row.reason


async def followed_over_the_wire(rehearsal: Rehearsal) -> Rehearsed:
    async with (
        MessagesServer(rehearsal.script) as server,
        anthropic.AsyncAnthropic(base_url=server.url, api_key="test") as client,
    ):
        done = await rehearsal.run(client=client)
    assert was_followed(rehearsal, done)
    assert done.forced == ()
    assert done.result is not None
    assert done.result.requests == len(server.requests) == len(rehearsal.script)
    assert [exchange.refusal for exchange in server.requests if exchange.refusal] == []
    assert not violations(done.result.messages)
    return done


@pytest.mark.parametrize("reason", AGENT_LOOP.reasons)
async def test_the_witness_of_each_reason_is_followed_over_the_sdk_and_a_socket(reason: str) -> None:
    witness = report().reasons[reason]
    assert witness is not None
    done = await followed_over_the_wire(from_witness(AGENT_LOOP, witness, report().limits))
    assert done.result is not None
    assert done.result.reason == reason
    assert done.events[-1].type == "terminal"


def test_the_cover_has_every_row_and_every_pair_that_any_run_has() -> None:
    assert cover().rows == {row.key for row in AGENT_LOOP.rows}
    assert frozenset().union(*map(pairs_of, cover().witnesses)) == cover().pairs
    assert all(witness.reason is not None for witness in cover().witnesses)
    # Larger limits allow longer runs, and no other steps.
    assert cover().pairs == covering_witnesses(AGENT_LOOP, report().limits).pairs


def test_no_pair_of_the_cover_is_against_the_table() -> None:
    dest = {row.key: row.dest for row in AGENT_LOOP.rows}
    assert len(cover().pairs) > 150
    assert all(dest[first] == second[0] for first, second in cover().pairs)


@pytest.mark.parametrize("group", range(GROUPS))
async def test_every_transition_and_every_pair_of_transitions_is_run(group: int) -> None:
    for witness in cover().witnesses[group::GROUPS]:
        rehearsal = from_witness(AGENT_LOOP, witness, SMALL)
        done = await rehearsal.run()
        assert was_followed(rehearsal, done), witness
        assert fired_pairs(done) == pairs_of(witness)
        assert done.forced == (), witness
        assert done.observed is not None
        assert_invariants(done.observed)


@pytest.mark.slow
@pytest.mark.parametrize("group", range(GROUPS))
async def test_every_pair_of_transitions_is_run_over_the_sdk_and_a_socket(group: int) -> None:
    for witness in cover().witnesses[group::GROUPS]:
        done = await followed_over_the_wire(from_witness(AGENT_LOOP, witness, SMALL))
        assert fired_pairs(done) == pairs_of(witness)
