"""Faults of real commands, seen from the run: `process-tree-survives`, `zombie-reap`, `non-utf8-output`."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from fsm_agent import AgentMachine, Deps, LoopLimits, RunResult
from fsm_agent.testing import Reply, ScriptedModel, tool_use
from fsm_agent.testing.invariants import ObservedRun, assert_invariants
from fsm_agent.testing.observed import ObservedModel
from fsm_agent.tools.builtin import Workspace, command_tool
from fsm_agent.tools.builtin.process_tree import ProcessTree
from tests.faults.loader import MODEL
from tests.tools.test_run_command import is_alive, pids_in

TREE = "(trap '' TERM; echo $BASHPID > pid1; exec sleep 300) & echo $$ > pid2; echo begun; wait"
LIMITS = LoopLimits(abort_grace=0.8)


def machine(root: Path, *commands: str, **given: Any) -> tuple[AgentMachine, ObservedModel]:
    script = [Reply(tool_use("run_command", {"command": command, **given})) for command in commands]
    model = ObservedModel(ScriptedModel([*script, Reply("ok")]))
    tools = [command_tool(Workspace(root))]
    return AgentMachine(MODEL, tools=tools, deps=Deps(call_model=model), limits=LIMITS, strict=True), model


def results(result: RunResult) -> list[dict[str, Any]]:
    return [block for m in result.messages if isinstance(m["content"], list) and m["role"] == "user"
            for block in m["content"] if block["type"] == "tool_result"]  # fmt: skip


def descriptors() -> set[str]:
    return {path.name for path in Path("/proc/self/fd").iterdir()}


def assert_no_child() -> None:
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def assert_nobody_left(root: Path) -> None:
    assert pids_in(root)
    assert [pid for pid in pids_in(root) if is_alive(pid)] == []
    assert_no_child()


async def both_begun(root: Path) -> None:
    async with asyncio.timeout(10):
        while len(pids_in(root)) < 2:
            await asyncio.sleep(0.005)


async def test_process_tree_survives_no_timeout(tmp_path: Path) -> None:
    agent, _ = machine(tmp_path, TREE, timeout=0.3)
    result = await agent.run("go")
    assert result.ok
    (only,) = results(result)
    assert only["is_error"] is True
    assert "begun" in only["content"]
    assert_nobody_left(tmp_path)


async def test_a_process_that_was_killed_with_the_others_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[bool] = []
    sent: list[int] = []
    send, is_gone = ProcessTree.signal, ProcessTree.is_gone

    def noted(tree: ProcessTree, number: signal.Signals) -> None:
        sent.append(number)
        send(tree, number)

    def late(tree: ProcessTree) -> bool:
        if signal.SIGKILL not in sent:
            return is_gone(tree)
        looks.append(is_gone(tree))
        return len(looks) > 2

    monkeypatch.setattr(ProcessTree, "signal", noted)
    monkeypatch.setattr(ProcessTree, "is_gone", late)
    agent, _ = machine(tmp_path, TREE, timeout=0.3)
    assert (await agent.run("go")).ok
    assert len(looks) == 3


async def test_process_tree_survives_no_abort(tmp_path: Path) -> None:
    agent, model = machine(tmp_path, TREE)
    events: list[Any] = []
    loop = asyncio.get_running_loop()
    aborted_at = 0.0

    async def stop_when_begun(run: Any) -> None:
        nonlocal aborted_at
        await both_begun(tmp_path)
        aborted_at = loop.time()
        run.abort("enough")

    async with agent.run("go") as run:
        stopping = asyncio.ensure_future(stop_when_begun(run))
        events = [event async for event in run]
        await stopping
    assert run.result.reason == "aborted_tools"
    assert "begun" in results(run.result)[0]["content"]
    assert_invariants(
        ObservedRun(agent, events, run.result, model.exchanges, aborted_at=aborted_at, ended_at=loop.time())
    )
    assert_nobody_left(tmp_path)


async def test_process_tree_survives_no_close(tmp_path: Path) -> None:
    agent, model = machine(tmp_path, TREE)
    run = agent.run("go")
    async for event in run:
        if event.type == "progress" and event.kind == "tool_started":
            await both_begun(tmp_path)
            break
    await run.aclose()
    assert model.open == []
    assert_nobody_left(tmp_path)


async def test_process_tree_survives_no_end_of_its_shell(tmp_path: Path) -> None:
    agent, _ = machine(tmp_path, "(trap '' TERM; echo $BASHPID > pid1; exec sleep 300) & echo shell done")
    result = await agent.run("go")
    assert result.ok
    assert "shell done" in results(result)[0]["content"]
    assert [pid for pid in pids_in(tmp_path) if is_alive(pid)] == []


async def test_zombie_reap_after_many_commands_of_all_kinds(tmp_path: Path) -> None:
    kinds = ("true", "exit 3", "kill -9 $$", "exec >&- 2>&-; true", "no-such-program", "/etc/passwd", "cd /nowhere", "")
    agent, _ = machine(tmp_path, *kinds, *kinds)
    before = descriptors()
    result = await agent.run("go")
    assert result.ok
    errors = [bool(block.get("is_error")) for block in results(result)]
    assert errors == [False, True, True, False, True, True, True, False] * 2
    assert_no_child()
    assert descriptors() - before == set()


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (r"printf '\xf0'", "\N{REPLACEMENT CHARACTER}"),
        (r"printf 'caf\xe9 cr\xe8me'", "caf\N{REPLACEMENT CHARACTER} cr\N{REPLACEMENT CHARACTER}me"),
        (r"printf '\xe6'; sleep 0.02; printf '\xbc\xa2!'", "\N{CJK UNIFIED IDEOGRAPH-6F22}!"),
        (r"printf 'end \xe6\xbc'", "end \N{REPLACEMENT CHARACTER}"),
    ],
    ids=["half a character", "latin-1", "split over two reads", "a half at the end"],
)
async def test_non_utf8_output_is_shown_with_replacement_marks(tmp_path: Path, command: str, shown: str) -> None:
    agent, _ = machine(tmp_path, command)
    result = await agent.run("go")
    assert result.ok
    assert shown in results(result)[0]["content"]


async def test_non_utf8_output_of_random_bytes_is_bounded_and_its_exit_code_is_told(tmp_path: Path) -> None:
    agent, _ = machine(tmp_path, "head -c 1000000 /dev/urandom; exit 7")
    result = await agent.run("go")
    (only,) = results(result)
    assert result.ok
    assert only["content"].startswith("Exit code 7")
    assert len(only["content"]) <= LIMITS.tool_result_max_chars
