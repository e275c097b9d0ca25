"""examples/fix_failing_test is what it says: a real project with one bug, and a model that mends it with real tools."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fsm_agent.testing.script_file import load_script
from fsm_agent.tools.builtin import builtin_tools

EXAMPLE = Path(__file__).parent.parent / "examples" / "fix_failing_test"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return Path(shutil.copytree(EXAMPLE / "project", tmp_path / "project"))


def run_unittest(project: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-B", "-m", "unittest"]
    return subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)


def tool_calls(part: Any) -> Iterator[dict[str, Any]]:
    """Every tool_use block of the script, in order."""
    if isinstance(part, list):
        for item in part:
            yield from tool_calls(item)
    elif isinstance(part, dict):
        if part.get("type") == "tool_use":
            yield part
        else:
            yield from tool_calls(list(part.values()))


SCRIPT = json.loads((EXAMPLE / "model.json").read_text())


def test_exactly_one_test_of_the_project_fails(project: Path):
    done = run_unittest(project)
    assert done.returncode == 1
    assert "Ran 8 tests" in done.stderr
    assert "FAILED (failures=1)" in done.stderr
    assert "test_who_joins_on_the_16th_of_a_month_of_30_days_pays_half" in done.stderr


def test_the_scripted_models_edit_mends_it_in_the_code(project: Path):
    edits = [call["input"] for call in tool_calls(SCRIPT) if call["name"] == "edit_file"]
    for edit in edits:
        assert not edit["path"].startswith("tests")
        file = project / edit["path"]
        source = file.read_text()
        assert source.count(edit["old"]) == 1
        file.write_text(source.replace(edit["old"], edit["new"]))
    assert edits
    assert run_unittest(project).returncode == 0


def test_the_scripted_model_reads_only_files_that_exist(project: Path):
    paths = [call["input"]["path"] for call in tool_calls(SCRIPT) if call["name"] == "read_file"]
    assert paths
    assert all((project / path).is_file() for path in paths)


@pytest.mark.slow
def test_make_run_without_a_key_mends_a_copy_and_tells_how_it_ended():
    before = {path: path.read_bytes() for path in EXAMPLE.rglob("*.py")}
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ANTHROPIC_")}
    command = [sys.executable, str(EXAMPLE / "run.py")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "completed" in done.stdout
    assert "+        return (self.last - self.first).days + 1" in done.stdout
    assert {path: path.read_bytes() for path in EXAMPLE.rglob("*.py")} == before


def test_the_scripted_model_is_a_script_and_calls_only_tools_that_the_command_line_has():
    assert load_script(EXAMPLE / "model.json").items()
    tools = {tool.name for tool in builtin_tools(EXAMPLE)}
    assert {call["name"] for call in tool_calls(SCRIPT)} <= tools
