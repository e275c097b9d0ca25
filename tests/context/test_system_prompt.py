"""The system prompt, assembled once."""

import pytest

from fsm_agent.context.system_prompt import assembled
from tests.session.histories import image, text

MARKED = {**text("x"), "cache_control": {"type": "ephemeral"}}


def test_parts_of_all_kinds_become_text_blocks_in_their_order():
    assert assembled("a", [text("b"), ["c"]], MARKED) == [text("a"), text("b"), text("c"), MARKED]


def test_blanks_are_left_out_and_surrogates_replaced():
    assert assembled(None, "", " \n", text(" "), [], "a\ud800") == [text("a\ufffd")]


@pytest.mark.parametrize(
    ("part", "message"),
    [
        (image(), "it must be a text block"),
        ({"type": "text"}, "it must be a text block"),
        (3, "A part of the system prompt is a int; give a string or text blocks."),
        ([MARKED] * 5, "The system prompt has 5 cache marks; the API takes 4."),
    ],
)
def test_what_the_api_refuses_is_refused_before(part, message):
    with pytest.raises(ValueError, match=message):
        assembled(part)
