"""`fsm-agent run` end to end: the real SDK over a real socket, real files and commands."""

import json
import os
import sys
from pathlib import Path

import pytest

from fsm_agent.testing.script import ApiError, Repeat, Reply, tool_use
from tests.cli.served import Caller, served


def test_the_agent_works_in_the_directory_and_the_end_is_told(fsm_agent: Caller, tmp_path: Path):
    (tmp_path / "a.txt").write_text("one")
    script = [
        Reply("I change it.", tool_use("write_file", {"path": "a.txt", "content": "two"}), stop="tool_use"),
        ApiError(529, "overloaded_error", "Overloaded", headers={"retry-after-ms": "1"}),
        Reply("Done."),
    ]
    with served(script) as server:
        done = fsm_agent("run", "Change a.txt", "--base-url", server.url, "--cwd", str(tmp_path))
    assert (tmp_path / "a.txt").read_text() == "two"
    assert done.code == 0
    lines = done.out.splitlines()
    assert lines[0] == "● I change it."
    assert lines[1].startswith("✓ write_file a.txt two (")
    assert lines[2] == "↻ overload_retry: the service is overloaded; the request is sent again (1 of 10)"
    assert lines[3] == "● Done."
    told = dict(line.split(maxsplit=1) for line in lines[5:])
    assert told["reason"] == "completed"
    assert (told["turns"], told["requests"]) == ("2", "3")
    assert told["path"] == (
        "context_ready → tools_requested → next_turn → context_ready → response_ended → overload_retry → "
        "response_ended → complete"
    )


def test_with_json_each_line_is_an_event_and_the_last_is_the_terminal_one(fsm_agent: Caller, tmp_path: Path):
    with served([Reply("Hello \N{WAVING HAND SIGN}")]) as server:
        done = fsm_agent("run", "Greet", "--base-url", server.url, "--cwd", str(tmp_path), "--json")
    events = [json.loads(line) for line in done.out.splitlines()]
    assert done.code == 0
    assert {"transition", "stream_request_start", "stream_event", "assistant"} <= {event["type"] for event in events}
    assert [event["type"] for event in events].count("terminal") == 1
    end = events[-1]
    assert end.keys() == {"type", "reason", "detail", "text", "turns", "requests", "usage"}
    assert (end["reason"], end["text"], end["turns"], end["requests"]) == (
        "completed",
        "Hello \N{WAVING HAND SIGN}",
        1,
        1,
    )


def test_flags_reach_the_request(fsm_agent: Caller, tmp_path: Path):
    again = Repeat(Reply(tool_use("list_files", {"path": "."}), stop="tool_use"), 2)
    with served([again]) as server:
        done = fsm_agent(
            "run",
            "Go on",
            "--base-url",
            server.url,
            "--cwd",
            str(tmp_path),
            "--model",
            "claude-haiku-4-5",
            "--max-turns",
            "2",
        )
        body = server.requests[0].body
    assert isinstance(body, dict)
    assert body["model"] == "claude-haiku-4-5"
    assert str(tmp_path) in json.dumps(body["system"])
    assert body["messages"][0]["content"] == "Go on"
    assert done.code == 1
    assert "reason   max_turns" in done.out


def test_any_reason_but_completed_is_exit_code_1(fsm_agent: Caller, tmp_path: Path):
    with served([ApiError(400, "invalid_request_error", "No.")]) as server:
        done = fsm_agent("run", "x", "--base-url", server.url, "--cwd", str(tmp_path))
    assert done.code == 1
    assert "reason   model_error" in done.out
    assert done.out.count("No.") == 1


@pytest.mark.skipif(sys.platform == "win32", reason="the interrupt is sent with kill")
class TestInterrupts:
    """The command of the model's tool call sends the signal, so that it comes exactly then."""

    @staticmethod
    def interrupted(fsm_agent: Caller, directory: Path, command: str, *flags: str):
        with served([Reply("Wait.", tool_use("run_command", {"command": command}), stop="tool_use")]) as server:
            return fsm_agent("run", "x", "--base-url", server.url, "--cwd", str(directory), *flags)

    @pytest.mark.parametrize("signal", ["INT", "TERM", "HUP"])
    def test_an_interrupt_aborts_the_run_with_exit_code_130(self, fsm_agent: Caller, tmp_path: Path, signal: str):
        command = f"echo $$ > pid; kill -{signal} {os.getpid()}; exec sleep 600"
        done = self.interrupted(fsm_agent, tmp_path, command)
        assert done.code == 130
        assert "reason   aborted_tools" in done.out
        assert "detail   The user interrupted the run." in done.out
        with pytest.raises(ProcessLookupError):
            os.kill(int((tmp_path / "pid").read_text()), 0)

    def test_with_json_the_terminal_line_comes_after_an_interrupt_too(self, fsm_agent: Caller, tmp_path: Path):
        done = self.interrupted(fsm_agent, tmp_path, f"kill -INT {os.getpid()}; exec sleep 600", "--json")
        assert done.code == 130
        assert json.loads(done.out.splitlines()[-1])["reason"] == "aborted_tools"

    def test_a_second_interrupt_leaves_at_once_and_still_leaves_nothing_running(
        self, fsm_agent: Caller, tmp_path: Path
    ):
        command = f"echo $$ > pid; kill -INT {os.getpid()}; kill -TERM {os.getpid()}; exec sleep 600"
        done = self.interrupted(fsm_agent, tmp_path, command)
        assert done.code == 130
        assert "reason" not in done.out
        assert done.err == "fsm-agent: left before the run had ended.\n"
        with pytest.raises(ProcessLookupError):
            os.kill(int((tmp_path / "pid").read_text()), 0)


def test_without_a_key_it_says_how_to_go_on_and_sends_nothing(fsm_agent: Caller, tmp_path: Path):
    done = fsm_agent("run", "x", "--cwd", str(tmp_path))
    assert done.code == 2
    assert done.out == ""
    for words in ("ANTHROPIC_API_KEY", "make run", "fsm-agent serve-model --script FILE", "--base-url"):
        assert words in done.err


def test_a_key_in_the_environment_is_the_sdk_s_affair(
    fsm_agent: Caller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key-of-the-user")
    with served([Reply("Hi")]) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        done = fsm_agent("run", "x", "--cwd", str(tmp_path))
        sent = " ".join(server.requests[0].headers.values())
    assert done.code == 0
    assert "key-of-the-user" in sent
