"""The pytest plugin: fixtures for agents, `--agent-deep`, a ban on real requests, and what the session has covered.

It is loaded into every session of whoever has the library installed, so it imports nothing heavy until it is used.
"""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from fsm_agent.testing.shapes import as_list

if TYPE_CHECKING:
    from fsm_agent.testing.fixtures import MakeServer, PlayAgent, TranscriptSnapshot, VirtualClock
    from fsm_agent.testing.scripted import ScriptedModel

_DEEP = "agent-deep"
_SHARED = "agent-examples"
_CLOCK = "virtual_clock"
_SHOWN = 10


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("fsm_agent", "agents (fsm_agent)")
    group.addoption(
        "--agent-deep",
        action="store_true",
        help="search long: 2,000 examples of each property with fresh seeds, 100 steps of each state machine",
    )
    group.addoption(
        "--agent-forbid-real-requests",
        action="store_true",
        help="fail a test that sends a request to another host than this machine",
    )
    group.addoption(
        "--agent-coverage",
        action="store_true",
        help="count every run of an agent, and list all rows, transitions, pairs and reasons that no run took",
    )
    group.addoption(
        "--agent-examples",
        metavar="FOLDER",
        help="keep failing examples of Hypothesis there, and try them first: one folder for all suites and machines",
    )
    group.addoption(
        "--agent-update",
        action="store_true",
        help="write the transcripts that `agent_transcript` compares with, instead of comparing",
    )
    parser.addini("agent_examples", "as --agent-examples, from the root of the project")
    parser.addini("agent_forbid_real_requests", "as --agent-forbid-real-requests", type="bool", default=False)


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--agent-deep"):
        _search_long()
    if folder := config.getoption("--agent-examples") or config.getini("agent_examples"):
        _share_examples(config.rootpath / folder)
    forbid: bool = config.getoption("--agent-forbid-real-requests") or config.getini("agent_forbid_real_requests")
    if forbid:
        from fsm_agent.testing.real_requests import forbid_real_requests

        stack = ExitStack()
        stack.enter_context(forbid_real_requests())
        config.add_cleanup(stack.close)
    if config.getoption("--agent-coverage"):
        from fsm_agent.testing.coverage import count_all_runs

        config.add_cleanup(count_all_runs())


def _search_long() -> None:
    from hypothesis import settings

    settings.register_profile(_DEEP, settings(), max_examples=2_000, stateful_step_count=100, derandomize=False)
    settings.load_profile(_DEEP)


def _share_examples(folder: Path) -> None:
    from hypothesis import settings
    from hypothesis.database import DirectoryBasedExampleDatabase

    settings.register_profile(_SHARED, settings(), database=DirectoryBasedExampleDatabase(folder))
    settings.load_profile(_SHARED)


# ---- state machines are collected as they are


def pytest_pycollect_makeitem(collector: pytest.Module | pytest.Class, name: str, obj: object) -> Any:
    """Collects `class TestMyAgent(AgentStateMachine)` as the test case that Hypothesis makes of it."""
    if not (inspect.isclass(obj) and "fsm_agent.testing.state_machine" in sys.modules):
        return None
    from fsm_agent.testing.state_machine import AgentStateMachine

    if not issubclass(obj, AgentStateMachine) or obj is AgentStateMachine or not name.startswith("Test"):
        return None
    made: Any = collector.ihook.pytest_pycollect_makeitem(collector=collector, name=name, obj=obj.TestCase)
    for node in as_list(made) or [made]:
        node.obj = obj.TestCase  # the module has the state machine under this name
    return cast("object", made)


# ---- the virtual clock


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Runs an async test that asks for the fixture `virtual_clock` on the simulated loop."""
    function: Any = inspect.unwrap(pyfuncitem.obj)
    clock: Any = pyfuncitem.funcargs.get(_CLOCK)
    if clock is None or not inspect.iscoroutinefunction(function):
        return None
    names = pyfuncitem._fixtureinfo.argnames  # pyright: ignore[reportPrivateUsage]  # noqa: SLF001 - pytest's own plugins do it so
    given = {name: pyfuncitem.funcargs[name] for name in names}
    if pyfuncitem.instance is not None and not inspect.ismethod(function):
        function = function.__get__(pyfuncitem.instance)
    clock.run(lambda: function(**given))
    return True


# ---- fixtures


@pytest.fixture
def scripted_model() -> Iterator[Callable[..., ScriptedModel]]:
    """Makes scripted models: `scripted_model(Reply("hi"))`. At the end of the test each must have served its script."""
    from fsm_agent.testing.scripted import ScriptedModel

    made: list[ScriptedModel] = []

    def make(*items: Any, **settings: Any) -> ScriptedModel:
        script: Any = items[0] if len(items) == 1 and callable(items[0]) else list(items)
        made.append(ScriptedModel(script, **settings))
        return made[-1]

    yield make
    for model in made:
        model.assert_complete()


@pytest.fixture
def virtual_clock() -> VirtualClock:
    """Lets an async test run on a virtual clock, where ten minutes pass in no time; a plain one uses its `run`."""
    from fsm_agent.testing.fixtures import VirtualClock

    return VirtualClock()


@pytest.fixture
def agent_run() -> PlayAgent:
    """Runs an agent on a script and checks every invariant: `agent_run(machine, Reply("hi"), prompt="...")`."""
    from fsm_agent.testing.fixtures import play_agent

    return play_agent


@pytest.fixture
def agent_transcript(request: pytest.FixtureRequest) -> TranscriptSnapshot:
    """Compares the transcript of a run with the file `transcripts/<test>.txt` beside the test."""
    from fsm_agent.testing.fixtures import TranscriptSnapshot

    path = Path(request.path).parent / "transcripts"
    return TranscriptSnapshot(path, str(request.node.name), update=bool(request.config.getoption("--agent-update")))


async def _messages_server() -> AsyncIterator[MakeServer]:
    """Starts local Messages APIs: `server = await messages_server(Reply("hi"))`, then `server.url`.

    They are stopped at the end of the test, and fail it if a request came that their script does not expect.
    """
    from fsm_agent.testing.server import MessagesServer

    async with AsyncExitStack() as stack:

        async def start(*items: Any, **settings: Any) -> MessagesServer:
            script: Any = items[0] if len(items) == 1 and callable(items[0]) else list(items)
            return await stack.enter_async_context(MessagesServer(script, **settings))

        yield start


try:
    import pytest_asyncio
except ImportError:  # an async fixture needs a plugin that runs it
    pass
else:
    messages_server = pytest_asyncio.fixture(_messages_server, name="messages_server")


# ---- what the session has covered


def _covered() -> Any:
    """The coverage of this process, if anything was played in it."""
    module = sys.modules.get("fsm_agent.testing.coverage")
    return None if module is None else module.COVERAGE


def pytest_sessionfinish(session: pytest.Session) -> None:
    output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)  # of pytest-xdist
    covered = _covered()
    if output is not None and covered is not None:
        output["fsm_agent"] = json.dumps(covered.as_json())


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """A worker of pytest-xdist has ended: take over what it has seen."""
    del error
    told: str | None = getattr(node, "workeroutput", {}).get("fsm_agent")
    if told:
        from fsm_agent.testing.coverage import COVERAGE

        COVERAGE.merge(json.loads(told))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    covered = _covered()
    everything = bool(config.getoption("--agent-coverage"))
    if covered is None or (terminalreporter.verbosity < 0 and not everything):
        return
    reports: list[Any] = covered.reports()
    if not reports:
        return
    terminalreporter.section("agents")
    for report in reports:
        for line in report.lines(most=None if everything else _SHOWN):
            terminalreporter.line(line)
