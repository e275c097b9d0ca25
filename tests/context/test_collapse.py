"""Early stretches of work, staged as digests and drained on overflow."""

import pytest
from hypothesis import given

from fsm_agent.context import collapse
from fsm_agent.context.collapse import digest, drain, folded
from fsm_agent.context.compaction import compacted_messages
from fsm_agent.context.cuts import cuts
from fsm_agent.context.view import Draft, apply_edits
from fsm_agent.session.history import History
from fsm_agent.session.validator import violations
from tests.context.views import view
from tests.session.histories import assistant, call, histories, refusal, result, tool_turns, user

WORK = [user("go", purpose="prompt"), *tool_turns(20, 500)]


def staged(messages):
    history = History(messages)
    collapse.apply(Draft(view(history)))
    return history


@pytest.mark.slow
@given(histories(ends="user", max_prompts=2, max_groups=3))
def test_folding_at_every_cut_leaves_a_valid_history_that_can_be_folded_and_compacted_again(messages):
    for cut in cuts(History(messages)):
        once = folded(History(messages), cut) + messages[cut:]
        assert violations(once) == []
        assert refusal(once) is None
        history = History(once)
        for again in cuts(history):
            assert violations(folded(history, again) + once[again:]) == []
            assert violations(compacted_messages(history, again, "x") + once[again:]) == []


def test_what_was_staged_is_drained():
    history = staged(WORK)
    before = history.encode()
    edits = drain(view(history))
    assert history.encode() == before
    apply_edits(history, edits)
    prompt, note, *tail = history.messages
    assert prompt == user("go")
    assert note["content"].startswith('[Earlier steps, folded. What was done:]\n- read({"path": "f0.py"}) -> 0000xxx')
    assert tail == WORK[-len(tail) :]
    (edit,) = edits
    assert edit.tokens_after < edit.tokens_before / 2


def test_nothing_is_drained_that_was_not_staged():
    assert drain(view(WORK)) == []


def test_nothing_is_staged_while_the_context_is_small():
    assert drain(view(staged([user("go"), *tool_turns(5, 500)]))) == []


def test_what_was_staged_before_an_edit_is_not_drained():
    history = staged(WORK)
    history.replace(0, 1, [user("went")])
    assert drain(view(history)) == []


def test_a_drain_that_would_free_little_is_none():
    assert drain(view(staged([user("go " * 3_000), *tool_turns(3, 100)]))) == []


def test_prompts_stay_as_they_are():
    messages = [user("one"), *tool_turns(8, 500), user("two"), *tool_turns(8, 500, first=8), user("three")]
    history = staged(messages)
    apply_edits(history, drain(view(history)))
    contents = [message["content"] for message in history.messages if message["role"] == "user"]
    assert [content for content in contents if content in ("one", "two", "three")] == ["one", "two", "three"]


def test_a_digest_tells_errors_and_leaves_out_the_middle():
    history = History([user("go"), assistant(call("a", "run")), user(result("a", "no such file", is_error=True))])
    assert digest(history, 0, 3) == ["- user: go", "- run({}) -> error: no such file"]
    lines = digest(History(tool_turns(30)), 0, 60, lines=10)
    assert len(lines) == 10
    assert lines[3] == "- (21 steps are left out here)"
    assert "f29.py" in lines[-1]


def test_staging_again_waits_until_there_is_something_new():
    history = staged(WORK)
    mark = history.marks["collapse"]
    history.append(user("a little"))
    collapse.apply(Draft(view(history)))
    assert history.marks["collapse"] is mark
    for message in tool_turns(5, 500, first=20):
        history.append(message)
    collapse.apply(Draft(view(history)))
    assert history.marks["collapse"] != mark
