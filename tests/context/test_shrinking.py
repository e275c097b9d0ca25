"""Snip and microcompact: what goes under pressure, and what stays."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsm_agent.context import microcompact, snip
from fsm_agent.context.microcompact import NOTE, cleared
from fsm_agent.context.snip import redundant_groups
from fsm_agent.context.view import Draft, apply_edits
from fsm_agent.session.history import History
from fsm_agent.session.validator import violations
from tests.context.views import counted, view
from tests.session.histories import assistant, call, histories, image, refusal, result, text, tool_turns, user

WORK = [user("go"), *tool_turns(20, 500)]


def after(stage, messages, **more):
    """The history after the stage, and its edits."""
    history = History(messages)
    draft = Draft(view(history, **more))
    stage.apply(draft)
    assert history.messages == messages
    apply_edits(history, draft.edits)
    return history, draft.edits


# ---- snip


def read(number, content, **more):
    return [assistant(call(f"c{number}", path="a.py"), **more), user(result(f"c{number}", content))]


def test_a_call_that_was_repeated_with_the_same_result_is_dropped():
    same = "x" * 4_000
    messages = [user("go"), *read(1, same), *tool_turns(2), *read(2, same), *tool_turns(1, first=5), *read(3, same)]
    history, (edit,) = after(snip, messages)
    assert history.messages == [user("go"), *tool_turns(2), *tool_turns(1, first=5), *read(3, same)]
    assert edit.removed == "2 calls were dropped that were repeated later."
    assert edit.tokens_before - edit.tokens_after > 2_000


@pytest.mark.parametrize(
    "messages",
    [
        [*read(1, "x" * 9_000), *read(2, "y" * 9_000)],
        [
            assistant(text("I look."), call("a")),
            user(result("a", "x" * 9_000)),
            assistant(call("b")),
            user(result("b", "x" * 9_000)),
        ],
        [
            assistant(call("a")),
            user(result("a", "x" * 9_000), text("and?")),
            assistant(call("b")),
            user(result("b", "x" * 9_000)),
        ],
        [
            assistant(call("a"), call("b", x=1)),
            user(result("a", "x" * 9_000), result("b", "x")),
            assistant(call("c")),
            user(result("c", "x" * 9_000)),
        ],
    ],
    ids=["another result", "something said", "the user said something", "one of two calls"],
)
def test_what_says_more_than_the_later_one_stays(messages):
    assert after(snip, [user("go"), *messages])[1] == []


def test_without_pressure_or_for_little_nothing_is_dropped():
    assert after(snip, [user("go"), *read(1, "x" * 500), *read(2, "x" * 500)])[1] == []
    assert after(snip, [user("go " * 9_000), *read(1, "x"), *read(2, "x")])[1] == []


@given(histories(ends="user"), st.data())
def test_what_snip_leaves_is_valid(messages, data):
    groups = [index for index in range(len(messages) - 1) if History(messages)[index].calls]
    for index in data.draw(st.lists(st.sampled_from(groups), max_size=2)) if groups else []:
        again = [dict(block) for block in messages[index]["content"] if block["type"] == "tool_use"]
        if len(again) == len(messages[index]["content"]):  # the same calls once more, at the end
            names = {block["id"]: f"{block['id']}x{len(messages)}" for block in again}
            results = [block for block in messages[index + 1]["content"] if block["type"] == "tool_result"]
            messages = [
                *messages,
                assistant(*({**block, "id": names[block["id"]]} for block in again)),
                user(*({**block, "tool_use_id": names[block["tool_use_id"]]} for block in results)),
            ]
    history = History(messages)
    gone = {place for index in redundant_groups(history) for place in (index, index + 1)}
    kept = [message for index, message in enumerate(messages) if index not in gone]
    assert violations(kept) == []
    assert refusal(kept) is None


# ---- microcompact


def test_old_results_become_a_note_and_the_newest_stay():
    history, (edit,) = after(microcompact, WORK)
    contents = [
        block["content"] for message in history.messages for block in message["content"] if "tool_use_id" in block
    ]
    assert contents[:15] == [NOTE] * 15
    assert contents[15:] == [WORK[2 * number]["content"][0]["content"] for number in range(16, 21)]
    assert edit.removed == "15 old tool results were replaced by a note."
    assert history.messages[1::2] == WORK[1::2]


def test_the_place_of_a_whole_result_stays_in_the_note():
    notice = "[Cut: this is the beginning of a result of 90000 characters. All of it is in /store/c0.txt]"
    first = [assistant(call("c0")), user(result("c0", "x" * 1_000 + "\n" + notice))]
    history, _ = after(microcompact, [user("go"), *first, *tool_turns(20, 500, first=1)])
    assert history.messages[2] == user(result("c0", f"{NOTE}\n{notice}"))


def test_images_of_old_results_go_too():
    first = [assistant(call("c0")), user(result("c0", [image(), text("seen")]))]
    history, _ = after(microcompact, [user("go"), *first, *tool_turns(20, 500, first=1)])
    assert history.messages[2] == user(result("c0", NOTE))


def test_without_pressure_or_for_little_the_cache_is_left_alone():
    assert after(microcompact, [user("go"), *tool_turns(10, 500)])[1] == []
    assert after(microcompact, [user("go " * 9_000), *tool_turns(6, 500)])[1] == []


def test_the_pressure_is_what_the_api_counted():
    history = History()
    for message in [user("go"), *tool_turns(8, 500)]:
        history.append(message)
    for tokens, edits in ((500, 0), (2_900, 1)):
        draft = Draft(view(history, last_usage=counted(tokens)))
        microcompact.apply(draft)
        assert len(draft.edits) == edits


def test_once_cleared_a_second_time_changes_nothing():
    history, _ = after(microcompact, WORK)
    assert cleared(history) == {}


@given(histories(ends="user"), st.integers(0, 4))
def test_what_microcompact_leaves_is_valid(messages, keep):
    history = History(messages)
    for index, message in cleared(history, keep).items():
        history.replace(index, index + 1, [message])
    assert violations(history.messages) == []
    assert refusal(history.messages) is None
    assert [entry.results for entry in history] == [entry.results for entry in History(messages)]
