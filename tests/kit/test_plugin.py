"""The pytest plugin, as a session of its own sees it."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.kit.test_tutorial import ROOT, installed_as_plugin

pytest_plugins = ["pytester"]

TESTS = """
import asyncio
import pytest
from fsm_agent import AgentMachine, Deps
from fsm_agent.testing import Reply

MACHINE = AgentMachine("claude-sonnet-5-5")

def test_one_run(agent_run, agent_transcript):
    run = agent_run(MACHINE, Reply("hi"), prompt="Hello?")
    assert run.result.text == "hi"
    agent_transcript(run)

async def test_ten_minutes(virtual_clock):
    await asyncio.sleep(600)
    assert virtual_clock.now == 600

def test_ten_minutes_outside(virtual_clock):
    assert virtual_clock.run(lambda: asyncio.sleep(600, "late")) == "late"
    assert virtual_clock.elapsed == 600

def test_a_script(scripted_model):
    model = scripted_model(Reply("hi"))
    assert MACHINE.with_changes(deps=Deps(call_model=model)).run_sync("Hello?").text == "hi"

async def test_a_server(messages_server):
    import anthropic
    server = await messages_server(Reply("hi"))
    async with anthropic.AsyncAnthropic(base_url=server.url, api_key="test") as client:
        assert (await MACHINE.with_changes(client=client).run("Hello?")).text == "hi"
"""


@pytest.fixture
def session(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.makeini("[pytest]\nasyncio_mode = auto\nasyncio_default_fixture_loop_scope = function\n")
    return pytester


def run(session: pytest.Pytester, *options: str) -> pytest.RunResult:
    plugin = [] if installed_as_plugin() else ["-p", "fsm_agent.testing.plugin"]
    return session.runpytest_subprocess(*plugin, "-p", "no:cacheprovider", *options)


@pytest.mark.slow
def test_the_fixtures_do_what_they_say_and_the_session_tells_what_it_covered(session: pytest.Pytester):
    session.makepyfile(TESTS)
    first = run(session)
    first.assert_outcomes(passed=4, failed=1)
    first.stdout.fnmatch_lines(["*write it with `pytest --agent-update`*"])
    run(session, "--agent-update").assert_outcomes(passed=5)
    again = run(session, "--agent-coverage")
    again.assert_outcomes(passed=5)
    again.stdout.fnmatch_lines(["*agent_loop: rows 3/*transitions 3/*pairs 2/*reasons 1/*(3 runs)", "*rows missing: *"])


@pytest.mark.slow
def test_a_script_that_is_not_served_fails_its_test(session: pytest.Pytester):
    session.makepyfile(
        "from fsm_agent.testing import Reply\ndef test_it(scripted_model):\n    scripted_model(Reply('x'))"
    )
    run(session).assert_outcomes(passed=1, errors=1)


@pytest.mark.slow
def test_real_requests_are_forbidden(session: pytest.Pytester):
    session.makepyfile("import httpx2\ndef test_it():\n    httpx2.get('https://api.example.org/')")
    result = run(session, "--agent-forbid-real-requests")
    result.stdout.fnmatch_lines(["*RealRequestForbidden: A test tried to send a real request: GET https://api.exa*"])


@pytest.mark.slow
def test_deep_searches_long(session: pytest.Pytester):
    session.makepyfile(
        "from hypothesis import settings\ndef test_it():\n    assert settings().max_examples == 2_000\n"
        "    assert settings().stateful_step_count == 100"
    )
    run(session, "--agent-deep").assert_outcomes(passed=1)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["option", "setting"])
def test_failing_examples_are_shared_through_a_folder(
    session: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, how: str
):
    if how == "setting":
        session.makeini("[pytest]\nagent_examples = shared\n")
    session.makepyfile(
        "import os\nfrom hypothesis import given, settings, strategies as st\n"
        "@settings(max_examples=int(os.environ['MOST']))\n"
        "@given(st.integers(0, 10**9))\ndef test_it(n):\n    assert n < 10**6"
    )
    options = ["--agent-examples", "shared"] if how == "option" else []
    monkeypatch.setenv("MOST", "1")  # the simplest: it alone would pass
    run(session, *options).assert_outcomes(passed=1)
    monkeypatch.setenv("MOST", "1000")
    run(session, *options).assert_outcomes(failed=1)
    assert any((session.path / "shared").iterdir())
    monkeypatch.setenv("MOST", "1")
    run(session, *options).assert_outcomes(failed=1)


@pytest.mark.slow
def test_the_coverage_of_xdist_workers_is_added_up(session: pytest.Pytester):
    session.makepyfile(
        "import pytest\nfrom fsm_agent import AgentMachine\nfrom fsm_agent.testing import Reply\n"
        "@pytest.mark.parametrize('n', range(4))\n"
        "def test_it(agent_run, n):\n    agent_run(AgentMachine('claude-sonnet-5-5'), Reply('hi'))"
    )
    result = run(session, "-n", "2")
    result.assert_outcomes(passed=4)
    assert re.search(r"agent_loop: rows 3/\d+.*\(4 runs\)", result.stdout.str())


def test_loading_it_imports_nothing_heavy():
    program = "import sys, fsm_agent.testing.plugin; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert not {"anthropic", "hypothesis", "httpx2", "pydantic", "structlog"} & set(done.stdout.split())
