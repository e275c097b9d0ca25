"""A reply is put together from its events, and what is resent of it is what the API takes back."""

import json
from typing import Any

import pytest

from fsm_agent.model.faults import PROTOCOL, StreamFault
from fsm_agent.model.reply import ReplyAssembler
from fsm_agent.session.validator import violations
from tests.model.streams import (
    PING,
    STOPPED,
    begin,
    call,
    delta,
    end,
    fed,
    server_call,
    server_result,
    start,
    stop,
    text,
    thinking,
    whole,
)

PROMPT = {"role": "user", "content": "Go."}


def content(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    kept: list[dict[str, Any]] = fed(events).message()["content"]
    return kept


def test_a_text_is_the_sum_of_its_deltas():
    events = [
        start(),
        begin(0, {"type": "text", "text": "A"}),
        delta(0, type="text_delta", text="b"),
        delta(0, type="text_delta", text="c"),
        end(0),
        stop("end_turn"),
        STOPPED,
    ]
    reply = fed(events)
    assert reply.message() == {"role": "assistant", "content": [{"type": "text", "text": "Abc"}]}
    assert (reply.text, reply.stop_reason, reply.message_id, reply.model) == ("Abc", "end_turn", "msg_1", "m")


def test_several_texts_are_joined():
    assert fed(whole(text("a"), text("b", 1))).text == "ab"


def test_thinking_and_its_signature_stay_byte_for_byte_and_in_place():
    events = whole(thinking(" hm\n\u00e9 ", 0, "Ab+/="), text("Let me see.", 1), thinking("", 2), call("{}", 3))
    assert content(events)[0] == {"type": "thinking", "thinking": " hm\n\u00e9 ", "signature": "Ab+/="}
    assert [block["type"] for block in content(events)] == ["thinking", "text", "thinking", "tool_use"]


def test_a_signature_in_pieces_is_joined():
    events = [
        start(),
        begin(0, {"type": "thinking", "thinking": "", "signature": ""}),
        delta(0, type="signature_delta", signature="AB"),
        delta(0, type="signature_delta", signature="CD"),
        end(0),
        *text("x", 1),
        stop("end_turn"),
    ]
    assert content(events)[0]["signature"] == "ABCD"


def test_thinking_without_a_signature_is_left_out():
    assert content(whole(thinking("hm", 0, ""), text("Hi.", 1))) == [{"type": "text", "text": "Hi."}]


def test_thinking_does_not_end_a_message():
    assert content(whole(text("Hi."), thinking("hm", 1))) == [{"type": "text", "text": "Hi."}]


def test_redacted_thinking_is_kept():
    redacted = {"type": "redacted_thinking", "data": "EmwK"}
    assert content(whole([begin(0, redacted), end(0)], text("Hi.", 1)))[0] == redacted


def test_blank_texts_are_left_out():
    assert content(whole(text(" \n"), call("{}", 1)))[0]["type"] == "tool_use"


def test_nulls_of_an_answer_are_not_resent_but_those_of_an_input_are():
    events = whole(call('{"a": null}', caller=None, toolset_name=None), reason="tool_use")
    assert content(events) == [{"type": "tool_use", "id": "t1", "name": "read", "input": {"a": None}}]


def test_citations_are_collected_without_the_nulls_that_requests_do_not_know():
    citation = {"type": "char_location", "cited_text": "x", "document_title": None, "file_id": None}
    events = [
        start(),
        begin(0, {"type": "text", "text": "", "citations": []}),
        delta(0, type="citations_delta", citation=citation),
        delta(0, type="text_delta", text="said"),
        end(0),
        stop("end_turn"),
    ]
    assert content(events)[0]["citations"] == [{"type": "char_location", "cited_text": "x", "document_title": None}]


def test_a_compaction_block_gets_its_content_from_a_delta():
    block = [
        begin(0, {"type": "compaction", "content": None}),
        delta(0, type="compaction_delta", content="sum"),
        end(0),
    ]
    assert content(whole(block, text("Hi.", 1)))[0] == {"type": "compaction", "content": "sum"}


def test_unknown_events_blocks_and_deltas_pass():
    events = [
        start(),
        PING,
        {"type": "weather", "rain": True},
        begin(0, {"type": "hologram", "shape": "cube"}),
        delta(0, type="colour_delta", colour="red"),
        end(0),
        stop("end_turn"),
        STOPPED,
    ]
    assert content(events) == [{"type": "hologram", "shape": "cube", "colour": "red"}]


def test_what_follows_message_stop_is_another_message():
    assert fed([*whole(text("one")), *whole(text("two"))]).text == "one"


def test_a_text_whose_end_is_missing_is_whole_with_its_message():
    events = [start(), *text("Hi.")[:-1], stop("end_turn"), STOPPED]
    assert content(events) == [{"type": "text", "text": "Hi."}]


# ---- tool calls


def test_an_input_is_parsed_when_its_block_is_complete():
    reply = fed([start(), *call('{"path": "a.t')[:-1]])
    assert reply.tool_calls == []
    reply.feed(delta(0, type="input_json_delta", partial_json='xt"}'))
    done = reply.feed(end(0))
    assert done is not None
    assert (done.id, done.name, done.input, done.input_error, done.index) == ("t1", "read", {"path": "a.txt"}, None, 0)
    assert done.raw_json == '{"path": "a.txt"}'


@pytest.mark.parametrize("raw", ["", " "])
def test_no_input_is_an_empty_input(raw: str):
    (only,) = fed(whole(call(raw), reason="tool_use")).tool_calls
    assert (only.input, only.input_error) == ({}, None)


def test_an_input_that_comes_whole_in_the_start_is_taken():
    block = [begin(0, {"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "a"}}), end(0)]
    reply = fed(whole(block, reason="tool_use"))
    assert reply.tool_calls[0].input == {"path": "a"}
    assert reply.message()["content"][0]["input"] == {"path": "a"}


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        ('{"path": "a.txt", "text": "half of', "Unterminated string starting at character 26 of 34"),
        ('{"a": 1} {"b": 2}', "Extra data at character 9"),
        ('{"a": NaN}', "NaN is no JSON"),
        ('["a"]', "JSON array"),
        ("null", "JSON literal"),
        ("3", "JSON number"),
        ('"a"', "JSON string"),
        ("[" * 100_000, "recursion"),
        ('{"a": ' + "9" * 5_000 + "}", "digits"),
    ],
)
def test_an_input_that_is_no_json_object_is_kept_with_its_error(raw: str, why: str):
    reply = fed(whole(call(raw), reason="tool_use"))
    (only,) = reply.tool_calls
    assert only.input == {}
    assert only.input_error is not None
    assert why in only.input_error
    assert only.raw_json == raw
    assert reply.message()["content"][0]["input"] == {}


def test_a_tool_cannot_change_what_is_resent():
    reply = fed(whole(call('{"a": [1]}'), reason="tool_use"))
    reply.tool_calls[0].input["a"].append(2)
    assert reply.message()["content"][0]["input"] == {"a": [1]}


def test_calls_are_numbered_in_their_order():
    reply = fed(whole(text("x"), call("{}", 1, call_id="a"), call("{}", 2, call_id="b"), reason="tool_use"))
    assert [(one.id, one.index) for one in reply.tool_calls] == [("a", 0), ("b", 1)]


def test_an_id_that_comes_twice_gets_a_fresh_one():
    reply = fed(
        whole(call("{}", 0, call_id="a"), call("{}", 1, call_id="a"), call("{}", 2, call_id="old"), reason="tool_use"),
        ["old"],
    )
    assert [one.id for one in reply.tool_calls] == ["a", "a_2", "old_2"]
    assert [block["id"] for block in reply.message()["content"]] == ["a", "a_2", "old_2"]


@pytest.mark.parametrize(
    ("given", "fresh"), [("call:1.2", "call_1_2"), ("", "toolu"), (None, "toolu"), ("\u00e9", "_")]
)
def test_an_id_that_the_api_would_not_take_back_is_replaced(given: Any, fresh: str):
    reply = fed(whole(call("{}", call_id=given), reason="tool_use"))
    assert reply.tool_calls[0].id == reply.message()["content"][0]["id"] == fresh


def test_a_call_without_a_name_can_still_be_resent():
    reply = fed(whole(call("{}", name=""), reason="tool_use"))
    assert reply.tool_calls[0].name == reply.message()["content"][0]["name"] == "unnamed"


# ---- order


@pytest.mark.parametrize(
    "events",
    [
        [STOPPED],
        [stop("end_turn")],
        text("x"),
        [start(), start()],
        [start(), STOPPED],
        [start(), stop(None), STOPPED],
        [start(), end(0)],
        [start(), delta(0, type="text_delta", text="x")],
        [start(), *text("x"), delta(0, type="text_delta", text="y")],
        [start(), *text("x"), end(0)],
        [start(), *text("x"), *text("y")],
        [start(), begin(0, {"text": "no type"})],
        [start(), {"type": "content_block_start", "index": 0}],
        [start(), {"type": "content_block_start", "index": "0", "content_block": {"type": "text", "text": ""}}],
        [start(), {"type": "content_block_stop", "index": []}],
        [start(), begin(0, {"type": "text", "text": ""}), {"type": "content_block_delta", "index": 0}],
        [start(), begin(0, {"type": "text", "text": ""}), delta(0, type="text_delta", text=None)],
        [start(), begin(0, {"type": "text", "text": ""}), delta(0, type="input_json_delta", partial_json="{}")],
        [start(), begin(0, {"type": "tool_use", "id": "a", "name": "n"}), delta(0, type="text_delta", text="x")],
        [start(), begin(0, {"type": "tool_use", "id": "a", "name": "n"}), delta(0, type="citations_delta")],
        [start(), begin(0, {"type": "text", "text": ""}), delta(0, text="x")],
        [start(), *call("{}")[:-1], stop("tool_use")],
        [start(), stop("end_turn"), *text("x")],
        [{"type": "message_start"}],
        [start(), {"type": "message_delta"}],
    ],
)
def test_an_event_out_of_order_is_a_fault_of_the_stream(events: list[dict[str, Any]]):
    with pytest.raises(StreamFault) as caught:
        fed(events)
    assert caught.value.kind == PROTOCOL
    assert caught.value.message.endswith(".")


# ---- what is kept of a reply that is not kept whole


def test_of_a_cut_reply_the_text_received_stays_and_no_call():
    events = [start(), *text("Done: "), *call("{}", 1), begin(2, {"type": "text", "text": ""})]
    reply = fed([*events, delta(2, type="text_delta", text="half")])
    assert reply.text_message() == {
        "role": "assistant",
        "content": [{"type": "text", "text": "Done: "}, {"type": "text", "text": "half"}],
    }


def test_of_a_cut_reply_only_signed_thinking_before_text_stays():
    signed = fed([start(), *thinking("hm"), *text("Hi", 1)])
    assert [block["type"] for block in (signed.text_message() or {})["content"]] == ["thinking", "text"]
    unsigned = fed([start(), *thinking("hm")[:2], *text("Hi", 1)])
    assert [block["type"] for block in (unsigned.text_message() or {})["content"]] == ["text"]
    behind = fed([start(), *text("Hi"), *thinking("hm", 1), *call("{", 2)[:2]])
    assert [block["type"] for block in (behind.text_message() or {})["content"]] == ["text"]


@pytest.mark.parametrize(
    "events", [[], [start()], [start(), *thinking("hm")], [start(), *text(" ")], whole(call("{}"))]
)
def test_a_reply_of_which_nothing_can_be_seen_leaves_no_message(events: list[dict[str, Any]]):
    assert fed(events).text_message() is None


def test_server_tools_stay_only_with_their_results():
    events = [start(), *server_call(0), *server_result(1), *text("Found.", 2), *server_call(3, "srvtoolu_2")]
    kept = (fed(events).text_message() or {})["content"]
    assert [block["type"] for block in kept] == ["server_tool_use", "web_search_tool_result", "text"]
    assert violations([PROMPT, {"role": "assistant", "content": kept}]) == []


def test_the_result_of_a_server_tool_that_was_paused_stays_though_nothing_else_does():
    reply = fed([start(), *server_result(0), *text("", 1)[:1]])
    assert (reply.text_message() or {})["content"][0]["type"] == "web_search_tool_result"


def test_a_paused_server_tool_is_resent_and_a_forgotten_one_is_not():
    paused = content(whole(text("Searching"), server_call(1), reason="pause_turn"))
    assert [block["type"] for block in paused] == ["text", "server_tool_use"]
    forgotten = content(whole(text("Searching"), server_call(1), reason="end_turn"))
    assert [block["type"] for block in forgotten] == ["text"]


def test_a_result_of_a_server_tool_that_nobody_asked_for_is_left_out():
    def kept(reply: ReplyAssembler) -> list[str]:
        for event in whole(server_result(0, "srvtoolu_7"), text("x", 1)):
            reply.feed(event)
        return [block["type"] for block in reply.message()["content"]]

    assert kept(ReplyAssembler(waiting_ids={"srvtoolu_7"})) == ["web_search_tool_result", "text"]
    assert kept(ReplyAssembler(waiting_ids=())) == ["text"]


def test_a_server_tool_has_one_use_and_one_result():
    events = whole(server_call(0), server_call(1), server_result(2), server_result(3), text("x", 4))
    assert [block["type"] for block in content(events)] == ["server_tool_use", "web_search_tool_result", "text"]


# ---- strict Unicode


def test_lone_surrogates_become_replacement_characters():
    raw = json.dumps({"a\ud83d": ["\udc00"]})
    events = whole(text("x\ud83d"), thinking("\ude00", 1), call(raw, 2), reason="tool_use")
    message = fed(events).message()
    json.dumps(message, ensure_ascii=False).encode()
    assert message["content"][0]["text"] == "x\ufffd"
    assert message["content"][2]["input"] == {"a\ufffd": ["\ufffd"]}
    assert fed(events).tool_calls[0].input == {"a\ufffd": ["\ufffd"]}


def test_a_character_cut_between_two_deltas_is_whole():
    events = [
        start(),
        begin(0, {"type": "text", "text": ""}),
        delta(0, type="text_delta", text="\ud83d"),
        delta(0, type="text_delta", text="\ude00"),
        end(0),
        stop("end_turn"),
    ]
    assert fed(events).text == "\U0001f600"


# ---- usage


def test_usage_of_the_end_takes_the_place_of_that_of_the_start():
    reply = fed([start(usage={"input_tokens": 10, "cache_read_input_tokens": 7, "output_tokens": 1}), *text("x")])
    assert reply.usage.total == 18
    reply.feed(stop("end_turn", input_tokens=12, cache_read_input_tokens=0, output_tokens=9))
    assert (reply.usage.input_tokens, reply.usage.cache_read_input_tokens, reply.usage.output_tokens) == (12, 7, 9)
    assert (reply.usage.requests, reply.usage.context_tokens) == (1, 28)


def test_a_reply_that_never_began_used_nothing():
    assert (fed([]).usage.total, fed([]).usage.requests) == (0, 0)


@pytest.mark.parametrize("usage", [None, {}, {"output_tokens": None}, {"output_tokens": "x"}, []])
def test_a_missing_usage_counts_nothing(usage: Any):
    ended = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage}
    assert fed([start(usage=usage), *text("x"), ended]).usage.total == 0


def test_the_context_of_a_server_tool_loop_is_not_the_sum_of_its_iterations():
    big = [begin(0, {"type": "web_search_tool_result", "tool_use_id": "s", "content": [{"x": "y" * 30_000}]}), end(0)]
    reply = fed([start(usage={"input_tokens": 2_000}), *big, *text("x", 1), stop("end_turn", input_tokens=400_000)])
    assert reply.usage.total == 400_005
    assert 12_000 < reply.usage.context_tokens < 13_000
