"""Where a history may be cut."""

from hypothesis import given

from fsm_agent.context.cuts import cut_before, cut_keeping, cuts, live_prompts, prompt_in, prompts
from fsm_agent.session.history import History
from fsm_agent.session.validator import violations
from tests.session.histories import assistant, call, histories, result, server_result, server_use, text, user


@given(histories())
def test_both_sides_of_every_cut_are_valid(messages):
    history = History(messages)
    for cut in cuts(history):
        assert violations(messages[:cut]) == []
        assert violations([user("before"), *messages[cut:]]) == []


@given(histories(ends="user"))
def test_a_history_about_to_be_sent_may_be_cut_at_both_ends(messages):
    found = cuts(History(messages))
    assert found[0] == 0
    assert found[-1] == len(messages) or messages[-1]["content"][0]["type"] == "tool_result"


def test_no_cut_is_between_a_call_and_its_result_or_inside_a_turn_of_the_model():
    history = History(
        [
            user("go"),
            assistant(call("a")),
            user(result("a")),
            assistant(server_use("srvtoolu_1")),
            assistant(server_result("srvtoolu_1"), server_use("srvtoolu_2"), call("b")),
            user(result("b")),
            user("also"),
            assistant(server_result("srvtoolu_2"), text("done")),
        ]
    )
    assert cuts(history) == [0, 1, 3, 8]
    assert [cut_before(history, index) for index in range(9)] == [0, 1, 1, 3, 3, 3, 3, 3, 8]


def test_no_cut_is_at_the_end_while_calls_are_open():
    assert cuts(History([user("go"), assistant(call("a"))])) == [0, 1]


@given(histories())
def test_the_tail_is_the_longest_within_its_tokens(messages):
    history = History(messages)
    for tokens in (0, history.tokens // 4, history.tokens):
        cut = cut_keeping(history, tokens)
        legal = cuts(history)
        assert cut in legal
        earlier = [one for one in legal if one < cut]
        if earlier:
            assert history.part(earlier[-1]).tokens > tokens


def test_a_prompt_is_what_the_user_wrote_and_nothing_else():
    history = History(
        [
            user("<conversation_summary>\nold"),
            user("first", purpose="prompt"),
            assistant(call("a")),
            user(result("a"), text("unknown")),
            user("go on", purpose="ask_to_continue_cut"),
            user("second", purpose="prompt"),
            user("and", purpose="queued"),
        ]
    )
    assert prompts(history) == [1, 3, 5, 6]
    assert live_prompts(history) == [5, 6]
    assert prompt_in(history[3]) == user(text("unknown"))
