"""Scripts as JSON files, and the server as a program."""

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fsm_agent.testing import ApiError, Fault, RawResponse, Repeat, Reply, Stream, When, text, tool_use
from fsm_agent.testing.script_file import ScriptFile, load_script, parse_when
from fsm_agent.testing.serve import serve_until
from tests.testing.calls import ask, client_of


def written(tmp_path: Path, content) -> Path:
    path = tmp_path / "script.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def loaded(tmp_path: Path, *items):
    return load_script(written(tmp_path, list(items))).items(tmp_path)


def test_a_reply(tmp_path):
    blocks = [text("a"), {"type": "tool_use", "id": "t1", "name": "read", "input": {}}]
    item = {"blocks": blocks, "stop": "tool_use", "usage": {"output_tokens": 3}, "stop_details": {"x": 1}}
    expected = Reply(
        text("a"), tool_use("read", id="t1"), stop="tool_use", usage={"output_tokens": 3}, stop_details={"x": 1}
    )
    assert loaded(tmp_path, item) == [expected]


def test_an_error_a_stream_and_a_raw_response(tmp_path):
    error = {"http": 429, "error": "rate_limit_error", "message": "m", "headers": {"retry-after": "3"}}
    stream = {"stream": ["message_start", {"text": "par"}, "reset"]}
    raw = {"response": {"status": 200, "headers": {"content-type": "text/html"}, "body": "<html>"}}
    assert loaded(tmp_path, error, stream, raw) == [
        ApiError(429, "rate_limit_error", "m", headers={"retry-after": "3"}),
        Stream(["message_start", {"text": "par"}, "reset"]),
        RawResponse("<html>", headers={"content-type": "text/html"}),
    ]


def test_repeat_when_and_fault(tmp_path):
    item = {
        "blocks": [text("a")],
        "repeat": "always",
        "when": "kind==summary and model==m and size>100",
        "fault": {"at_event": 3, "kind": "reset"},
    }
    (made,) = loaded(tmp_path, item)
    expected = Reply("a", when=When(kind="summary", model="m", larger_than=100), fault=Fault(3, "reset"))
    assert made == Repeat(expected, "always")


def test_a_recording_is_found_beside_the_file(tmp_path):
    exchange = {"response": {"status": 200, "headers": {}, "sse": "data: 1\n\n"}}
    (tmp_path / "cassette.json").write_text(json.dumps([exchange]))
    (made,) = loaded(tmp_path, {"recording": "cassette.json"})
    assert isinstance(made, RawResponse)
    assert made.body == b"data: 1\n\n"
    with pytest.raises(ValueError, match="has 1 exchanges, so there is no exchange 4"):
        loaded(tmp_path, {"recording": "cassette.json", "exchange": 4})


def test_settings_and_chunking_stand_beside_the_script(tmp_path):
    file = load_script(
        written(
            tmp_path,
            {
                "format": 1,
                "script": [{"blocks": []}],
                "settings": {"context_window": 500, "models": {"m": {"max_output_tokens": 7}}},
                "chunking": {"wire": 3, "newline": "\r\n"},
            },
        )
    )
    assert file.api_settings().window("m") == 500
    assert file.api_settings().profile("m").max_output_tokens == 7
    assert file.chunking.wire == 3


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("{", "it is not JSON"),
        ([{"blocks": [], "http": 500}], "script.0: .*exactly one of blocks, stream, http, response, recording"),
        ([{"bloks": []}], "script.0.bloks: Extra inputs"),
        ([{"http": 500, "fault": {"at_event": 0, "kind": "eof"}}], "has no events"),
        ({"format": 2, "script": []}, "format"),
    ],
)
def test_a_wrong_file_is_told_where_it_is_wrong(tmp_path, content, sentence):
    with pytest.raises(ValueError, match=sentence):
        load_script(written(tmp_path, content))


def test_a_wrong_condition_is_told_what_to_write():
    with pytest.raises(ValueError, match=r"'kind=turn' is no condition; write kind==turn"):
        parse_when("kind=turn")


async def test_a_file_is_served_until_stopped(tmp_path):
    stop = asyncio.Event()
    said = asyncio.Queue[str]()
    file = ScriptFile.model_validate({"script": [{"blocks": [text("hi")]}]})
    serving = asyncio.create_task(serve_until(stop, file, tmp_path, 0, said.put_nowait))
    line = await said.get()
    url = line.removeprefix("Messages API on ")

    class Served:
        pass

    server = Served()
    server.url = url  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
    async with client_of(server) as client:
        assert (await ask(client)).content[0].text == "hi"
    stop.set()
    await serving


@pytest.mark.slow
def test_the_program_says_its_url_and_ends_at_a_signal(tmp_path):
    path = written(tmp_path, [{"blocks": [text("hi")]}])
    code = f"from fsm_agent.testing.serve import serve; serve({str(path)!r})"
    program = subprocess.Popen([sys.executable, "-u", "-c", code], stdout=subprocess.PIPE, text=True)
    assert program.stdout is not None
    assert program.stdout.readline().startswith("Messages API on http://127.0.0.1:")
    program.send_signal(signal.SIGTERM)
    assert program.wait(timeout=10) == 0
    program.stdout.close()
