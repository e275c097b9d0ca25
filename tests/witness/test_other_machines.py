"""Witnesses of machines that users declare: nothing is written for them."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from hypothesis import given

from fsm_agent import AGENT_LOOP, LoopLimits, Outcome, Visit
from fsm_agent.loop.events import User
from fsm_agent.machine import Ask, Automaton, Control, Definition, EffectSpec, HoleError, Row, StateSpec
from fsm_agent.testing.invariants import assert_invariants
from fsm_agent.testing.witness import NotFollowedError, from_witness
from fsm_agent.testing.witness_cover import Key, Pair, covering_witnesses, pairs_of
from fsm_agent.verify import Report, Step, Witness, WitnessError, check
from fsm_agent.verify.bounds_given import bounds_of
from tests.loop.test_extension import APPROVAL, ApprovalLimits, refuse_with_feedback
from tests.verify.published_loop import PUBLISHED_LOOP
from tests.verify.random_tables import RandomLimits, definitions
from tests.witness.machines import COUNTED, SMALL, fired_pairs, report, was_followed

LIMITS = ApprovalLimits(**{**COUNTED, "max_turns": 4, "overload_retries_before_fallback": 1})  # type: ignore[arg-type]


@cache
def approval_report() -> Report:
    return check(APPROVAL, LIMITS)


def refuse(conversation: Any, row: Row) -> list[User]:
    """The extension's action, which tells of what it adds."""
    refuse_with_feedback(conversation, row)
    return [User(message=conversation.history[-1].message, purpose="tool_results")]


@pytest.mark.parametrize("row", APPROVAL.rows, ids=str)
async def test_the_witness_of_each_row_of_an_extension_is_followed(row: Row) -> None:
    rehearsal = from_witness(APPROVAL, approval_report().rows[row.key], LIMITS)
    done = await rehearsal.run()
    assert was_followed(rehearsal, done)
    assert done.forced == ()
    assert (done.result.reason if done.result else None) == row.reason


async def test_every_pair_of_transitions_of_an_extension_is_run() -> None:
    cover = covering_witnesses(APPROVAL, LIMITS, ending="completed")
    assert cover.rows == {row.key for row in APPROVAL.rows}
    seen: set[Pair] = set()
    for witness in cover.witnesses:
        if any(step.state == "awaiting_approval" for step in witness.steps):
            rehearsal = from_witness(APPROVAL, witness, LIMITS, actions={"refuse_with_feedback": refuse})
            done = await rehearsal.run()
            assert was_followed(rehearsal, done), witness
            assert done.forced == ()
            assert done.observed is not None
            assert_invariants(done.observed)
            seen |= fired_pairs(done)
    own = {pair for pair in cover.pairs if "awaiting_approval" in (pair[0][0], pair[1][0])}
    assert own <= seen
    assert (("awaiting_approval", "deny"), ("preprocess", "block")) in own


async def test_a_users_own_effect_runs_and_what_it_does_not_come_to_is_told() -> None:
    async def approval(visit: Visit) -> Outcome:
        return Outcome("approved", "a policy says so")

    witness = approval_report().rows["awaiting_approval", "deny"]
    done = await from_witness(APPROVAL, witness, LIMITS, effects={"approval": approval}).run()
    assert done.trace == witness.word
    assert [str(one) for one in done.forced] == ["approval: denied in step 3"]


async def test_a_lasso_is_gone_round_by_the_engine() -> None:
    cycle = check(PUBLISHED_LOOP).cycles[0]
    rehearsal = from_witness(PUBLISHED_LOOP, cycle.lasso)
    done = await rehearsal.run()
    assert was_followed(rehearsal, done)
    assert done.trace[-2 * len(cycle.lasso.loop) :] == 2 * tuple(step.trigger for step in cycle.lasso.loop)
    assert done.result is None


async def test_the_one_unbounded_cycle_of_the_shipped_machine_is_gone_round() -> None:
    limits = LoopLimits(max_turns=None)
    (cycle,) = check(AGENT_LOOP, limits).cycles
    rehearsal = from_witness(AGENT_LOOP, cycle.lasso, limits)
    done = await rehearsal.run()
    assert was_followed(rehearsal, done)
    assert done.result is None
    assert rehearsal.limits.max_turns is None


async def test_a_shipped_effect_with_an_outcome_of_a_users_own_is_given_it() -> None:
    spec = AGENT_LOOP.effect("hooks")
    asking = AGENT_LOOP.with_changes(
        name="asking",
        effects=[replace(spec, outcomes=(*spec.outcomes, "ask"))],
        rows=[
            Row(
                "recovering",
                "ask_the_user",
                "terminal",
                given={"response": "end_turn", "hooks": "ask"},
                do="keep_reply",
                reason="asked",
            )
        ],
        before="token_budget_continuation",
    )
    rehearsal = from_witness(asking, check(asking, SMALL).rows["recovering", "ask_the_user"], SMALL)
    done = await rehearsal.run()
    assert was_followed(rehearsal, done)
    assert done.result is not None
    assert done.result.reason == "asked"
    assert [(one.effect, one.outcome) for one in done.forced] == [("hooks", "ask")]


async def test_a_witness_may_end_in_the_middle_of_a_visit() -> None:
    (first, second, *_) = report().rows["executing_tools", "next_turn"].steps
    rehearsal = from_witness(AGENT_LOOP, [first, replace(second, trigger=None, dest=None)])
    done = await rehearsal.run()
    assert done.trace == ("context_ready",)
    assert (done.result, done.hole) == (None, None)


async def test_a_rehearsal_can_be_run_again() -> None:
    rehearsal = from_witness(AGENT_LOOP, report().rows["recovering", "output_invalid"], report().limits)
    first, second = await rehearsal.run(), await rehearsal.run()
    assert first.trace == second.trace == rehearsal.word
    assert first.result is not None
    assert second.result is not None
    assert first.result.messages == second.result.messages


async def test_a_run_falls_through_the_hole_that_the_checker_found() -> None:
    holed = AGENT_LOOP.without_row("recovering", "empty")
    (hole,) = check(holed).holes
    done = await from_witness(holed, hole.witness).run()
    assert done.trace == hole.witness.word
    assert done.result is None
    assert str(done.hole).startswith(
        "The machine 'agent_loop' has no row in the state 'recovering' for response: empty"
    )


async def test_an_engine_that_goes_another_way_is_caught_at_its_first_step() -> None:
    rehearsal = from_witness(AGENT_LOOP, report().reasons["max_turns"], report().limits)  # type: ignore[arg-type]
    row = AGENT_LOOP.row("calling_model", "tools_requested")
    rehearsal.definition = AGENT_LOOP.replace_row(
        Row(row.source, row.trigger, "preprocess", given=row.given, do=(*row.do, "refuse_calls"))
    )
    with pytest.raises(
        NotFollowedError, match=r"Step 2 of the witness is calling_model \(response: tool_use"
    ) as caught:
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


def stays_aborted(witness: Witness) -> bool:
    """Whether nothing ends otherwise after an abort, as it is in the engine: a table sees no connection there."""
    outcomes = [outcome for step in witness.steps for _, outcome in step.outcomes]
    return "aborted" not in outcomes or set(outcomes[outcomes.index("aborted") :]) == {"aborted"}


@pytest.mark.slow
@given(definitions(bounded=True).map(abortable))
async def test_the_engine_follows_the_witnesses_of_any_table(definition: Definition) -> None:
    checked = check(definition, RandomLimits())
    for witness in filter(stays_aborted, checked.rows.values()):
        rehearsal = from_witness(definition, witness, RandomLimits())
        done = await rehearsal.run()
        assert was_followed(rehearsal, done)
        assert done.forced == ()
    for hole in (hole for hole in checked.holes if hole.witness.steps and stays_aborted(hole.witness)):
        assert (await from_witness(definition, hole.witness, RandomLimits()).run()).hole is not None


async def test_a_hole_behind_two_aborted_effects_is_fallen_into() -> None:
    definition = Definition(
        name="two effects",
        initial="a",
        states=(StateSpec("a"), StateSpec("end", final=True)),
        effects=tuple(EffectSpec(name, "a", ("yes", "aborted")) for name in ("e", "f")),
        rows=(
            Row("a", "t0", "end", given={"e": "yes"}, reason="good"),
            Row("a", "t1", "end", given={"f": "yes"}, reason="good"),
        ),
        counters=(),
        flags=(),
        limits=RandomLimits,
    )
    (hole,) = (hole for hole in check(definition, RandomLimits()).holes if stays_aborted(hole.witness))
    assert hole.witness.steps[0].outcomes == (("e", "aborted"), ("f", "aborted"))
    assert (await from_witness(definition, hole.witness, RandomLimits()).run()).hole is not None


@pytest.mark.slow
@given(definitions(bounded=True))
def test_the_pairs_of_a_cover_are_those_that_brute_force_finds(definition: Definition) -> None:
    limits = RandomLimits()
    cover = covering_witnesses(definition, limits)
    assert cover.pairs == brute_force_pairs(definition, bounds_of(definition, limits))
    assert frozenset().union(*map(pairs_of, cover.witnesses)) == cover.pairs


Place = tuple[Control, frozenset[tuple[str, str]], Key | None]


def brute_force_pairs(definition: Definition, bounds: Mapping[str, int | None]) -> set[Pair]:
    """Every configuration, with the row that fired last, by the real `decide`."""
    automaton = Automaton(definition, bounds)
    start: Place = (automaton.initial, frozenset(), None)
    seen, waiting, pairs = set[Place]({start}), list[Place]([start]), set[Pair]()
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
            after: list[Place] = [(control, facts | {(decision.effect, outcome)}, last) for outcome in outcomes]
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
