"""The path of a run is told shortly, and nothing of it is lost."""

from hypothesis import given
from hypothesis import strategies as st

from fsm_agent.cli.path import folded, path_text


@given(st.lists(st.sampled_from("abc"), max_size=60))
def test_unfolding_gives_the_trace_back(trace: list[str]):
    assert [trigger for times, part in folded(trace) for _ in range(times) for trigger in part] == trace


def test_a_long_run_is_one_short_line():
    trace = ["context_ready", "tools_requested", "next_turn"] * 199 + ["context_ready", "response_ended", "complete"]
    assert path_text(trace, " > ") == (
        "199 x (context_ready > tools_requested > next_turn) > context_ready > response_ended > complete"
    )


def test_a_single_repeated_trigger_needs_no_parentheses():
    assert path_text(["a", "b", "b", "b", "c"], " > ") == "a > 3 x b > c"
