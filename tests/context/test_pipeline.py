"""The stages together: how assembling the context ends, and what it costs when nothing is to be done."""

import asyncio
import json
from dataclasses import replace

import pytest
from hypothesis import given

from fsm_agent.context.pipeline import STAGES, ContextPipeline, apply_edits
from fsm_agent.context.view import SummaryResult, pressure_threshold
from fsm_agent.machine import ContextOutcome, LoopLimits, ResponseOutcome
from fsm_agent.session.history import History
from fsm_agent.session.validator import violations
from tests.context.views import LIMITS, WINDOW, Summaries, counted, view
from tests.session.histories import MODELS, assistant, call, histories, refusal, result, tool_turns, user
from tests.session.noting import noting

OVERLOADED = SummaryResult(ResponseOutcome.OVERLOADED, detail="Overloaded")
TALK = [user("go", purpose="prompt"), *(assistant(f"{number} " + "word " * 100) for number in range(20)), user("on")]
"""Nothing that snip or microcompact could remove."""


def prepared(history, *answers, **more):
    model = Summaries(*answers)
    plan = asyncio.run(ContextPipeline().prepare(view(history, model, **more)))
    return plan, model


def grown(messages):
    """The history as a run has it: appended message by message."""
    history = History()
    for message in messages:
        history.append(message)
    return history


def test_the_stages_are_in_the_order_of_their_weight():
    assert list(STAGES) == [
        "tool_result_budget",
        "media_check",
        "snip",
        "microcompact",
        "collapse",
        "autocompact",
        "blocking_check",
    ]


def test_a_small_context_is_ready_and_nothing_is_edited():
    plan, model = prepared([user("go"), *tool_turns(2)])
    assert (plan.outcome, plan.edits, model.requests) == (ContextOutcome.READY, [], [])


def test_a_full_context_is_compacted_with_one_request():
    history = History(TALK)
    plan, model = prepared(history)
    assert (plan.outcome, len(model.requests), plan.autocompact_failures) == (ContextOutcome.COMPACTED, 1, 0)
    assert history.messages == TALK
    apply_edits(history, plan.edits)
    assert violations(history.messages) == []
    assert history.tokens < pressure_threshold(LIMITS)
    assert history.messages[-1] == user("on")
    assert [edit.stage for edit in plan.edits] == ["autocompact"]


@pytest.mark.slow
@given(histories(ends="user", max_groups=6))
def test_whatever_the_history_the_plan_leaves_a_valid_one_with_the_same_calls_answered(messages):
    history = History(messages)
    limits = LoopLimits(context_window=1_000, tool_result_max_chars=400, message_results_max_chars=600)
    plan, model = prepared(history, limits=limits, model=MODELS[0])
    assert history.messages == messages
    assert len(model.requests) <= 1
    apply_edits(history, plan.edits)
    assert violations(history.messages) == []
    assert refusal(history.messages) is None
    for request in model.requests:
        assert violations(json.loads(request.body)) == []


@pytest.mark.slow
@given(histories(ends="user", max_groups=6))
def test_a_second_preparation_after_the_edits_is_valid_too(messages):
    history = History(messages)
    limits = LoopLimits(context_window=1_000)
    for turn in (1, 2):
        plan, _ = prepared(history, limits=limits, turn=turn)
        apply_edits(history, plan.edits)
        assert violations(history.messages) == []


# ---- how large the context is


def test_the_size_is_what_the_api_counted_for_the_last_reply_and_what_came_since():
    history = grown([user("go"), assistant(call("a"))])
    seen = view(history, last_usage=counted(1_000), fixed_tokens=900)
    assert seen.tokens() == 1_000
    history.append(user(result("a", "x" * 400)))
    assert 1_100 <= seen.tokens() <= 1_150
    assert replace(seen, last_usage=None).tokens() == 900 + history.tokens


def test_usage_summed_over_turns_does_not_compact():
    history = grown([user("go"), *tool_turns(12)])
    plan, _ = prepared(history, last_usage=counted(15_020), limits=LoopLimits(context_window=200_000))
    assert plan.outcome == ContextOutcome.READY


def test_the_usage_of_before_an_edit_is_not_the_size_after_it():
    history = grown([user("go"), *tool_turns(20, 400)])
    seen = view(history, last_usage=counted(2_900))
    history.replace(1, 31, [])
    assert seen.tokens() < 1_500


def test_what_the_api_counted_triggers_the_compaction_though_our_estimate_is_small():
    history = grown([user("go"), *(assistant("word " * 20) for _ in range(9)), user("on")])
    assert history.tokens < 500
    assert prepared(history)[0].outcome == ContextOutcome.READY
    assert prepared(history, last_usage=counted(2_500))[0].outcome == ContextOutcome.COMPACTED


# ---- the breakers


@pytest.mark.parametrize(
    ("last", "outcome"),
    [(None, "compacted"), (1, "compacted"), (6, "compacted"), (7, "refilled"), (10, "refilled")],
)
def test_a_context_full_again_within_three_turns_was_refilled(last, outcome):
    plan, _ = prepared(History(TALK), turn=10, last_compaction_turn=last)
    assert plan.outcome == outcome


def test_a_compaction_in_vain_is_counted_and_the_run_goes_on():
    plan, model = prepared(History(TALK[:-4] + TALK[-1:]), OVERLOADED, autocompact_failures=1)
    assert (plan.outcome, plan.autocompact_failures, len(model.requests)) == (ContextOutcome.READY, 2, 1)
    assert plan.edits == []
    assert plan.detail == "Overloaded"


def test_after_three_in_vain_none_is_tried_until_the_window_is_full():
    some = grown(TALK)
    plan, model = prepared(some, OVERLOADED, autocompact_failures=3, last_usage=counted(2_500))
    assert (plan.outcome, plan.autocompact_failures, model.requests) == (ContextOutcome.READY, 3, [])
    plan, model = prepared(some, OVERLOADED, autocompact_failures=3, last_usage=counted(WINDOW))
    assert (plan.outcome, len(model.requests)) == (ContextOutcome.TOO_LARGE, 1)
    assert plan.detail == f"The context has about {WINDOW + 8} tokens, and the window {WINDOW}. Overloaded"
    assert prepared(some, autocompact_failures=3, last_usage=counted(WINDOW))[0].outcome == ContextOutcome.COMPACTED


def test_a_compaction_that_can_make_no_room_is_not_tried():
    history = grown([user("go"), *(assistant("word " * 50) for _ in range(6)), user("on")])
    plan, model = prepared(history, fixed_tokens=2_200)
    assert (plan.outcome, model.requests) == (ContextOutcome.READY, [])


def test_a_prompt_larger_than_the_window_is_held_back():
    plan, model = prepared([user("word " * 4_000)])
    assert (plan.outcome, model.requests) == (ContextOutcome.TOO_LARGE, [])
    assert plan.detail.startswith("The context has about 50")


def test_what_only_our_estimate_finds_too_large_is_sent_unless_it_is_by_far():
    prompt = [user("x" * 4 * (WINDOW + 100))]
    assert prepared(prompt)[0].outcome == ContextOutcome.READY


# ---- stages of the program's own


def test_a_program_may_replace_microcompact():
    history = History([user("go"), *tool_turns(2)])

    def first_two(seen):
        assert seen.history is history
        return seen.history.messages[:3]

    plan, _ = prepared(history, microcompact=first_two)
    apply_edits(history, plan.edits)
    assert history.messages == [user("go"), *tool_turns(1)]
    assert [edit.stage for edit in plan.edits] == ["microcompact"]


@pytest.mark.parametrize("turn", [2, 9])
def test_a_program_may_replace_autocompact_by_something_that_waits(turn):
    history = History([user("go"), *tool_turns(2)])

    async def anew(seen):
        await asyncio.sleep(0)
        return [{"role": "user", "content": "Everything is done."}]

    plan, model = prepared(history, autocompact=anew, turn=turn, last_compaction_turn=1)
    assert plan.outcome == ("refilled" if turn == 2 else "compacted")
    assert model.requests == []
    apply_edits(history, plan.edits)
    assert history.messages == [user("Everything is done.")]


def test_a_replacement_that_leaves_all_as_it_is_is_no_compaction():
    for answer in (lambda seen: None, lambda seen: seen.history.messages):
        plan, _ = prepared([user("go")], microcompact=answer, autocompact=answer)
        assert (plan.outcome, plan.edits) == (ContextOutcome.READY, [])


def test_what_a_replacement_returns_is_made_valid():
    history = History([user("go"), *tool_turns(2)])
    plan, _ = prepared(history, microcompact=lambda seen: seen.history.messages[2:])
    apply_edits(history, plan.edits)
    assert violations(history.messages) == []


def test_a_stage_that_raises_ends_in_failed_with_its_name():
    def breaks(seen):
        raise KeyError("nothing")

    plan, _ = prepared([user("go")], microcompact=breaks)
    assert (plan.outcome, plan.edits) == (ContextOutcome.FAILED, [])
    assert plan.detail == "The stage microcompact failed: KeyError: 'nothing'"


def test_stages_are_data():
    def add(draft):
        draft.replace("note", 0, 1, [user("changed")], "the prompt")

    pipeline = ContextPipeline({"note": add})
    plan = asyncio.run(pipeline.prepare(view([user("go")])))
    assert [edit.messages for edit in plan.edits] == [(user("changed"),)]


# ---- cost


def test_a_calm_turn_looks_only_at_what_is_new(monkeypatch):
    """Neither a message nor its tokens are read again: the work of a turn is flat in the length of the history."""
    read: list[slice] = []
    monkeypatch.setattr(History, "__getitem__", noting(read, History.__getitem__))
    monkeypatch.setattr(History, "__iter__", lambda self: pytest.fail("the whole history was read"))
    history = grown([user("go")])
    limits = LoopLimits(context_window=1_000_000)
    looks = []
    for number in range(60):
        for message in tool_turns(1, first=number):
            history.append(message)
        read.clear()
        plan, _ = prepared(history, limits=limits)
        assert plan.edits == []
        looks.append([(index.start, len(history)) for index in read])
    assert all(end - start <= 3 for turn in looks[1:] for start, end in turn)
    assert {len(turn) for turn in looks} == {2}
