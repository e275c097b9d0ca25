"""A summary in the place of a prefix: at every cut, twice in a row, and when the rescue itself fails."""

import asyncio
import json

import pytest
from hypothesis import given

from fsm_agent.context.compaction import INSTRUCTION, compact, compacted_messages, reactive, summary_request
from fsm_agent.context.cuts import SUMMARY_OPENING, cut_before, cuts, live_prompts
from fsm_agent.context.view import Draft, SummaryResult, apply_edits
from fsm_agent.machine import LoopLimits, ResponseOutcome
from fsm_agent.session.history import History
from fsm_agent.session.message import text_of
from fsm_agent.session.validator import violations
from tests.context.views import LIMITS, Summaries, view
from tests.session.histories import MODELS, assistant, call, histories, image, refusal, result, text, tool_turns, user

TOO_LONG = SummaryResult(ResponseOutcome.PROMPT_TOO_LONG, detail="prompt is too long")
WORK = [
    user("old task", purpose="prompt"),
    *tool_turns(10, 400),
    assistant("Done.", model=MODELS[0]),
    user("new task", purpose="prompt"),
    *tool_turns(10, 400, first=10),
]


def reached(history, answers=(), **more):
    """The plan of a reactive compaction, with the model that was asked."""
    model = Summaries(*answers)
    plan = asyncio.run(reactive(view(history, model, **more.pop("view", {})), **more))
    return plan, model


# ---- valid whatever is cut


def replaced(messages, index):
    history = History(messages)
    cut = cut_before(history, index)
    history.replace(0, cut, compacted_messages(history, cut, "In short."))
    return history


@pytest.mark.slow
@given(histories(ends="user", max_prompts=2, max_groups=3))
def test_at_every_index_the_result_is_valid_and_so_is_that_of_a_second_compaction(messages):
    for index in range(len(messages) + 1):
        once = replaced(messages, index)
        assert violations(once.messages) == []
        assert refusal(once.messages) is None
        for again in range(len(once) + 1):
            assert violations(replaced(once.messages, again).messages) == []


@pytest.mark.slow
@given(histories(ends="user", max_groups=3))
def test_the_request_for_a_summary_is_valid_at_every_cut_and_attempt(messages):
    history = History(messages)
    draft = Draft(view(history, model=MODELS[0]))
    for cut in cuts(history)[1:]:
        for attempt in range(3):
            request = summary_request(draft, cut, attempt)
            if request is not None:
                sent = json.loads(request.body)
                assert violations(sent) == []
                assert refusal(sent) is None
                assert sent[-1] == user(INSTRUCTION)
                assert b'"image"' not in request.body


@given(histories(ends="user"))
def test_the_latest_prompt_stays_word_for_word(messages):
    history = History(messages)
    prompt = history[live_prompts(history)[-1]]
    for cut in cuts(history)[1:]:
        after = compacted_messages(history, cut, "In short.") + messages[cut:]
        assert text_of(prompt.message).split("\n")[-1] in text_of({"content": [text(text_of(m)) for m in after]})


# ---- what happens in a reactive compaction


def test_a_prefix_becomes_a_summary_and_the_tail_stays_the_same():
    history = History(WORK)
    before = history.snapshot()
    plan, model = reached(history)
    assert plan.outcome == "compacted"
    assert len(model.requests) == 1
    assert history.snapshot() == before
    apply_edits(history, plan.edits)
    summary, prompt, *tail = history.messages
    assert text_of(summary).startswith(SUMMARY_OPENING)
    assert "All is well." in text_of(summary)
    assert prompt == user("new task")
    assert tail == WORK[-len(tail) :]
    assert len(tail) >= 2
    (edit,) = plan.edits
    assert edit.tokens_before > edit.tokens_after


def test_earlier_prompts_are_told_as_past():
    history = History(WORK)
    apply_edits(history, reached(history)[0].edits)
    summary = text_of(history[0].message)
    assert "Earlier requests of the user, which are past:\n- old task\n" in summary
    assert "new task" not in summary
    assert "Work on the request that follows has begun" in summary


def test_what_the_user_added_to_the_prompt_stays_too():
    messages = [*WORK, user("and be quick", purpose="queued"), *tool_turns(10, 400, first=20)]
    history = History(messages)
    apply_edits(history, reached(history)[0].edits)
    assert [message["content"] for message in history.messages[1:3]] == ["new task", "and be quick"]


def test_one_huge_result_at_the_end_is_summarised_with_its_call():
    history = History([user("go"), *tool_turns(1, 40_000)])
    plan, _ = reached(history)
    apply_edits(history, plan.edits)
    assert [message["role"] for message in history.messages] == ["user", "user"]
    assert history[1].message == user("go")


def test_the_first_request_sends_the_head_as_it_was_sent_before():
    history = History(WORK)
    limits = LoopLimits(context_window=100_000)
    _, model = reached(history, view={"limits": limits, "model": MODELS[0]})
    body = model.requests[0].body
    instruction = json.dumps(user(INSTRUCTION), ensure_ascii=False, separators=(",", ":")).encode()
    assert body.endswith(b"," + instruction + b"]")
    assert history.encode(MODELS[0]).startswith(body.removesuffix(b"," + instruction + b"]"))


def test_images_are_left_out_of_the_request():
    history = History([user(text("look"), image()), *tool_turns(20, 400)])
    _, model = reached(history)
    assert "[Image removed: left out of the summary.]" in str(model.messages())
    assert "base64" not in str(model.messages())


@pytest.mark.parametrize(
    "reply", ["<summary>Short.</summary>", "Short.", "I think.\n<summary>\nShort.\n</summary> Bye.", "<summary>Short."]
)
def test_the_summary_is_found_in_the_reply(reply):
    history = History(WORK)
    apply_edits(history, reached(history, [reply])[0].edits)
    lines = text_of(history[0].message).split("\n")
    assert lines[2] == "Short."


def test_a_summary_cut_by_the_output_limit_is_taken_and_says_so():
    history = History(WORK)
    cut = SummaryResult(ResponseOutcome.MAX_TOKENS, "<summary>Half of")
    apply_edits(history, reached(history, [cut])[0].edits)
    assert "Half of\n[The summary was cut here.]" in text_of(history[0].message)


# ---- what fails


def test_each_attempt_is_shown_a_shorter_head_whose_oldest_groups_are_left_out():
    history = History(WORK)
    sizes, sent = [], []
    for attempt in range(4):
        plan, model = reached(history, [TOO_LONG], attempt=attempt)
        if plan.outcome == "failed":
            break
        assert plan.outcome == "head_too_long"
        sizes.append(len(model.requests[0].body))
        sent.append(model.messages())
    assert len(sizes) >= 3
    assert sizes == sorted(sizes, reverse=True)
    assert "read({" in sent[1][0]["content"]
    assert all(violations(messages) == [] for messages in sent)
    newest = [message for message in sent[-1] if message["role"] == "assistant"][-1]
    assert newest in history.messages


def test_when_nothing_shorter_is_left_no_request_is_made():
    plan, model = reached(History(WORK), [TOO_LONG], attempt=12)
    assert (plan.outcome, plan.edits, model.requests) == ("failed", (), [])
    assert plan.detail == "The request for a summary cannot be made any shorter."


def test_a_head_larger_than_the_window_is_shortened_at_once():
    history = History([user("go"), *tool_turns(40, 1_000)])
    plan, model = reached(history)
    assert plan.outcome == "compacted"
    assert len(model.requests[0].body) < 4 * LIMITS.context_window


@pytest.mark.parametrize(
    ("answer", "detail"),
    [
        ("", "The model wrote no summary (end_turn)."),
        ("<summary> </summary>", "The model wrote no summary (end_turn)."),
        (SummaryResult(ResponseOutcome.TOOL_USE, "Let me see."), "The model wrote no summary (tool_use)."),
        (SummaryResult(ResponseOutcome.REFUSAL, "No."), "The model wrote no summary (refusal)."),
        (SummaryResult(ResponseOutcome.RETRYABLE, detail="Overloaded"), "Overloaded"),
        (SummaryResult(None, detail="The budget is spent."), "The budget is spent."),
    ],
)
def test_without_a_summary_the_compaction_fails_and_changes_nothing(answer, detail):
    plan, _ = reached(History(WORK), [answer])
    assert (plan.outcome, plan.edits, plan.detail) == ("failed", (), detail)


def test_a_summary_no_shorter_than_what_it_replaces_is_a_failure():
    plan, _ = reached(History(WORK), ["blah " * 4_000])
    assert (plan.outcome, plan.edits) == ("failed", ())
    assert plan.detail.startswith("The summary is no shorter than what it replaces")


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [user("go " * 2_000)],
        [user(f"{SUMMARY_OPENING}\nold"), user("go " * 2_000)],
        [user("go"), assistant(call("a")), user(result("a"))][:1],
    ],
)
def test_where_nothing_can_be_removed_no_summary_is_asked_for(messages):
    plan, model = reached(History(messages))
    assert (plan.outcome, plan.edits, model.requests) == ("failed", (), [])
    assert plan.detail == "There is nothing in the conversation that a compaction could remove."


async def test_a_cancel_goes_through_and_leaves_the_history_alone():
    async def waits(request):
        await asyncio.Event().wait()

    history = History(WORK)
    task = asyncio.ensure_future(compact(Draft(view(history, waits)), 3))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert history.messages == WORK
