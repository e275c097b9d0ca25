"""The edges of a declaration of the user's own: what its states, effects and actions may rely on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from fsm_agent import AGENT_LOOP, LoopLimits, Outcome, Visit
from fsm_agent.loop.driver import EffectError
from fsm_agent.machine import Below, Counter, EffectSpec, Increment, Row, StateSpec
from fsm_agent.testing import Reply, tool_use
from fsm_agent.testing.simulation import simulate
from tests.mutation.edge_kit import machine_of, results_of


class Limits(LoopLimits):
    """The limits, with one of our own."""

    max_reviews: int = 2


REVIEWED = AGENT_LOOP.with_changes(
    name="reviewed",
    limits=Limits,
    states=[StateSpec("reviewing", inherits=("response",))],
    effects=[EffectSpec("review", "reviewing", ("good", "bad", "failed", "aborted"))],
    counters=[Counter("reviews", "max_reviews")],
    replace_rows=[
        Row("recovering", "complete", "reviewing", given={"response": "end_turn", "output": "valid", "hooks": "pass"}),
    ],
    rows=[
        Row("reviewing", "abort", "terminal", given={"review": "aborted"}, do="keep_reply", reason="aborted_streaming"),
        Row("reviewing", "approve", "terminal", given={"review": "good"}, do="keep_reply", reason="completed"),
        Row(
            "reviewing",
            "revise",
            "preprocess",
            given={"review": "bad"},
            when=(Below("reviews"), Below("turn")),
            update=(Increment("reviews"), Increment("turn")),
            do=("keep_reply", "ask_for_visible_output"),
        ),
        Row("reviewing", "give_up", "terminal", given={"review": "bad"}, do="keep_reply", reason="not_good"),
        Row("reviewing", "fail", "terminal", given={"review": "failed"}, do="keep_reply", reason="review_failed"),
    ],
)

VETTED = AGENT_LOOP.with_changes(
    name="vetted",
    states=[StateSpec("vetting", inherits=("response",))],
    effects=[EffectSpec("vet", "vetting", ("harmless", "dangerous", "aborted"))],
    replace_rows=[
        Row("calling_model", "tools_requested", "vetting", given={"response": "tool_use"}, do="keep_reply"),
    ],
    rows=[
        Row("vetting", "abort", "terminal", given={"vet": "aborted"}, do="refuse_calls", reason="aborted_tools"),
        Row("vetting", "allow", "executing_tools", given={"vet": "harmless"}),
        Row("vetting", "refuse", "terminal", given={"vet": "dangerous"}, do="refuse_calls", reason="not_allowed"),
    ],
)


def an_effect_sees_what_was_said_in_its_own_visit() -> None:
    seen: list[dict[str, Any]] = []

    async def review(visit: Visit) -> Outcome:
        seen.append(dict(visit.values))
        return Outcome("bad" if len(seen) == 1 else "good", value="a mark")

    async def program() -> None:
        machine = machine_of([Reply("a"), Reply("b")], definition=REVIEWED, effects={"review": review}, limits=Limits())
        result = await machine.run("go")
        assert (result.reason, len(seen)) == ("completed", 2), result
        assert "review" not in seen[1], seen

    simulate(program)


def an_effect_that_declares_it_may_fail() -> None:
    async def review(visit: Visit) -> str:
        raise ValueError("no such file")

    async def program() -> None:
        machine = machine_of([Reply("a")], definition=REVIEWED, effects={"review": review}, limits=Limits())
        result = await machine.run("go")
        assert result.reason == "review_failed", result
        assert result.detail == "The effect review failed: ValueError: no such file", result.detail

    simulate(program)


def an_effect_that_cancels_itself_breaks_its_contract() -> None:
    async def review(visit: Visit) -> str:
        raise asyncio.CancelledError

    async def program() -> None:
        machine = machine_of([Reply("a")], definition=REVIEWED, effects={"review": review}, limits=Limits())
        with pytest.raises(EffectError, match="not by its run"):
            await machine.run("go")

    simulate(program)


def calls_that_a_row_refuses_are_answered() -> None:
    async def vet(visit: Visit) -> str:
        return "dangerous"

    async def program() -> None:
        reply = Reply(tool_use("write", {"x": "a"}), tool_use("echo", {"x": "b"}))
        result = await machine_of([reply], definition=VETTED, effects={"vet": vet}).run("go")
        assert result.reason == "not_allowed", result
        assert len(results_of(result)) == 2, result.messages

    simulate(program)


MACHINE_EDGES: tuple[Callable[[], None], ...] = (
    an_effect_sees_what_was_said_in_its_own_visit,
    an_effect_that_declares_it_may_fail,
    an_effect_that_cancels_itself_breaks_its_contract,
    calls_that_a_row_refuses_are_answered,
)
