"""Every recorded answer, whole and damaged, is a declared outcome and leaves a history that the API takes."""

import json
from collections.abc import AsyncGenerator
from typing import Any

import anthropic
import pytest

from fsm_agent.machine.limits import LoopLimits
from fsm_agent.machine.vocabulary import ResponseOutcome as R
from fsm_agent.model.call import ModelCall
from fsm_agent.model.reply import ReplyAssembler
from fsm_agent.model.request import RequestTemplate
from fsm_agent.model.sse import EventDecoder
from fsm_agent.model.transport import SdkTransport
from fsm_agent.session.validator import Violation, violations
from fsm_agent.testing import MessagesServer
from fsm_agent.testing.recordings import load_cassette, recorded_item
from tests.model.streams import Performed, performed
from tests.recordings import Recording, recordings

ALL = recordings()
STREAMED = [recording for recording in ALL if recording.streams]

KEPT = {R.TOOL_USE, R.END_TURN, R.PAUSE_TURN}
"""Outcomes of which a row keeps the whole message."""


def streams(recording: Recording) -> list[str]:
    responses = [exchange["response"] for exchange in load_cassette(recording.path)]
    return [response["sse"] for response in responses if isinstance(response.get("sse"), str)]


def playing(*chunks: bytes) -> Any:
    async def call_model(request: Any) -> AsyncGenerator[dict[str, Any], None]:
        decoder = EventDecoder()
        for chunk in chunks:
            for event in decoder.feed(chunk):
                yield event
        last = decoder.end()
        if last is not None:
            yield last

    return call_model


def before(message: dict[str, Any]) -> list[dict[str, Any]]:
    """A history in which the message can stand: its server tool results may answer uses of an earlier turn."""
    uses = {block["id"] for block in message["content"] if block["type"].endswith("_tool_use")}
    answered = [block["tool_use_id"] for block in message["content"] if block["type"].endswith("_tool_result")]
    earlier: list[dict[str, Any]] = [
        {"type": "server_tool_use", "id": one, "name": "code_execution", "input": {}}
        for one in answered
        if one not in uses
    ]
    if not earlier:
        return [{"role": "user", "content": "Go."}]
    earlier.append({"type": "tool_use", "id": "toolu_before", "name": "read", "input": {}})
    result = {"type": "tool_result", "tool_use_id": "toolu_before", "content": "ok"}
    return [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": earlier},
        {"role": "user", "content": [result]},
    ]


def breaches(reply: ReplyAssembler, message: dict[str, Any]) -> list[Violation]:
    """What is wrong with a history that goes on from the message: its calls answered, a pause just sent back."""
    history = [*before(message), message]
    called = [block["id"] for block in message["content"] if block["type"] == "tool_use"]
    if called:
        results = [{"type": "tool_result", "tool_use_id": one, "content": "ok"} for one in called]
        history.append({"role": "user", "content": results})
    elif reply.stop_reason not in ("pause_turn", "compaction"):
        history.append({"role": "user", "content": "Go on."})
    return violations(history, reply.model)


def check(done: Performed) -> None:
    reply = done.made.reply
    assert done.outcome in R
    if done.outcome in KEPT:
        message = reply.message()
        assert message["content"]
        assert breaches(reply, message) == []
    partial = reply.text_message()
    if partial is not None:
        assert breaches(reply, partial) == []
        assert not any(block["type"] == "tool_use" for block in partial["content"])
    json.dumps(done.events, ensure_ascii=False).encode()


@pytest.mark.parametrize("recording", STREAMED, ids=str)
async def test_a_recorded_stream_replayed(recording: Recording):
    for sse in streams(recording):
        done = await performed(playing(sse.encode()))
        check(done)
        assert done.made.failure is None
        assert done.outcome not in (R.UNKNOWN, R.RETRYABLE, R.CUT, R.MALFORMED_TOOL_USE)


@pytest.mark.parametrize("recording", STREAMED, ids=str)
async def test_a_recorded_stream_glued_to_itself_is_its_first_half(recording: Recording):
    for sse in streams(recording):
        once = await performed(playing(sse.encode()))
        twice = await performed(playing(sse.encode().rstrip() + b"\n\n" + sse.encode()))
        assert (twice.outcome, twice.events) == (once.outcome, once.events)


@pytest.mark.parametrize("recording", STREAMED, ids=str)
async def test_a_recorded_stream_without_its_last_blank_line_is_whole(recording: Recording):
    for sse in streams(recording):
        once = await performed(playing(sse.encode()))
        bare = await performed(playing(sse.encode().rstrip()))
        assert (bare.outcome, bare.events) == (once.outcome, once.events)


@pytest.mark.slow
@pytest.mark.parametrize("recording", STREAMED, ids=str)
async def test_a_recorded_stream_cut_anywhere(recording: Recording):
    """Cut inside and between its events, at forty places."""
    for sse in streams(recording):
        body = sse.encode()
        whole = await performed(playing(body))
        for part in range(40):
            done = await performed(playing(body[: len(body) * part // 40]))
            check(done)
            assert done.outcome in (whole.outcome, R.CUT, R.RETRYABLE)
            assert done.events == whole.events[: len(done.events)]


@pytest.mark.parametrize("recording", STREAMED, ids=str)
async def test_a_recorded_stream_in_small_chunks_is_the_same(recording: Recording):
    for sse in streams(recording)[:1]:
        body = sse.encode()[:100_000]
        once = await performed(playing(body))
        chunks = [body[at : at + 37] for at in range(0, len(body), 37)]
        small = await performed(playing(*chunks))
        assert (small.outcome, small.events) == (once.outcome, once.events)


@pytest.mark.slow
@pytest.mark.parametrize("recording", ALL, ids=str)
async def test_a_recorded_answer_through_the_sdk_and_a_socket(recording: Recording):
    exchanges = load_cassette(recording.path)
    request = RequestTemplate(cache=False).request(
        model="claude-sonnet-5-5", messages=b'[{"role":"user","content":"Go."}]', max_tokens=100
    )

    async def unheard(reply: ReplyAssembler, event: dict[str, Any]) -> None:
        pass

    async with (
        MessagesServer([recorded_item(exchange) for exchange in exchanges], validate=False) as server,
        anthropic.AsyncAnthropic(base_url=server.url, api_key="test") as client,
    ):
        transport = SdkTransport(client)
        for exchange in exchanges:
            made = ModelCall(transport, request, limits=LoopLimits(), on_event=unheard)
            done = Performed(await made.perform(), made)
            check(done)
            status, streamed = exchange["response"]["status"], "sse" in exchange["response"]
            if status != 200 or streamed:
                assert (made.failure is None) == (status == 200)
            assert made.failure is None or made.failure.status in (None, status)
        assert len(server.requests) == len(exchanges)


def test_every_kind_of_stream_is_among_the_recordings():
    features = {feature for recording in STREAMED for feature in recording.features}
    assert {"stop:tool_use", "stop:max_tokens", "stop:refusal", "stop:pause_turn", "block:thinking"} <= features
