"""Tokens are counted once, whatever the wire leaves out."""

import math
from typing import Any

import pytest

from fsm_agent.model.prices import Price, cost
from fsm_agent.model.usage import Usage


def test_usages_add_up():
    one = Usage.from_wire({"input_tokens": 1, "output_tokens": 2, "server_tool_use": {"web_search_requests": 1}})
    two = Usage.from_wire({"cache_creation_input_tokens": 4, "server_tool_use": {"web_search_requests": 2}})
    both = one + two
    assert (both.total, both.requests, both.server_tool_use) == (7, 2, {"web_search_requests": 3})


def test_the_context_is_that_of_the_last_response_and_not_the_sum():
    usage = Usage()
    for _ in range(12):
        usage = usage + Usage.from_wire({"cache_read_input_tokens": 15_000, "output_tokens": 10})
    assert (usage.total, usage.context_tokens) == (180_120, 15_010)


@pytest.mark.parametrize(
    "wire",
    [
        None,
        {},
        {"input_tokens": None},
        {"input_tokens": -5, "output_tokens": True, "cache_read_input_tokens": "7"},
        {"iterations": None, "server_tool_use": []},
        {"iterations": [None, 3]},
    ],
)
def test_what_is_missing_or_odd_counts_as_nothing(wire: Any):
    assert Usage.from_wire(wire).total == 0


def test_a_server_side_compaction_is_billed_beside_the_top_level_counts():
    wire = {
        "input_tokens": 162,
        "output_tokens": 11,
        "iterations": [
            {"type": "compaction", "input_tokens": 99_195, "output_tokens": 81},
            {"type": "message", "input_tokens": 162, "output_tokens": 11},
        ],
    }
    usage = Usage.from_wire(wire)
    assert (usage.input_tokens, usage.output_tokens, usage.context_tokens) == (99_357, 92, 173)


def test_iterations_of_messages_are_in_the_top_level_counts():
    wire = {
        "input_tokens": 2_482,
        "output_tokens": 166,
        "iterations": [
            {"type": "message", "input_tokens": 1_128, "output_tokens": 155},
            {"type": "message", "input_tokens": 1_354, "output_tokens": 11},
        ],
    }
    usage = Usage.from_wire(wire)
    assert (usage.total, usage.context_tokens) == (2_648, 1_365)


def test_a_usage_is_a_valid_model_of_its_own():
    usage = Usage.from_wire({"input_tokens": 3, "server_tool_use": {"a": 1}}) + Usage()
    assert Usage.model_validate(usage.model_dump()) == usage


def test_cost_counts_each_kind_of_token_at_its_price():
    usage = Usage(
        input_tokens=1_000_000,
        output_tokens=1_000_000,
        cache_creation_input_tokens=1_000_000,
        cache_read_input_tokens=1_000_000,
    )
    assert cost(usage, Price(input=3, output=15)) == pytest.approx(3 + 15 + 3.75 + 0.3)
    assert cost(usage, Price(input=3, output=15, cache_write=6, cache_read=0)) == 24


@pytest.mark.parametrize("price", [-1.0, math.nan, math.inf])
def test_a_price_that_is_none_is_refused(price: float):
    with pytest.raises(ValueError, match="US dollars per million tokens"):
        Price(input=1, output=price)
