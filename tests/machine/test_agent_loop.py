"""The shipped declaration: what it must hold, the pure decision, and its compilation."""

import random
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transitions import Machine
from transitions.extensions.asyncio import AsyncMachine

from fsm_agent.machine import (
    AGENT_LOOP,
    Action,
    Ask,
    Automaton,
    Control,
    Cursor,
    Effect,
    Fire,
    HoleError,
    LoopLimits,
    MoveError,
    ResponseOutcome,
    Row,
    State,
    TerminalReason,
    Trigger,
    compiled,
)

SETTLES = {Action.KEEP_REPLY, Action.KEEP_TEXT, Action.DISCARD_REPLY}


def test_the_five_states_every_trigger_and_every_reason_are_in_the_table() -> None:
    assert [spec.name for spec in AGENT_LOOP.states] == list(State)
    assert set(AGENT_LOOP.triggers) == set(Trigger)
    assert set(AGENT_LOOP.reasons) == set(TerminalReason)
    assert [spec.name for spec in AGENT_LOOP.effects] == list(Effect)
    assert set(AGENT_LOOP.actions) == {action for row in AGENT_LOOP.rows for action in row.do}


def test_every_row_that_leaves_with_a_reply_settles_it_exactly_once() -> None:
    for row in AGENT_LOOP.rows_from("recovering"):
        if row.dest != "recovering":
            assert len(SETTLES & set(row.do)) == 1, row
    for row in AGENT_LOOP.rows_from("calling_model"):
        assert len(SETTLES & set(row.do)) == (0 if row.trigger == "response_ended" else 1), row


def test_every_counter_is_raised_only_below_its_limit() -> None:
    for row in AGENT_LOOP.rows:
        raised = {update.name for update in row.update if type(update).__name__ == "Increment"}
        assert raised <= {name for guard in row.when for name in guard.reads}, row


def test_a_stop_hook_never_rearms_the_compaction() -> None:
    row = AGENT_LOOP.row("recovering", "stop_hook_blocking")
    assert "reactive_compact_attempted" not in {update.name for update in row.update}


class Walk:
    """A run of the bare machine: outcomes are drawn, no effect is performed."""

    def __init__(self, limits: LoopLimits, fallbacks: int, draw: random.Random) -> None:
        self.automaton = Automaton(AGENT_LOOP, limits.resolved(fallback_models=fallbacks))
        self.draw = draw
        self.cursor = Cursor(self.automaton)
        self.rows: list[Row] = []

    def to_the_end(self, most: int = 100_000) -> str:
        machine = compiled(AGENT_LOOP)
        for _ in range(most):
            decision = self.automaton.decide(self.cursor.control, self.cursor.facts)
            assert decision == self.automaton.decide(self.cursor.control, dict(self.cursor.facts))
            match decision:
                case Ask(effect):
                    outcome = self.draw.choice(AGENT_LOOP.effect(effect).outcomes)
                    self.cursor.facts = {**self.cursor.facts, effect: outcome}
                case Fire(row):
                    expected = AGENT_LOOP.updated(self.cursor.control, row)
                    machine.move(self.cursor, row.trigger)
                    assert self.cursor.control == expected
                    assert self.cursor.state == row.dest
                    self.rows.append(row)
                    if row.reason is not None:
                        return row.reason
        raise AssertionError("The walk did not end.")


@given(st.integers(0, 2**32), st.integers(1, 30), st.integers(0, 3))
def test_every_walk_ends_in_one_declared_reason_and_moves_as_the_compiled_machine(
    seed: int, max_turns: int, fallbacks: int
) -> None:
    walk = Walk(LoopLimits(max_turns=max_turns), fallbacks, random.Random(seed))
    assert walk.to_the_end() in set(TerminalReason)
    assert sum(row.dest == "calling_model" for row in walk.rows) <= 40 * max_turns * (1 + fallbacks)


def test_an_abort_is_taken_before_anything_else_whichever_effect_it_interrupted() -> None:
    automaton = Automaton(AGENT_LOOP, LoopLimits().resolved())
    control = Control("recovering", automaton.initial.values, automaton.initial.index)
    cases: list[Mapping[str, str]] = [
        {"response": "retryable", "backoff": "aborted"},
        {"response": "prompt_too_long", "drain": "nothing", "compact": "aborted"},
        {"response": "end_turn", "output": "valid", "hooks": "aborted"},
    ]
    for facts in cases:
        decision = automaton.decide(control, facts)
        assert isinstance(decision, Fire)
        assert decision.row.trigger == "abort"


def test_a_dearer_recovery_is_asked_for_only_when_the_cheaper_one_declined() -> None:
    automaton = Automaton(AGENT_LOOP, LoopLimits().resolved())
    control = Control("recovering", automaton.initial.values, automaton.initial.index)
    facts = {"response": "prompt_too_long"}
    assert automaton.decide(control, facts) == Ask("drain")
    assert automaton.decide(control, facts | {"drain": "nothing"}) == Ask("compact")
    assert isinstance(automaton.decide(control, facts | {"drain": "drained"}), Fire)


def test_a_hole_is_an_error_that_tells_what_was_known() -> None:
    holed = AGENT_LOOP.without_row("preprocess", "block")
    automaton = Automaton(holed, LoopLimits().resolved())
    with pytest.raises(HoleError, match="no row in the state 'preprocess' for context: too_large"):
        automaton.decide(automaton.initial, {"context": "too_large"})


def test_the_compiled_machine_is_synchronous_and_knows_no_run() -> None:
    machine = compiled(AGENT_LOOP)
    assert compiled(AGENT_LOOP) is machine
    assert type(machine.machine) is Machine
    assert not isinstance(machine.machine, AsyncMachine)
    assert machine.machine.models == []
    assert set(machine.machine.events) == set(AGENT_LOOP.triggers)


def test_the_compiled_machine_refuses_a_row_whose_facts_are_not_so() -> None:
    cursor = Cursor(Automaton(AGENT_LOOP, LoopLimits().resolved()))
    with pytest.raises(MoveError, match="refused the trigger 'context_ready'"):
        compiled(AGENT_LOOP).move(cursor, "context_ready")


def test_outcomes_that_need_another_row_are_all_there() -> None:
    taken = {outcome for row in AGENT_LOOP.rows for outcome in row.given.get("response", ())}
    assert taken == set(ResponseOutcome)
