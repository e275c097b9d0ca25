"""`fsm-agent draw`: the picture of the shipped machine, of one's own, with the path of a run on it."""

import json
import sys
from pathlib import Path

import pytest

from fsm_agent import diagram
from fsm_agent.machine import AGENT_LOOP
from tests.cli.served import Caller

OWN = """
from fsm_agent.machine import AGENT_LOOP
MINE = AGENT_LOOP.with_changes(name="mine")

class agents:
    from fsm_agent import AgentMachine, Deps
    helper = AgentMachine(model="claude-sonnet-5-5", definition=MINE, deps=Deps(call_model=lambda request: None))
"""


def test_dot_is_written_to_standard_output(fsm_agent: Caller):
    done = fsm_agent("draw")
    assert (done.code, done.out) == (0, diagram.dot(AGENT_LOOP))


def test_the_overview_in_mermaid(fsm_agent: Caller):
    done = fsm_agent("draw", "--format", "mermaid", "--overview")
    assert done.out == diagram.mermaid(AGENT_LOOP, overview=True)


@pytest.mark.parametrize(("form", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("dot", b"digraph")])
def test_each_format_may_go_to_a_file(fsm_agent: Caller, tmp_path: Path, form: str, start: bytes):
    file = tmp_path / f"picture.{form}"
    done = fsm_agent("draw", "--format", form, "-o", str(file))
    assert (done.code, done.out) == (0, "")
    assert file.read_bytes().startswith(start)


def test_a_binary_image_does_not_go_to_a_terminal(fsm_agent: Caller, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    done = fsm_agent("draw", "--format", "png")
    assert done.code == 2
    assert "write it to a file with -o FILE" in done.err


@pytest.mark.parametrize("name", ["own_machine:MINE", "own_machine:agents.helper"])
def test_a_machine_of_one_s_own_is_found_in_the_current_directory(
    fsm_agent: Caller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
):
    (tmp_path / "own_machine.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "own_machine", raising=False)
    assert fsm_agent("draw", name).out.startswith('digraph "mine" {')


def test_the_path_of_a_run_is_drawn_from_its_json_lines(fsm_agent: Caller, tmp_path: Path):
    path = ["context_ready", "response_ended", "complete"]
    events = [{"type": "transition", "trigger": trigger} for trigger in path]
    file = tmp_path / "run.jsonl"
    file.write_text("".join(json.dumps(event) + "\n" for event in [{"type": "system"}, *events]))
    assert fsm_agent("draw", "--trace", str(file)).out == diagram.dot(AGENT_LOOP, trace=path)
