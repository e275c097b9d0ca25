"""Witnesses of machines that users declare: nothing is written for them."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given

from fsm_agent import AGENT_LOOP, Outcome, Visit
from fsm_agent.machine import Ask, Automaton, Control, Definition, HoleError, Row
from fsm_agent.testing.witness import NotFollowedError, from_witness
from fsm_agent.testing.witness_cover import Key, Pair, covering_witnesses, pairs_of
from fsm_agent.verify import Lasso, Report, Step, Witness, WitnessError, check
from fsm_agent.verify.bounds_given import bounds_of
from tests.loop.test_extension import APPROVAL, ApprovalLimits, refuse_with_feedback
from tests.verify.published_loop import PUBLISHED_LOOP
from tests.verify.random_tables import RandomLimits, definitions
from tests.witness.machines import COUNTED, fired_pairs, report, was_followed

@cache
def approval_report() -> Report:
    return check(APPROVAL)


ACTIONS = {"refuse_with_feedback": refuse_with_feedback}


@pytest.mark.parametrize("row", [row for row in APPROVAL.rows if row not in AGENT_LOOP.rows], ids=str)
async def test_the_rows_that_an_extension_adds_are_followed(row: Row) -> None:
    checked = approval_report()
    rehearsal = from_witness(APPROVAL, checked.rows[row.key], checked.limits)
    done = await rehearsal.run()
    assert was_followed(rehearsal, done)
    assert done.forced == ()
    assert (done.result.reason if done.result else None) == row.reason


async def test_every_pair_of_transitions_of_an_extension_is_run() -> None:
    limits = ApprovalLimits(**{**COUNTED, "max_turns": 4, "overload_retries_before_fallback": 1})  # type: ignore[arg-type]
    cover = covering_witnesses(APPROVAL, limits)
    assert cover.rows == {row.key for row in APPROVAL.rows}
    seen: set[Pair] = set()
    for witness in cover.witnesses:
        if any(step.state == "awaiting_approval" for step in witness.steps):
            rehearsal = from_witness(APPROVAL, witness, limits, actions=ACTIONS)
            done = await rehearsal.run()
            assert was_followed(rehearsal, done), witness
            assert done.forced == ()
            seen |= fired_pairs(done)
    own = {pair for pair in cover.pairs if "awaiting_approval" in (pair[0][0], pair[1][0])}
    assert own <= seen
    assert (("awaiting_approval", "deny"), ("preprocess", "block")) in own


async def test_a_users_own_effect_runs_and_what_it_does_not_come_to_is_told() -> None:
    async def approval(visit: Visit) -> Outcome:
        return Outcome("approved", "a policy says so")

    checked = approval_report()
    witness = checked.rows["awaiting_approval", "deny"]
    done = await from_witness(APPROVAL, witness, checked.limits, effects={"approval": approval}).run()
    assert done.trace == witness.word
    assert [str(one) for one in done.forced] == ["approval: denied in step 3"]


async def test_a_lasso_is_gone_round_by_the_engine() -> None:
    cycle = next(cycle for cycle in check(PUBLISHED_LOOP).cycles if isinstance(cycle.lasso, Lasso))
    rehearsal = from_witness(PUBLISHED_LOOP, cycle.lasso)
    done = await rehearsal.run()
    assert was_followed(rehearsal, done)
    assert done.trace[-2 * len(cycle.lasso.loop) :] == 2 * tuple(step.trigger for step in cycle.lasso.loop)
    assert done.result is None


async def test_a_run_falls_through_the_hole_that_the_checker_found() -> None:
    holed = AGENT_LOOP.without_row("recovering", "empty")
    (hole,) = check(holed).holes
    done = await from_witness(holed, hole.witness).run()
    assert done.trace == hole.witness.word
    assert done.result is None
    assert str(done.hole).startswith("The machine 'agent_loop' has no row in the state 'recovering' for response: empty")


async def test_an_engine_that_goes_another_way_is_caught_at_its_first_step() -> None:
    rehearsal = from_witness(AGENT_LOOP, report().reasons["max_turns"], report().limits)  # type: ignore[arg-type]
    row = AGENT_LOOP.row("calling_model", "tools_requested")
    rehearsal.definition = AGENT_LOOP.replace_row(
        Row(row.source, row.trigger, "preprocess", given=row.given, do=(*row.do, "refuse_calls"))
    )
    with pytest.raises(NotFollowedError, match=r"Step 2 of the witness is calling_model \(response: tool_use") as caught:
        await rehearsal.run()
    assert "calling_model --tools_requested--> preprocess fires there, with response: tool_use" in str(caught.value)


async def test_an_engine_that_asks_for_another_effect_is_caught() -> None:
    witness = report().rows["recovering", "complete"]
    rehearsal = from_witness(AGENT_LOOP, witness, report().limits)
    row = AGENT_LOOP.row("recovering", "complete")
    rehearsal.definition = AGENT_LOOP.without_row("recovering", "complete").with_rows(
        replace_given(row, {"response": "end_turn", "hooks": "pass"}), before="output_retry"
    )
    with pytest.raises(NotFollowedError, match=r"Step 3 .* does not follow: it asks for the effect 'hooks' there\."):
        await rehearsal.run()


def replace_given(row: Row, given: Mapping[str, str]) -> Row:
    return Row(row.source, row.trigger, row.dest, given=given, when=row.when, do=row.do, reason=row.reason)


def test_a_witness_of_other_limits_is_refused() -> None:
    witness = report().reasons["max_turns"]
    with pytest.raises(WitnessError, match="was to fire"):
        from_witness(AGENT_LOOP, witness, {**report().limits, "max_turns": 3})  # type: ignore[arg-type]


def test_a_witness_without_steps_is_refused() -> None:
    with pytest.raises(ValueError, match="The witness has no step"):
        from_witness(AGENT_LOOP, Witness(()))


# ---- machines that nobody designed


def abortable(definition: Definition) -> Definition:
    """The engine runs only machines whose own effects can be aborted."""
    return definition.with_changes(
        effects=[replace(spec, outcomes=(*spec.outcomes, "aborted")) for spec in definition.effects]
    )


@given(definitions(bounded=True).map(abortable))
async def test_the_engine_follows_the_witnesses_of_any_table(definition: Definition) -> None:
    checked = check(definition, RandomLimits())
    for witness in checked.rows.values():
        rehearsal = from_witness(definition, witness, RandomLimits())
        done = await rehearsal.run()
        assert was_followed(rehearsal, done)
        assert done.forced == ()
    for hole in (hole for hole in checked.holes if hole.witness.steps):
        assert (await from_witness(definition, hole.witness, RandomLimits()).run()).hole is not None


@given(definitions(bounded=True))
def test_the_pairs_of_a_cover_are_those_that_brute_force_finds(definition: Definition) -> None:
    limits = RandomLimits()
    cover = covering_witnesses(definition, limits)
    assert cover.pairs == brute_force_pairs(definition, bounds_of(definition, limits))
    assert frozenset().union(*map(pairs_of, cover.witnesses)) == cover.pairs


def brute_force_pairs(definition: Definition, bounds: Mapping[str, int | None]) -> set[Pair]:
    """Every configuration, with the row that fired last, by the real `decide`."""
    automaton = Automaton(definition, bounds)
    start: tuple[Control, frozenset[tuple[str, str]], Key | None] = (automaton.initial, frozenset(), None)
    seen, waiting, pairs = {start}, [start], set[Pair]()
    while waiting:
        control, facts, last = waiting.pop()
        if definition.state(control.state).final:
            continue
        try:
            decision = automaton.decide(control, dict(facts))
        except HoleError:
            continue
        if isinstance(decision, Ask):
            outcomes = definition.effect(decision.effect).outcomes
            after = [(control, facts | {(decision.effect, outcome)}, last) for outcome in outcomes]
        else:
            row = decision.row
            if last is not None:
                pairs.add((last, row.key))
            kept = frozenset(definition.inherited(row.dest, dict(facts)).items())
            after = [(definition.updated(control, row), kept, row.key)]
        for there in after:
            if there not in seen:
                seen.add(there)
                waiting.append(there)
    return pairs


def test_a_step_is_enough_of_a_witness() -> None:
    step = Step("preprocess", (("context", "ready"),), "context_ready", "calling_model")
    assert from_witness(AGENT_LOOP, [step]).word == ("context_ready",)
