"""`run_sync` from threads, from tools, after a fork, under Ctrl-C, and when the machine is gone."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anthropic
import pytest

from fsm_agent import AgentMachine, tool
from fsm_agent.testing import MessagesServer, Reply, tool_use
from tests.breaking.agents import MODEL, machine, results

WHO = contextvars.ContextVar("WHO", default="nobody")


@tool(read_only=True)
def who() -> str:
    """Say who asks."""
    return WHO.get()


def test_each_run_sees_the_context_variables_of_its_caller() -> None:
    calls = [Reply(tool_use("who", {})), Reply("done")]
    agent, _ = machine(*calls, *calls, tools=[who])

    def ask(name: str) -> str:
        WHO.set(name)
        return str(results(agent.run_sync("hi"))[0]["content"])

    assert [contextvars.copy_context().run(ask, name) for name in ("Ada", "Grace")] == ["Ada", "Grace"]


def test_a_tool_in_a_thread_may_ask_its_own_machine() -> None:
    machines: list[AgentMachine] = []

    @tool
    def delegate() -> str:
        """Ask for a part of the answer."""
        return machines[0].run_sync("part").text

    def script(body: Any) -> Reply:
        if body["messages"][0]["content"] == "part":
            return Reply("the part")
        return Reply(tool_use("delegate", {})) if len(body["messages"]) == 1 else Reply("the whole")

    agent, _ = machine(script, tools=[delegate])
    machines.append(agent)
    result = agent.run_sync("whole")
    assert (result.text, results(result)[0]["content"]) == ("the whole", "the part")


def test_one_machine_serves_many_threads() -> None:
    agent, _ = machine(lambda body: Reply(body["messages"][-1]["content"]))
    with ThreadPoolExecutor(8) as threads:
        answers = [result.text for result in threads.map(agent.run_sync, [f"q{i}" for i in range(16)])]
    assert answers == [f"q{i}" for i in range(16)]


async def test_a_machine_may_be_collected_while_an_event_loop_runs() -> None:
    held = [machine(Reply("hello"))[0]]
    result = await asyncio.to_thread(held[0].run_sync, "hi")
    held.clear()
    gc.collect()
    assert result.text == "hello"


@contextmanager
def served(*script: Reply) -> Iterator[MessagesServer]:
    """A server with an event loop in a thread of its own."""
    ready, servers, ends = threading.Event(), list[MessagesServer](), list[Any]()

    async def serve() -> None:
        async with MessagesServer(script) as server:
            end = asyncio.Event()
            servers.append(server)
            ends.extend([asyncio.get_running_loop(), end])
            ready.set()
            await end.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        assert ready.wait(10)
        yield servers[0]
    finally:
        ends[0].call_soon_threadsafe(ends[1].set)
        thread.join()


def from_environment(server: MessagesServer, monkeypatch: pytest.MonkeyPatch) -> AgentMachine:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "test")
    return AgentMachine(MODEL)


def test_one_client_serves_the_blocking_runs_of_several_machines() -> None:
    with served(*[Reply("hello")] * 4) as server:
        client = anthropic.AsyncAnthropic(base_url=server.url, api_key="test")
        machines = [AgentMachine(MODEL, client=client), AgentMachine(MODEL, client=client)]
        assert [each.run_sync("hi").text for each in machines * 2] == ["hello"] * 4
        from fsm_agent.loop.blocking import run_blocking

        run_blocking(client.close)


def test_the_own_client_of_a_blocking_run_is_closed_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with served(Reply("hello"), Reply("hello")) as server:
        agent = from_environment(server, monkeypatch)
        assert [agent.run_sync("hi").text for _ in range(2)] == ["hello", "hello"]
        del agent
        gc.collect()


def test_the_own_client_ends_with_the_event_loop_that_it_served(monkeypatch: pytest.MonkeyPatch) -> None:
    with served(Reply("hello"), Reply("hello")) as server:
        agent = from_environment(server, monkeypatch)
        for _ in range(2):
            assert asyncio.run(agent.run("hi").finish()).text == "hello"
        del agent
        gc.collect()


async def test_the_own_client_is_closed_when_its_machine_is_collected(monkeypatch: pytest.MonkeyPatch) -> None:
    async with MessagesServer([Reply("hello")]) as server:
        held = [from_environment(server, monkeypatch)]
        assert (await held[0].run("hi")).text == "hello"
        assert server.open_connections == 1
        held.clear()
        gc.collect()
        async with asyncio.timeout(5):
            while server.open_connections:
                await asyncio.sleep(0.001)


PROGRAM = """
import asyncio, os, signal, sys, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell that runs the tests in the background ignores it
from fsm_agent import AgentMachine, Deps, LoopLimits, tool
from fsm_agent.testing import Reply, ScriptedModel, tool_use

@tool
async def slow() -> None:
    "Take long."
    print("begun", flush=True)
    await asyncio.sleep(60)

@tool
def slow_thread() -> None:
    "Take long, in a thread."
    print("begun", flush=True)
    time.sleep(60)

def machine(*script):
    return AgentMachine("claude-sonnet-5-5", deps=Deps(call_model=ScriptedModel(script)), tools=[slow, slow_thread],
                        limits=LoopLimits(abort_grace=0.1))
"""


@contextmanager
def program(text: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-W", "error", "-c", PROGRAM + text],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path.cwd())},
    ) as child:
        try:
            yield child
        finally:
            child.kill()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["slow", "slow_thread"])
def test_ctrl_c_ends_a_blocking_run_and_leaves_the_machine_usable(name: str) -> None:
    with program(f"""
agent = machine(Reply(tool_use("{name}", {{}})), Reply("again"))
try:
    agent.run_sync("hi")
except KeyboardInterrupt:
    print("interrupted", agent.run_sync("hi").text)
""") as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "begun\n"
        child.send_signal(signal.SIGINT)
        told, errors = child.communicate(timeout=30)
        assert (told, errors, child.returncode) == ("interrupted again\n", "", 0)


@pytest.mark.slow
def test_a_forked_child_has_an_event_loop_of_its_own() -> None:
    with program("""
agent = machine(Reply("one"), Reply("two"))
print(agent.run_sync("hi").text, flush=True)
if os.fork() == 0:
    print("child", agent.run_sync("hi").text, flush=True)
    os._exit(0)
os.wait()
print("parent", agent.run_sync("hi").text)
""") as child:
        told, errors = child.communicate(timeout=30)
        assert (told, errors, child.returncode) == ("one\nchild two\nparent two\n", "", 0)


@pytest.mark.slow
def test_the_interpreter_ends_in_silence_with_a_run_that_nobody_ended() -> None:
    with program("""
agent = machine(Reply("one"), Reply("two"))
async def begin():
    global run
    run = agent.run("hi")
    await anext(run)
asyncio.run(begin())
thread = threading.Thread(target=lambda: print(agent.run_sync("hi").text))
thread.start(); thread.join()
""") as child:
        told, errors = child.communicate(timeout=30)
        assert (told, errors, child.returncode) == ("one\n", "", 0)
