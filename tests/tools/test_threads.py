"""Threads of sync tools."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from fsm_agent.tools.threads import DAEMON_THREADS

ABANDONED = """
import asyncio, threading
from fsm_agent.machine.limits import LoopLimits
from fsm_agent.tools import ToolBatch, ToolCall, Toolbox, tool

entered = threading.Event()

@tool(timeout=0.01)
def block() -> None:
    "Never return."
    entered.set()
    threading.Event().wait()

async def main():
    batch = ToolBatch(Toolbox([block]), limits=LoopLimits(), run_id="r", turn=1)
    await batch.run([ToolCall("1", "block", {})])
    assert entered.is_set()
    print(batch.results()[0].status)

asyncio.run(main())
"""


def test_a_tool_that_never_returns_does_not_hold_up_the_interpreters_exit() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", ABANDONED], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "timeout\n", "")


def test_a_job_that_was_cancelled_before_its_thread_began_does_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = threading.Event()
    started: list[threading.Thread] = []
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", lambda thread: started.append(thread))  # noqa: PLW0108 - a function, so that it is bound
        future = DAEMON_THREADS.submit(ran.set)
    assert future.cancel()
    started[0].start()
    started[0].join(5)
    assert not ran.is_set()


def test_a_job_gives_its_result_or_what_it_raised() -> None:
    def fail() -> None:
        raise SystemExit(3)

    assert DAEMON_THREADS.submit(divmod, 7, 2).result(5) == (3, 1)
    assert isinstance(DAEMON_THREADS.submit(fail).exception(5), SystemExit)
    assert DAEMON_THREADS.submit(threading.current_thread).result(5).daemon
