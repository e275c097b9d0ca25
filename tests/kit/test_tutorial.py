"""docs/testing.md tells the truth: the suite finds the bugs, each in a few steps, and passes when they are mended."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
EXAMPLE = ROOT / "examples" / "untested_agent"
SETTINGS = """\
[pytest]
asyncio_default_fixture_loop_scope = function
filterwarnings = error
"""
PROFILE = """\
from hypothesis import settings

settings.register_profile("tutorial", derandomize=True, deadline=None, database=None)
settings.load_profile("tutorial")
"""
MENDS = [
    ("order: OrderId, amount: float)", "order: OrderId, amount: Annotated[float, Field(gt=0)])"),
    ("import Any, Literal", "import Annotated, Any, Literal"),
    ("from fsm_agent import", "from pydantic import Field\n\nfrom fsm_agent import"),
    ("tool(concurrency_safe=True)(self.refund)", "tool(self.refund)"),
    (
        "        await asyncio.sleep(0.5)  # the carrier confirms the new address\n        known.locked = False\n",
        "        try:\n            await asyncio.sleep(0.5)\n        finally:\n            known.locked = False\n",
    ),
]


def run_suite(folder: Path, only: str = "") -> subprocess.CompletedProcess[str]:
    (folder / "pytest.ini").write_text(SETTINGS)
    (folder / "conftest.py").write_text(PROFILE)
    plugins = ["-p", "fsm_agent.testing.plugin"] if not installed_as_plugin() else []
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *plugins, f"test_refunds.py{only}"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": ""}
    environment.pop("CI", None)  # the reader of the tutorial is at a desk; Hypothesis has other settings for CI
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def installed_as_plugin() -> bool:
    from importlib.metadata import entry_points

    return any(each.value == "fsm_agent.testing.plugin" for each in entry_points(group="pytest11"))


def steps(output: str) -> list[str]:
    """What is done in the failing example, without the invariants that are looked at in between."""
    return re.findall(r"state\.((?:model|user)_\w+\(.*\)|shuffle\(.*\))$", output, flags=re.MULTILINE)


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    for name in ("refunds.py", "test_refunds.py"):
        shutil.copy(EXAMPLE / name, tmp_path)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("test", "most", "essence"),
    [
        ("TestCustomers", 1, [r"model_calls\(call=\('refund', \{'order': 'A1', 'amount': -\d"]),
        ("TestMoney", 1, [r"model_calls_(both\(first=\('refund'.*second=\('refund'|twice\(call=\('refund')"]),
        ("TestLocks", 2, [r"user_a(borts|cts)\(", r"model_calls(_both)?\(.*'change_address'"]),
    ],
)
def test_a_bug_is_found_and_shrunk_to_a_line_or_two(suite: Path, test: str, most: int, essence: list[str]):
    done = run_suite(suite, f"::{test}")
    told = steps(done.stdout)
    assert done.returncode == 1, done.stdout + done.stderr
    assert 1 <= len(told) <= most, done.stdout
    for pattern, step in zip(essence, told, strict=True):
        assert re.match(pattern, step), done.stdout
    assert f"{test}.replay([" in done.stdout
    replay = f"from fsm_agent.testing import replay_scenario as r; r('.fsm_agent/failures/test_refunds.{test}.json')"
    again = subprocess.run(
        [sys.executable, "-c", replay],
        cwd=suite,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(suite)))},
        capture_output=True,
        text=True,
        check=False,
    )
    errors = re.findall(r"^(?:E   +|\s*\| )?(AssertionError: .*)$", done.stdout, flags=re.MULTILINE)
    assert again.returncode == 1
    assert re.findall(r"^AssertionError: .*$", again.stderr, flags=re.MULTILINE)[0] in errors, again.stderr


@pytest.mark.slow
def test_the_mended_agent_passes(suite: Path):
    agent = suite / "refunds.py"
    code = agent.read_text()
    for old, new in MENDS:
        assert code.count(old) == 1, old
        code = code.replace(old, new)
    agent.write_text(code)
    done = run_suite(suite)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "agent_loop: rows" in done.stdout
