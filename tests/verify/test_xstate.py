"""XState, loading our JSON, goes where we go. Its package comes from the lock file in tests/verify/xstate."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from fsm_agent.machine import AGENT_LOOP
from fsm_agent.verify import check
from fsm_agent.verify.export import XSTATE_RUNTIME, xstate
from tests.verify.events import end_of, events
from tests.verify.sketch import SKETCH

HERE = Path(__file__).parent / "xstate"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("node") is None or shutil.which("npm") is None, reason="node is not installed"),
]


@pytest.fixture(scope="module")
def walk(tmp_path_factory):
    folder = tmp_path_factory.mktemp("xstate")
    for name in ("package.json", "package-lock.json", "walk.mjs"):
        shutil.copy(HERE / name, folder)
    (folder / "runtime.mjs").write_text(XSTATE_RUNTIME)
    done = subprocess.run(
        ["npm", "ci", "--no-audit", "--no-fund"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr

    def walked(definition, limits, runs, *, explore=False):
        question = {
            "document": json.loads(xstate(definition, limits)),
            "words": [events(run) for run in runs],
            "explore": explore,
        }
        answer = subprocess.run(
            ["node", "walk.mjs"], cwd=folder, input=json.dumps(question), capture_output=True, text=True, check=False
        )
        assert answer.returncode == 0, answer.stderr
        return json.loads(answer.stdout)

    return walked


def test_it_reaches_the_same_configurations_and_the_same_ends(walk):
    exact = check(SKETCH, exact=True)
    reached = walk(SKETCH, None, [], explore=True)["reached"]
    assert reached["configurations"] == exact.configurations
    shortest = {SKETCH.reasons[int(code) - 1]: moves for code, moves in reached["shortest"].items()}
    assert shortest == {reason: len(exact.witness(reason).word) for reason in exact.reasons}


def test_it_follows_the_shortest_run_through_each_row_of_the_shipped_loop(walk):
    report = check(AGENT_LOOP)
    ends = walk(AGENT_LOOP, report.limits, report.rows.values())["ends"]
    for run, (state, values) in zip(report.rows.values(), ends, strict=True):
        assert (state, values) == end_of(AGENT_LOOP, report.limits, run)
