"""The generator of histories draws what is valid, and all kinds of it."""

from functools import partial

import pytest
from hypothesis import Phase, find, given, settings

from fsm_agent.session.validator import violations
from tests.session.histories import histories, refusal


@given(histories(ends="user"))
def test_what_is_drawn_is_valid_and_the_api_takes_it(messages):
    assert violations(messages) == []
    assert refusal(messages) is None


QUICK = settings(database=None, phases=[Phase.generate])  # the first will do: it need not be the smallest


def kinds(messages):
    return {
        block["type"] for message in messages if isinstance(message["content"], list) for block in message["content"]
    }


def has(kind, messages):
    return kind in kinds(messages)


@pytest.mark.filterwarnings("ignore:Generating overly large repr")  # of what is found: nobody reads it
def test_every_kind_of_block_is_drawn():
    wanted = {
        "text",
        "image",
        "thinking",
        "redacted_thinking",
        "tool_use",
        "tool_result",
        "server_tool_use",
        "web_search_tool_result",
    }
    for kind in wanted:
        found = find(histories(), partial(has, kind), settings=QUICK)
        assert violations(found) == []
