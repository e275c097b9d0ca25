"""Each rule of the Messages API: what it refuses, with status, type and text, and what it lets through."""

import re
from pathlib import Path

import pytest

import fsm_agent.testing.rules as rules
from fsm_agent.testing.rules import check_headers, check_size, parse_body, unknown_path, validate
from fsm_agent.testing.rules.settings import ApiSettings
from fsm_agent.testing.signatures import ReplyWatcher, SignatureBook
from tests.testing import (
    rule_cases_fields,
    rule_cases_media,
    rule_cases_messages,
    rule_cases_thinking,
    rule_cases_tools,
)
from tests.testing.rule_cases import BASE, OLD_MODEL, USER, assistant, call, request, result, said, user

CASES = [
    *rule_cases_fields.CASES,
    *rule_cases_messages.CASES,
    *rule_cases_tools.CASES,
    *rule_cases_thinking.CASES,
    *rule_cases_media.CASES,
]
REFUSED = [case for case in CASES if case.message is not None]
ACCEPTED = [case for case in CASES if case.message is None]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
def test_the_rule_refuses_with_the_text_of_the_api(case):
    refusal = validate(case.body, case.headers, settings=case.settings)
    assert refusal is not None
    assert (refusal.rule, refusal.message) == (case.rule, case.message)
    assert (refusal.status, refusal.type) == (case.status, case.type)


@pytest.mark.parametrize("case", ACCEPTED, ids=lambda case: case.id)
def test_the_rule_lets_a_right_request_through(case):
    assert validate(case.body, case.headers, settings=case.settings) is None


def test_every_rule_is_tested_both_ways():
    source = "".join(path.read_text() for path in Path(rules.__file__).parent.glob("*.py"))
    in_source = set(re.findall(r'(?:refuse|ApiRefusal)\(\s*"(R\d{3})"', source)) | {"R045", "R047"}
    elsewhere = {"R001", "R002", "R003", "R005", "R006", "R142", "R143"}  # in the tests below
    assert {case.rule for case in REFUSED} | elsewhere >= in_source
    assert {case.rule for case in ACCEPTED} | elsewhere >= in_source


# ---- before the body is looked at


def test_R001_a_body_above_32_megabytes_is_refused_by_the_network_in_front():
    refusal = next(check_size(32 * 1024 * 1024 + 1, ApiSettings()))
    assert refusal.status == 413
    assert refusal.body("req_1") == {
        "error": {"type": "request_too_large", "message": "Request exceeds the maximum size"}
    }
    assert list(check_size(32 * 1024 * 1024, ApiSettings())) == []


def test_R002_an_unknown_path_is_not_found():
    refusal = unknown_path()
    assert (refusal.rule, refusal.status, refusal.type) == ("R002", 404, "not_found_error")


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b'{"a": "\\ud83d"}', "no low surrogate in string: line 1 column 8 (char 7)"),
        (b'{"a":\n "\\udc00"}', "no low surrogate in string: line 2 column 3 (char 8)"),
        (b"", "Expecting value: line 1 column 1 (char 0)"),
        (b'{"a": NaN}', "unexpected character: NaN"),
        (b'{"a": "\xff"}', "str is not valid UTF-8: surrogates not allowed: line 1 column 1 (char 7)"),
    ],
)
def test_R003_a_body_that_is_no_strict_json_is_refused(raw, why):
    refusal = parse_body(raw)
    assert isinstance(refusal, rules.ApiRefusal)
    assert refusal.message == f"The request body is not valid JSON: {why}"


@pytest.mark.parametrize("raw", [b'{"a": "\\ud83d\\ude00"}', b'{"a": "\\\\ud83d"}', '{"a": "é\u2028"}'.encode()])
def test_R003_pairs_of_surrogates_and_escaped_backslashes_are_fine(raw):
    assert isinstance(parse_body(raw), dict)


VERSION = {"anthropic-version": "2023-06-01"}


@pytest.mark.parametrize(
    ("headers", "message"),
    [
        (VERSION, "x-api-key header is required"),
        ({**VERSION, "X-Api-Key": "wrong"}, "invalid x-api-key"),
    ],
)
def test_R005_a_missing_or_wrong_key_is_refused(headers, message):
    refusal = next(check_headers(headers, ApiSettings(api_keys=frozenset({"right"}))))
    assert (refusal.rule, refusal.status, refusal.type) == ("R005", 401, "authentication_error")
    assert refusal.message == message


@pytest.mark.parametrize("key", [{"x-api-key": "right"}, {"authorization": "Bearer right"}])
def test_R005_a_key_or_a_bearer_token_is_accepted(key):
    assert list(check_headers({**VERSION, **key}, ApiSettings(api_keys=frozenset({"right"})))) == []


def test_R006_the_version_header_is_required():
    refusal = next(check_headers({"x-api-key": "k"}, ApiSettings()))
    assert (refusal.rule, refusal.message) == ("R006", "anthropic-version: header is required")


# ---- thinking that comes back


def thought(book, model, text, call_id="a"):
    """A reply with thinking and a call, as it was served."""
    block = {"type": "thinking", "thinking": text, "signature": book.issue(model, text)}
    watcher = ReplyWatcher(book, model)
    for index, start in enumerate([block, call(call_id)]):
        watcher.see({"type": "content_block_start", "index": index, "content_block": start})
        watcher.see({"type": "content_block_stop", "index": index})
    return block


def judged(book, *blocks, model=BASE["model"], tail=(), **more):
    messages = [USER, assistant(*blocks, call("a")), user(result("a")), *tail]
    return validate(request(model=model, messages=messages, **more), signatures=book)


ADAPTIVE = {"type": "adaptive"}
MODIFIED = (
    "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. These blocks must"
    " remain as they were in the original response."
)


def test_R142_a_signature_of_somebody_else_is_refused():
    refusal = judged(SignatureBook(), {"type": "thinking", "thinking": "hm", "signature": "made up"})
    assert refusal is not None
    assert (refusal.rule, refusal.message) == (
        "R142",
        "messages.1.content.0: Invalid `signature` in `thinking` block",
    )


def test_R142_a_signature_binds_to_the_model_that_wrote_it():
    book = SignatureBook()
    block = thought(book, "claude-opus-5-5", "hm")
    refusal = judged(book, block)
    assert refusal is not None
    assert refusal.rule == "R142"
    assert judged(book, block, model="claude-opus-5-5") is None


def test_R142_an_edited_thought_of_an_earlier_turn_is_refused():
    book = SignatureBook()
    block = thought(book, BASE["model"], "hm")
    refusal = judged(book, {**block, "thinking": "other"}, tail=[assistant(said("b")), USER])
    assert refusal is not None
    assert refusal.rule == "R142"


def test_R142_hidden_thinking_must_have_been_served_to_the_model():
    book = SignatureBook()
    hidden = {"type": "redacted_thinking", "data": "xyz"}
    refusal = judged(book, hidden)
    assert refusal is not None
    assert refusal.rule == "R142"
    book.note_thinking(BASE["model"], hidden)
    assert judged(book, hidden) is None


def test_R142_a_genuine_signature_is_accepted_also_by_a_restarted_server():
    block = thought(SignatureBook(), BASE["model"], "hm")
    assert judged(SignatureBook(), block) is None


def test_R143_an_edited_thought_of_the_latest_turn_is_refused():
    book = SignatureBook()
    block = thought(book, BASE["model"], "hm")
    refusal = judged(book, {**block, "thinking": "other"})
    assert refusal is not None
    assert (refusal.rule, refusal.message) == ("R143", f"messages.1.content.0: {MODIFIED}")


def test_R143_a_dropped_thought_of_the_latest_turn_is_refused_while_thinking_is_on():
    book = SignatureBook()
    block = thought(book, BASE["model"], "hm")
    refusal = judged(book, thinking=ADAPTIVE)
    assert refusal is not None
    assert (refusal.rule, refusal.message) == ("R143", f"messages.1.content.0: {MODIFIED}")
    assert judged(book, block, thinking=ADAPTIVE) is None
    assert judged(book) is None


def test_R143_another_model_may_go_on_without_the_thought():
    book = SignatureBook()
    thought(book, "claude-opus-5-5", "hm")
    assert judged(book, thinking=ADAPTIVE) is None


# ---- order and counting


def test_the_order_of_checks_is_that_of_the_api():
    """Live probe of 31 August 2026: fields in a fixed order, then unknown keys."""
    wrong = {
        "model": "",
        "tool_choice": {"type": "x"},
        "tools": None,
        "messages": None,
        "system": 3,
        "thinking": 3,
        "output_config": 3,
        "cache_control": 3,
        "max_tokens": -1,
        "metadata": 3,
        "stop_sequences": 3,
        "temperature": 3,
        "service_tier": 3,
        "top_k": "x",
        "top_p": 3,
        "stream": 3,
        "container": 3,
        "zzz": 1,
    }
    right = request(model=OLD_MODEL)
    order = []
    for field in [*wrong, None]:
        body = right | wrong
        refusal = validate(body)
        if refusal is None:
            break
        order.append(refusal.message.partition(":")[0].partition(".")[0])
        if field is None:
            break
        del wrong[order[-1]]
    assert order == [
        *("model", "tool_choice", "tools", "messages", "system", "thinking", "output_config", "cache_control"),
        *("max_tokens", "metadata", "stop_sequences", "temperature", "service_tier", "top_k", "top_p", "stream"),
        *("container", "zzz"),
    ]


def test_the_conversation_is_judged_before_the_model_is_looked_up():
    refusal = validate(request(model="nobody", messages=[user(said(""))]))
    assert refusal is not None
    assert refusal.rule == "R114"


def test_counting_tokens_needs_no_max_tokens():
    body = {key: value for key, value in BASE.items() if key != "max_tokens"}
    assert validate(body, counting=True) is None
    refusal = validate(body | {"messages": []}, counting=True)
    assert refusal is not None
    assert refusal.rule == "R012"
