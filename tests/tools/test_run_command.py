"""`run_command`: real processes, and none of them left.

Faults `process-tree-survives`, `zombie-reap`, `non-utf8-output`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fsm_agent.machine.limits import LoopLimits
from fsm_agent.tools import ToolConfigError, ToolContext, ToolResult, tool
from fsm_agent.tools.builtin import Workspace, command_tool, process_tree
from fsm_agent.tools.builtin.excerpt import Excerpt
from fsm_agent.tools.builtin.process import Finished, run_program
from fsm_agent.tools.builtin.process_tree import MARK, ProcessTree
from tests.tools.batches import Recorder, call

QUICK = LoopLimits(abort_grace=0.2)


async def ran(root: Path, command: str, **given: Any) -> ToolResult:
    recorder = Recorder(command_tool(Workspace(root)), limits=QUICK)
    await recorder.run(call("1", "run_command", command=command, **given))
    recorder.assert_balanced()
    return recorder.batch.results()[0]


def is_alive(pid: int) -> bool:
    """Whether the process runs. A zombie does not: some process 1 reaps late."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] not in {"Z", "X"}


def children() -> set[int]:
    """Our child processes, zombies included."""
    found: set[int] = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(path.read_text().rpartition(")")[2].split()[1]) == os.getpid():
                found.add(int(path.parent.name))
    return found


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def pids_in(root: Path) -> list[int]:
    return [int(word) for path in sorted(root.glob("pid*")) for word in path.read_text().split()]


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.005)


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path: Path) -> Any:
    """After each test: no process that wrote its number to a file pid*, no child of ours, zombies included."""
    before = children()
    yield
    assert [pid for pid in pids_in(tmp_path) if is_alive(pid)] == []
    assert children() <= before


class TestResult:
    async def test_output(self, tmp_path: Path) -> None:
        result = await ran(tmp_path, "pwd; echo two")
        assert result.content == f"{tmp_path}\ntwo"
        assert result.status == "ok"

    @pytest.mark.parametrize(
        ("command", "content"),
        [
            ("true", "(no output)"),
            ("echo out; echo err >&2; exit 3", "Exit code 3\nout\nstderr:\nerr"),
            ("kill -9 $$", "Ended by signal 9 (SIGKILL)."),
            ("cat; echo end", "end"),
            ("printf '\\xf0'; exit 1", "Exit code 1\n\ufffd"),
            ("printf 'caf\\xe9'", "caf\ufffd"),
            ("printf '\\xe2\\x82'; sleep 0.01; printf '\\xac'", "\u20ac"),
            ("printf 'half \\xe2\\x82'", "half \ufffd"),
        ],
    )
    async def test_how_it_ended(self, tmp_path: Path, command: str, content: str) -> None:
        result = await ran(tmp_path, command)
        assert result.content == content
        assert result.is_error == content.startswith(("Exit code", "Ended by"))

    async def test_a_flood_is_bounded_with_its_beginning_and_end(self, tmp_path: Path) -> None:
        result = await ran(tmp_path, "echo begin; head -c 3000000 /dev/urandom; echo; echo end")
        assert isinstance(result.content, str)
        assert result.content.startswith("begin\n")
        assert result.content.endswith("end")
        assert "characters left out]" in result.content
        assert len(result.content) < 400_100

    async def test_output_is_told_as_it_comes(self, tmp_path: Path) -> None:
        recorder = Recorder(command_tool(Workspace(tmp_path)), limits=QUICK)
        work = asyncio.ensure_future(recorder.run(call("1", "run_command", command="echo first; read x < go; echo $x")))
        os.mkfifo(tmp_path / "go")
        await until(lambda: recorder.told("progress"))
        assert recorder.notices[1].data == "first\n"
        assert not work.done()
        await asyncio.to_thread((tmp_path / "go").write_text, "second\n")
        await work
        assert recorder.contents == ["first\nsecond"]

    async def test_what_cannot_be_started_is_an_error_result(self, tmp_path: Path) -> None:
        root = tmp_path / "root"
        root.mkdir()
        made = command_tool(Workspace(root))
        root.rmdir()
        recorder = Recorder(made)
        await recorder.run(call("1", "run_command", command="true"), call("2", "run_command", command="a\0b"))
        assert recorder.statuses == ["error", "error"]
        assert all("could not be started" in content for content in recorder.contents)
        assert "Exit code 127" in str((await ran(tmp_path, "no-such-program")).content)

    async def test_it_gets_no_input_and_no_credentials_of_the_models_api(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("ANTHROPIC_API_KEY", "secret")
        monkeypatch.setenv("OF_THE_USER", "kept")
        result = await ran(tmp_path, "echo [$ANTHROPIC_API_KEY] [$OF_THE_USER]; cat")
        assert result.content == "[] [kept]"

    @pytest.mark.parametrize("timeout", [0, -1, 601, "soon"])
    async def test_a_time_that_is_none_is_refused(self, tmp_path: Path, timeout: Any) -> None:
        assert (await ran(tmp_path, "true", timeout=timeout)).status == "invalid_input"

    def test_a_default_time_that_is_none_is_a_configuration_error(self, tmp_path: Path) -> None:
        with pytest.raises(ToolConfigError, match="above 0, at most 600"):
            command_tool(Workspace(tmp_path), timeout=0)


STUBBORN = "trap '' TERM; echo $$ > pid_shell; (trap '' TERM; echo $BASHPID > pid_child; sleep 60; sleep 60) & "


class TestNothingSurvives:
    """A command with a grandchild that ignores SIGTERM and holds the output open."""

    async def test_its_time(self, tmp_path: Path) -> None:
        started = time.monotonic()
        result = await ran(tmp_path, STUBBORN + "echo so far; sleep 60", timeout=0.3)
        assert result.status == "error"
        assert result.content == "Stopped: it had not ended after 0.3 seconds. Its output until then:\nso far"
        assert time.monotonic() - started < 20
        assert len(pids_in(tmp_path)) == 2

    async def test_an_abort(self, tmp_path: Path) -> None:
        recorder = Recorder(command_tool(Workspace(tmp_path)), limits=LoopLimits(abort_grace=1))
        command = STUBBORN + "echo so far; touch ready; sleep 60"
        work = asyncio.ensure_future(recorder.run(call("1", "run_command", command=command)))
        await until(lambda: (tmp_path / "ready").exists() and (tmp_path / "pid_child").exists())
        await until(lambda: recorder.told("progress"))
        work.cancel()
        started = time.monotonic()
        await asyncio.wait({work})
        assert time.monotonic() - started < 20
        assert recorder.statuses == ["interrupted"]
        assert recorder.contents[0].endswith("So far:\nso far\n")
        assert len(pids_in(tmp_path)) == 2

    async def test_an_end_of_the_shell_alone(self, tmp_path: Path) -> None:
        started = time.monotonic()
        result = await ran(tmp_path, STUBBORN + "until [ -s pid_child ]; do :; done; echo done")
        assert result.content == "done\n[processes that it left running were ended]"
        assert time.monotonic() - started < 20
        assert len(pids_in(tmp_path)) == 2

    async def test_a_process_in_a_session_of_its_own(self, tmp_path: Path) -> None:
        command = "setsid sh -c 'echo $$ > pid; sleep 60' > /dev/null 2>&1 < /dev/null & until [ -s pid ]; do :; done"
        result = await ran(tmp_path, command)
        assert result.content == "[processes that it left running were ended]"
        assert len(pids_in(tmp_path)) == 1

    async def test_a_process_that_also_dropped_its_environment_while_its_parent_lives(self, tmp_path: Path) -> None:
        pytest.importorskip("psutil", reason="only psutil finds it")
        command = "env -i setsid sh -c 'echo $$ > pid; exec sleep 60' & sleep 60"
        recorder = Recorder(command_tool(Workspace(tmp_path)), limits=QUICK)
        work = asyncio.ensure_future(recorder.run(call("1", "run_command", command=command)))
        await until(lambda: pids_in(tmp_path))
        work.cancel()
        await asyncio.wait({work})
        await until(lambda: not is_alive(pids_in(tmp_path)[0]))

    async def test_a_command_that_closed_its_output_and_goes_on(self, tmp_path: Path) -> None:
        result = await ran(tmp_path, "echo $$ > pid; echo said; exec >&- 2>&-; sleep 60", timeout=0.2)
        assert result.content == "Stopped: it had not ended after 0.2 seconds. Its output until then:\nsaid"

    async def test_a_discarded_batch(self, tmp_path: Path) -> None:
        made = command_tool(Workspace(tmp_path))

        @tool(read_only=True)
        async def peek() -> None:
            await made("echo $$ > pid; sleep 60", ToolContext(None, limits=QUICK), 60)

        recorder = Recorder(peek, limits=QUICK)
        recorder.offer(call("1", "peek"))
        await until(lambda: pids_in(tmp_path))
        await recorder.batch.discard()
        assert not is_alive(pids_in(tmp_path)[0])

    async def test_a_cancellation_at_the_moment_of_the_start(self, tmp_path: Path) -> None:
        for steps in range(12):
            work = asyncio.ensure_future(program(tmp_path, "echo $$ > pid$$; sleep 60"))
            for _ in range(steps):
                await asyncio.sleep(0)
            work.cancel()
            with pytest.raises(asyncio.CancelledError):
                await work

    async def test_a_second_cancellation_while_it_is_ended_kindly(self, tmp_path: Path) -> None:
        work = asyncio.ensure_future(program(tmp_path, "trap '' TERM; echo $$ > pid; sleep 60 & wait; wait", grace=60))
        await until(lambda: pids_in(tmp_path))
        work.cancel()
        await asyncio.sleep(0.01)
        started = time.monotonic()
        work.cancel()
        await asyncio.wait({work})
        assert work.cancelled()
        assert time.monotonic() - started < 20

    async def test_a_kind_end_lets_it_clean_up(self, tmp_path: Path) -> None:
        command = "trap 'echo cleaned; exit 0' TERM; echo $$ > pid; sleep 60 & wait"
        finished = await program(tmp_path, command, timeout=0.2, grace=5)
        assert (finished.timed_out, finished.stdout) == (True, "cleaned\n")


async def program(root: Path, command: str, *, timeout: float = 60, grace: float = 0.1) -> Finished:
    return await run_program(
        ["bash", "-c", command],
        directory=root,
        environment=dict(os.environ),
        timeout=timeout,
        grace=grace,
        on_text=lambda _: None,
    )


@pytest.mark.slow
async def test_many_short_commands_leave_no_zombie_no_descriptor_and_no_thread(tmp_path: Path) -> None:
    commands = ["true", "exit 3", "kill -9 $$", "exec >&- 2>&-", "no-such-program", "echo x; exec /dev/null"]
    before = descriptors()
    for _ in range(5):
        await asyncio.gather(*[program(tmp_path, command) for command in commands])
        with pytest.raises(OSError, match="No such file"):
            await run_program(
                ["/no/such/program"], directory=tmp_path, environment={}, timeout=1, grace=0, on_text=lambda _: None
            )
    assert descriptors() <= before
    assert children() == set()


def test_without_proc_and_psutil_the_group_is_still_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_tree, "_PROC", Path("/no/proc"))
    monkeypatch.setattr(process_tree, "_with_psutil", lambda pid: None)
    child = os.posix_spawn("/bin/sleep", ["sleep", "60"], {}, setpgroup=0)
    tree = ProcessTree(child, "mark")
    assert not tree.is_gone()
    tree.signal(signal.SIGKILL)
    os.waitpid(child, 0)
    assert tree.is_gone()
    tree.reap()
    tree.signal(signal.SIGKILL)


def test_the_mark_finds_a_process_in_another_group() -> None:
    child = os.posix_spawn("/bin/sleep", ["sleep", "60"], {MARK: "this one"}, setpgroup=0)
    other = os.posix_spawn("/bin/sleep", ["sleep", "60"], {MARK: "that one"}, setpgroup=0)
    tree = ProcessTree(2**22 + 1, "this one")  # no such group
    assert not tree.is_gone()
    tree.signal(signal.SIGKILL)
    os.waitpid(child, 0)
    assert tree.is_gone()
    assert is_alive(other)
    os.kill(other, signal.SIGKILL)
    os.waitpid(other, 0)


def test_an_excerpt_keeps_all_that_fits_and_else_both_ends() -> None:
    small = Excerpt(keep=10)
    small.add(b"0123456789")
    assert small.text == "0123456789"
    small.add(b"ab")
    assert small.text == "01234\n[2 characters left out]\n789ab"


def test_an_excerpt_of_a_flood_holds_little() -> None:
    excerpt = Excerpt(keep=100)
    for _ in range(10_000):
        excerpt.add(b"x" * 1_000)
    assert sum(map(len, excerpt._tail)) < 2_000
    assert "[9999900 characters left out]" in excerpt.text
