"""All processes of a command: its group, and those that left the group."""

from __future__ import annotations

import importlib
import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

MARK: Final = "FSM_AGENT_COMMAND"
"""Environment variable that every process of a command inherits: it finds those that made a session of their own."""

_PROC: Final = Path("/proc")


class ProcessTree:
    """The processes that came from one command. `root` was started in a session of its own, with `MARK` set to `mark`.

    The group is what is signalled first. Processes that left it are found by `mark` where there is a /proc (Linux), and
    as descendants of `root` where psutil is installed (extra `shell`). A process that left the group, cleared its
    environment and lost its parent is not found.
    """

    def __init__(self, root: int, mark: str) -> None:
        self._root = root
        self._mark = f"{MARK}={mark}".encode()
        self._known: set[int] = set()
        self._process = _with_psutil(root)

    def is_gone(self) -> bool:
        """No process is left, but for zombies that are for another to reap."""
        return not _group_is_alive(self._root) and not self._strays()

    def signal(self, number: signal.Signals) -> None:
        """Send it to all. Who is gone already is gone."""
        strays = self._strays()
        _quietly_kill_group(self._root, number)
        for stray in strays:
            _quietly_kill(stray, number)

    def reap(self) -> None:
        """Collect processes of the group that fell to us as orphans (we are process 1 of a container), and no other.

        Only when the root itself has been reaped by who started it.
        """
        try:
            while os.waitpid(-self._root, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            pass

    def _strays(self) -> set[int]:
        self._known |= self._descendants()
        self._known = {pid for pid in self._known if _is_running(pid)} | self._marked()
        return self._known

    def _descendants(self) -> set[int]:
        if self._process is None:
            return set()
        try:
            return {child.pid for child in self._process.children(recursive=True)}
        except Exception:  # psutil's errors: it is gone, or not ours to look at
            return set()

    def _marked(self) -> set[int]:
        if not _PROC.is_dir():
            return set()
        return {pid for pid in _own_pids() if self._carries_mark(pid)}

    def _carries_mark(self, pid: int) -> bool:
        try:
            return self._mark in (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
        except OSError:
            return False


def _own_pids() -> list[int]:
    user = os.geteuid()
    found: list[int] = []
    with os.scandir(_PROC) as entries:
        for entry in entries:
            try:
                if entry.name.isdigit() and entry.stat().st_uid == user:
                    found.append(int(entry.name))
            except OSError:  # it is gone
                continue
    return found


def _with_psutil(pid: int) -> Any:
    """psutil's view of the process, which knows when its number has gone to another; None without psutil."""
    try:
        psutil: Any = importlib.import_module("psutil")
        return psutil.Process(pid)
    except Exception:  # not installed, or the process is gone
        return None


def _is_running(pid: int) -> bool:
    if _PROC.is_dir():
        return _status_of(pid) is not None
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


def _group_is_alive(group: int) -> bool:
    """A zombie can be signalled too: process 1 of a container may reap orphans late, or never."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # there is one, of another user
        return True
    return not _PROC.is_dir() or any(_is_alive_in(group, pid) for pid in _own_pids())


def _is_alive_in(group: int, pid: int) -> bool:
    fields = _status_of(pid)
    return fields is not None and int(fields[2]) == group


def _status_of(pid: int) -> list[str] | None:
    """State, parent, group, ... as in /proc; None for a zombie or one that is gone."""
    try:
        # "pid (name) state ppid pgrp ...": the name may hold anything, brackets too.
        fields = (_PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in {"Z", "X"} else fields


def _quietly_kill_group(group: int, number: signal.Signals) -> None:
    with suppress(OSError):
        os.killpg(group, number)


def _quietly_kill(pid: int, number: signal.Signals) -> None:
    with suppress(OSError):
        os.kill(pid, number)
