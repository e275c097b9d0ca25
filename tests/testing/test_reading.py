"""Reading only what is new of a growing conversation gives the same as reading all of it."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fsm_agent.testing.prompt import Prompt
from fsm_agent.testing.reading import BodyReader, Reading
from fsm_agent.testing.rules import ApiRefusal, ApiSettings, parse_body, validate
from fsm_agent.testing.signatures import SignatureBook
from tests.testing.rule_cases import MODEL, OLD_MODEL, USER, assistant, call, request, result, said, user

SETTINGS = ApiSettings(context_window=400)


def raw(body: dict[str, Any]) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


def body_of(messages: Any, **fields: Any) -> dict[str, Any]:
    body = request(**fields)
    del body["messages"]
    return {**body, "messages": messages}


class Counted(BodyReader):
    """Counts the messages that were judged."""

    seen = 0

    def _judge(self, body, reading, headers, *, counting=False):
        self.seen += len(body["messages"])
        return super()._judge(body, reading, headers, counting=counting)


def read(reader: BodyReader, body: dict[str, Any]) -> tuple[Reading, ApiRefusal | None]:
    reading = reader.read(raw(body))
    assert isinstance(reading, Reading)
    return reading, reader.judge(reading, {})


SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "s"}
BLOCKS = [
    said("a"),
    said(" "),
    said(""),
    call("a"),
    call("b"),
    result("a"),
    result("b"),
    result("a", is_error=True),
    SEARCH,
    FOUND,
    THOUGHT,
    said("x", cache_control={"type": "ephemeral"}),
    {"type": "odd"},
]
messages = st.one_of(
    st.sampled_from(
        [USER, assistant(said("a")), assistant(call("a")), user(result("a")), {"role": "system", "content": "s"}]
    ),
    st.builds(
        lambda role, blocks: {"role": role, "content": blocks},
        st.sampled_from(["user", "assistant"]),
        st.lists(st.sampled_from(BLOCKS), max_size=3),
    ),
)


@given(
    st.lists(st.lists(messages, min_size=1, max_size=3), min_size=1, max_size=6),
    st.sampled_from([{}, {"thinking": {"type": "adaptive"}}, {"model": OLD_MODEL}]),
    st.sampled_from([SETTINGS, ApiSettings(unique_ids="history")]),
    st.booleans(),
)
def test_a_growing_conversation_is_judged_and_counted_as_a_whole_one(steps, fields, settings, trusting):
    book = SignatureBook()
    if trusting:
        book.note_thinking(fields.get("model", MODEL), THOUGHT)
    reader = BodyReader(settings, book)
    history: list[Any] = []
    for step in steps:
        body = body_of([*history, *step], **fields)
        reading, refusal = read(reader, body)
        assert reading.body == body
        assert refusal == validate(body, {}, settings=settings, signatures=book)
        whole = Prompt(body)
        assert (reading.prompt.totals, reading.prompt.keys) == (whole.totals, whole.keys)
        assert reading.prompt.marks(body) == whole.marks(body)
        history = body["messages"] if refusal is None else history


def test_only_the_new_messages_are_judged():
    reader = Counted(ApiSettings(), SignatureBook())
    history: list[Any] = [USER]
    for number in range(200):
        history += [assistant(call(f"t{number}")), user(result(f"t{number}"))]
        assert read(reader, body_of(history))[1] is None
    assert reader.seen < 200 * 6


def test_two_conversations_that_part_are_both_read_right():
    reader = BodyReader(ApiSettings(), SignatureBook())
    common = [USER, assistant(said("a"))]
    read(reader, body_of([*common, USER]))
    for text in ("one", "two", "three"):
        body = body_of([*common, USER, assistant(said(text)), user(said(text * 50))])
        reading, refusal = read(reader, body)
        assert refusal is None
        assert reading.body == body
        assert reading.prompt.keys == Prompt(body).keys


def test_a_key_behind_the_messages_is_not_taken_for_a_message():
    reader = BodyReader(ApiSettings(), SignatureBook())
    first = raw(body_of([USER]))
    reader.read(first)
    odd = first[:-2] + b',{"role":"user","content":"x"}],"stop_sequences":["x"]}'
    reading = reader.read(odd)
    assert isinstance(reading, Reading)
    assert reading.body == parse_body(odd)
    assert reading.body["stop_sequences"] == ["x"]


def test_broken_json_behind_known_messages_is_told_with_its_place_in_the_body():
    reader = BodyReader(ApiSettings(), SignatureBook())
    first = raw(body_of([USER]))
    reader.read(first)
    broken = first[:-2] + b',{"role":"user","content":"\\ud83d"}]}'
    refusal = reader.read(broken)
    assert isinstance(refusal, ApiRefusal)
    assert refusal == parse_body(broken)
