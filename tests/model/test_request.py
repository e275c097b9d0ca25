"""Requests are joined from bytes in a stable order, so that each is a prefix of the next."""

import json
from itertools import pairwise
from typing import Any

import pytest

from fsm_agent.model.request import RequestTemplate
from fsm_agent.session.history import History
from fsm_agent.session.message import Message

TOOLS = [{"name": "read", "description": "Reads.", "input_schema": {"type": "object"}}]


def messages(*texts: str) -> bytes:
    items = [{"role": ("user", "assistant")[at % 2], "content": text} for at, text in enumerate(texts)]
    return json.dumps(items, separators=(",", ":")).encode()


def body(template: RequestTemplate, **options: Any) -> dict[str, Any]:
    return template.request(**{"model": "m", "messages": messages("Hi"), "max_tokens": 9, **options}).json()


def test_a_request_holds_what_the_template_was_given():
    template = RequestTemplate(
        system=[{"type": "text", "text": "Be brief."}],
        tools=TOOLS,
        tool_choice={"type": "auto"},
        thinking={"type": "adaptive"},
        extra={"metadata": {"user_id": "u"}, "stop_sequences": ["END"]},
    )
    assert body(template) == {
        "model": "m",
        "max_tokens": 9,
        "stream": True,
        "metadata": {"user_id": "u"},
        "stop_sequences": ["END"],
        "thinking": {"type": "adaptive"},
        "tool_choice": {"type": "auto"},
        "system": [{"type": "text", "text": "Be brief."}],
        "tools": TOOLS,
        "cache_control": {"type": "ephemeral"},
        "messages": [{"role": "user", "content": "Hi"}],
    }


def test_a_body_is_a_prefix_of_the_next_one():
    template = RequestTemplate(system="Be brief.", tools=TOOLS)
    bodies = [
        template.request(model="m", messages=messages(*"abcdefgh"[: 2 * turn + 1]), max_tokens=9).body
        for turn in range(4)
    ]
    for earlier, following in pairwise(bodies):
        assert following.startswith(earlier.removesuffix(b"]}"))


def test_the_order_of_keys_in_a_tool_is_the_callers():
    tool = {"name": "n", "input_schema": {"type": "object", "properties": {"b": {}, "a": {}}}, "description": "d"}
    sent = RequestTemplate(tools=[tool]).request(model="m", messages=b"[]", max_tokens=9).body
    assert json.dumps(tool, separators=(",", ":")).encode() in sent


@pytest.mark.parametrize("system", [None, "", " \n", [], [{"type": "text", "text": " "}]])
def test_a_blank_system_prompt_is_left_out(system: Any):
    assert "system" not in body(RequestTemplate(system=system))


def test_a_request_may_replace_system_prompt_and_tools():
    template = RequestTemplate(system="one", tools=TOOLS, tool_choice={"type": "any"})
    replaced = body(template, system="two", tools=None)
    assert replaced["system"] == "two"
    assert not {"tools", "tool_choice"} & replaced.keys()
    assert body(template, tool_choice={"type": "none"})["tool_choice"] == {"type": "none"}
    assert body(template)["system"] == "one"


def test_betas_go_into_header_and_query():
    request = RequestTemplate(betas=["b-2", "a-1", "b-2"]).request(model="m", messages=b"[]", max_tokens=9)
    assert (request.headers, request.query) == ({"anthropic-beta": "b-2,a-1"}, {"beta": "true"})
    plain = RequestTemplate().request(model="m", messages=b"[]", max_tokens=9)
    assert (plain.headers, plain.query) == ({}, {})


def test_the_moving_cache_mark_gives_way_to_four_of_the_callers():
    mark = {"cache_control": {"type": "ephemeral"}}
    system = [{"type": "text", "text": str(at), **mark} for at in range(3)]
    template = RequestTemplate(system=system)
    assert "cache_control" in body(template)
    marked = json.dumps([{"role": "user", "content": [{"type": "text", "text": "x", **mark}]}], separators=(",", ":"))
    assert "cache_control" not in body(template, messages=marked.encode())


def test_text_about_cache_marks_is_no_cache_mark():
    said = '"cache_control": {"type"} ' * 4
    assert "cache_control" in body(RequestTemplate(system=said), messages=messages(said))


def test_the_cache_mark_can_be_left_out_or_chosen():
    assert "cache_control" not in body(RequestTemplate(cache=False))
    hour = {"type": "ephemeral", "ttl": "1h"}
    assert body(RequestTemplate(extra={"cache_control": hour}))["cache_control"] == hour


def test_a_body_is_strict_utf_8():
    request = RequestTemplate(system="h\u00e9 \ud83d").request(model="m", messages=b"[]", max_tokens=9)
    assert request.json()["system"] == "h\u00e9 \ufffd"
    assert "h\u00e9".encode() in request.body


def test_fixed_tokens_are_those_of_system_prompt_and_tools():
    assert RequestTemplate(cache=False).fixed_tokens() == 0
    template = RequestTemplate(tools=TOOLS)
    assert template.fixed_tokens("x" * 4_000) - template.fixed_tokens() in (1_002, 1_003)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"extra": {"messages": []}}, "extra holds 'messages'"),
        ({"extra": {"temperature": float("nan")}}, "is not JSON"),
        ({"extra": {"metadata": object()}}, "is not JSON"),
        ({"tool_choice": {"type": "function"}}, "tool_choice has the type 'function'"),
        ({"tool_choice": {"type": "any"}}, "needs tools"),
        ({"tool_choice": {"type": "tool", "name": "x"}, "tools": TOOLS}, "names the tool 'x'"),
        ({"thinking": {"type": "on"}}, "thinking has the type 'on'"),
        ({"betas": "context-1m"}, "give a list of names"),
        ({"betas": ["a,b"]}, "is the name of a beta"),
        ({"betas": [""]}, "is the name of a beta"),
        ({"tools": [{"name": str(n), "cache_control": {"type": "ephemeral"}} for n in range(5)]}, "5 cache marks"),
    ],
)
def test_what_no_request_could_be_made_of_is_refused_at_once(options: dict[str, Any], why: str):
    with pytest.raises(ValueError, match=why):
        RequestTemplate(**options)


@pytest.mark.parametrize("marks", range(6))
def test_a_history_that_is_not_copied_gives_the_same_request(marks: int):
    template = RequestTemplate(system="Be brief.", tools=TOOLS)
    block = {"type": "text", "text": "Hi", "cache_control": {"type": "ephemeral"}}
    history = History([Message({"role": "user", "content": [{"type": "text", "text": "?"}, *[block] * marks]})])
    copied = template.request(model="m", messages=history.encode(), max_tokens=9)
    assert template.request(model="m", messages=history.encoded(), max_tokens=9) == copied
    assert copied.surplus_cache_marks == max(0, marks - 4)


def test_the_container_of_the_last_reply_is_sent_unless_the_caller_names_another():
    def container(extra, known):
        return (
            RequestTemplate(extra=extra)
            .request(model="m", messages=b"[]", max_tokens=9, container=known)
            .json()
            .get("container")
        )

    assert container(None, None) is None
    assert container(None, "c_1") == "c_1"
    assert container({"container": "own"}, None) == "own"
    assert container({"container": "own"}, "c_1") == "own"
    assert container({"container": {"skills": []}}, None) == {"skills": []}
    assert container({"container": {"skills": []}}, "c_1") == {"id": "c_1", "skills": []}
