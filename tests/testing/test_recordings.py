"""Recorded traffic: judged by the rules, served byte for byte, replayed in process, and recorded anew."""

import json
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import pytest

from fsm_agent.model.sse import EventDecoder
from fsm_agent.testing import (
    Fault,
    MessagesServer,
    RawResponse,
    RecordedModel,
    Reply,
    ScriptedModel,
    load_cassette,
    record,
    recorded_item,
    recorded_script,
    save_cassette,
    tool_use,
    validate,
    with_fault,
)
from fsm_agent.testing.events import fold_message
from fsm_agent.testing.recorder import redacted
from fsm_agent.testing.sse import decode_events, split_events
from tests.recordings import recordings
from tests.testing.calls import MODEL, ask, call, client_of, events_of, stream

ALL = recordings()
BY_NAME = {str(recording): recording for recording in ALL}

LOST_HEADERS = {"test_in_flight_mcp_call_history_is_accepted"}
"""Recordings from which the beta header was taken out, so that their beta fields look unknown."""

NO_RULE = (401, 403, 429)
"""Statuses that do not depend on the body."""


def judged(exchange):
    request = exchange["request"]
    counting = "count_tokens" in request["path"]
    return validate(request["body"], request["headers"], counting=counting)


@pytest.mark.parametrize("recording", ALL, ids=str)
def test_the_rules_judge_recorded_requests_as_the_api_did(recording):
    for exchange in load_cassette(recording.path):
        status, body = exchange["response"]["status"], exchange["request"]["body"]
        if body is None or status in NO_RULE or any(name in str(recording) for name in LOST_HEADERS):
            continue
        refusal = judged(exchange)
        if status == 200:
            assert refusal is None
        else:
            assert refusal is not None
            assert refusal.status == status
            assert refusal.message == exchange["response"]["body"]["error"]["message"]


REQUEST: Any = {"model": MODEL, "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}], "stream": True}


@pytest.mark.parametrize("recording", recordings("sse"), ids=str)
async def test_a_recorded_stream_is_served_byte_for_byte(recording):
    streams = [item for item in recorded_script(recording.path) if item.is_event_stream]
    headers = {"x-api-key": "k", "anthropic-version": "2023-06-01"}
    async with MessagesServer(streams) as server, httpx2.AsyncClient(base_url=server.url, headers=headers) as http:
        served = [(await http.post("/v1/messages", json=REQUEST)).content for _ in streams]
    assert served == [item.body for item in streams]


def json_message(item: RawResponse) -> dict[str, Any] | None:
    if item.is_event_stream:
        return None
    parsed = json.loads(item.body)
    return parsed if parsed.get("type") == "message" else None


def read(content: bytes) -> list[dict[str, Any]]:
    decoder = EventDecoder()
    events = list(decoder.feed(content))
    last = decoder.end()
    return events if last is None else [*events, last]


@pytest.mark.parametrize("recording", ALL, ids=str)
async def test_a_recording_is_replayed_in_process(recording):
    model = RecordedModel(recording.path)
    for exchange, item in zip(model.exchanges, recorded_script(model.exchanges), strict=True):
        if item.status >= 400:
            with pytest.raises(anthropic.APIStatusError) as raised:
                await events_of(model)
            assert raised.value.status_code == item.status
            assert raised.value.body == exchange["response"]["body"]
        elif item.is_event_stream:
            assert await events_of(model) == read(item.body)
        elif json_message(item) is not None:
            assert fold_message(await events_of(model))["content"] == json.loads(item.body)["content"]
        else:
            return  # an answer of another endpoint, such as a count of tokens
    model.assert_complete()


@pytest.mark.parametrize("recording", recordings("json_message"), ids=str)
async def test_a_recorded_message_is_served_to_a_client_that_streams(recording):
    item = next(one for one in recorded_script(recording.path) if json_message(one) is not None)
    message = json.loads(item.body)
    request = {key: REQUEST[key] for key in ("model", "max_tokens", "messages")}
    async with (
        MessagesServer([item]) as server,
        client_of(server) as client,
        client.messages.stream(**request) as told,
    ):
        events = [event async for event in told]
    assert events[-1].type == "message_stop"
    assert [block.type for block in events[-1].message.content] == [block["type"] for block in message["content"]]
    assert events[-1].message.stop_reason == message["stop_reason"]


async def test_a_recorded_stream_is_served_to_a_client_that_does_not_stream():
    item = RawResponse(
        b'event: message_start\ndata: {"type":"message_start","message":{"id":"m","type":"message","role":"assistant",'
        b'"model":"x","content":[],"usage":{"input_tokens":1,"output_tokens":1}}}\n\n'
        b'event: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":{"type":"text",'
        b'"text":""}}\n\nevent: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":'
        b'"text_delta","text":"hi"}}\n\nevent: message_stop\ndata: {"type":"message_stop"}\n\n',
        headers={"content-type": "text/event-stream"},
    )
    async with MessagesServer([item]) as server, client_of(server) as client:
        assert (await ask(client)).content[0].text == "hi"


@pytest.mark.parametrize("kind", ["eof", "cut", "reset", "error", "garbage"])
async def test_a_recording_breaks_at_the_event_that_a_fault_names(kind):
    recording = recordings("sse", "stop:tool_use")[0]
    item = next(one for one in recorded_script(recording.path) if one.is_event_stream)
    for at in range(len(split_events(item.body))):
        async with MessagesServer([with_fault(item, Fault(at, kind))]) as server, client_of(server) as client:
            with_error = False
            try:
                await stream(client)
            except (anthropic.APIError, httpx2.TransportError, json.JSONDecodeError, AssertionError):
                with_error = True
            assert with_error or kind == "eof"
            # An event that an error or garbage replaces is sent too.
            assert server.requests[0].events_sent == at + (kind in ("error", "garbage"))


@pytest.mark.parametrize(
    ("content", "sentence"),
    [("{", "not JSON"), ("{}", "no list of exchanges"), ('[{"request": {}}]', "exchange 0 has no response")],
)
def test_a_file_that_is_no_cassette_is_told(tmp_path: Path, content, sentence):
    path = tmp_path / "cassette.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=sentence):
        load_cassette(path)


# ---- recording


@asynccontextmanager
async def recording_client(server, path: Path, *, api_key: str = "k", redact: Any = None):
    options = {"base_url": server.url, "api_key": api_key, "max_retries": 0}
    async with record(path, redact=redact) as recorder, recorder.client(**options) as client:
        yield client


async def test_what_was_recorded_replays(tmp_path: Path):
    path = tmp_path / "run.json"
    script = [Reply("hi", tool_use("read", {"path": "a"}, id="t1")), Reply("Größe 😀")]
    async with MessagesServer(script) as server, recording_client(server, path, api_key="sk-ant-secret") as client:
        streamed = await stream(client)
        plain = await ask(client)
    assert [event.type for event in streamed][-1] == "message_stop"
    first, second = load_cassette(path)
    assert first["request"]["body"]["messages"] == [{"role": "user", "content": "hi"}]
    assert "secret" not in path.read_text()
    assert set(first["request"]["headers"]) <= {"anthropic-version", "anthropic-beta", "content-type"}
    assert second["response"]["body"]["content"] == [{"type": "text", "text": plain.content[0].text}]
    replayed = await events_of(RecordedModel(path))
    expected = [event async for event in ScriptedModel(script)(call())]
    assert [event["type"] for event in replayed] == [event["type"] for event in expected]


async def test_a_stream_that_broke_is_recorded_as_far_as_it_came(tmp_path: Path):
    path = tmp_path / "run.json"
    broken = [Reply("hi", fault=Fault(2, "reset"))]
    async with MessagesServer(broken) as server, recording_client(server, path) as client:
        with pytest.raises(httpx2.ReadError):
            await stream(client)
    (exchange,) = load_cassette(path)
    events = list(decode_events(recorded_item(exchange).body))
    assert [event.event for event in events] == ["message_start", "content_block_start"]


async def test_errors_are_recorded_and_replayed(tmp_path: Path):
    path = tmp_path / "run.json"
    async with MessagesServer([]) as server, recording_client(server, path) as client:
        with pytest.raises(anthropic.BadRequestError):
            await ask(client, "")
    with pytest.raises(anthropic.BadRequestError, match="non-empty content"):
        await events_of(RecordedModel(path))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("jane@corp.example.org", "user@example.com"),
        ("org 12345678-1234-1234-1234-123456789abc", "org 00000000-0000-0000-0000-000000000000"),
        ("key sk-ant-api03-abc_DEF-1", "key sk-ant-REDACTED"),
        ("org_01AbCdEfGh req_011CUsMKYjBx5E13", "org_REDACTED req_REDACTED"),
        ("msg_01AbCdEfGh toolu_01AbCdEfGh", "msg_01AbCdEfGh toolu_01AbCdEfGh"),
    ],
)
def test_what_identifies_somebody_is_taken_out(text, expected):
    assert redacted(text) == expected


def unnamed(text: str) -> str:
    return text.replace("Ann", "NAME")


async def test_a_redaction_of_ones_own_comes_on_top(tmp_path: Path):
    path = tmp_path / "run.json"
    told = [Reply("I am Ann, ann@example.org")]
    async with MessagesServer(told) as server, recording_client(server, path, redact=unnamed) as client:
        await ask(client)
    assert load_cassette(path)[0]["response"]["body"]["content"][0]["text"] == "I am NAME, user@example.com"


def test_a_cassette_is_written_as_it_is_read(tmp_path: Path):
    path = tmp_path / "copy.json"
    exchanges = load_cassette(ALL[0].path)
    save_cassette(path, exchanges)
    assert load_cassette(path) == exchanges
