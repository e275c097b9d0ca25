"""`run_command`: a shell command in the working directory."""

from __future__ import annotations

import shutil
import signal
from typing import Annotated, Any, Final

from pydantic import Field

from fsm_agent.tools.builtin.excerpt import Excerpt
from fsm_agent.tools.builtin.process import Finished, environment_of_commands, run_program
from fsm_agent.tools.builtin.workspace import Workspace
from fsm_agent.tools.context import ToolContext
from fsm_agent.tools.declare import Tool, tool
from fsm_agent.tools.faults import ToolConfigError, ToolError

TIMEOUT_MAX: Final = 600.0
"""Seconds that the model may ask for, for one command."""
_PARTIAL_CHARS: Final = 8_000


def command_tool(workspace: Workspace, *, timeout: float = 120.0) -> Tool[..., Any]:
    """`run_command` in the workspace; `timeout` seconds, above 0 and at most 600, unless the model asks for others."""
    if not 0 < timeout <= TIMEOUT_MAX:
        raise ToolConfigError(
            f"The time of a command is {timeout!r} seconds; write one above 0, at most {TIMEOUT_MAX}."
        )
    shell = shutil.which("bash") or "/bin/sh"

    # Its own bound is above the command's: the command is ended by us, with its output so far in the result.
    @tool(timeout=TIMEOUT_MAX + 60)
    async def run_command(
        command: str,
        context: ToolContext[Any],
        timeout: Annotated[float, Field(gt=0, le=TIMEOUT_MAX)] = timeout,
    ) -> str:
        """Run a shell command in the working directory and show its output and exit code.

        It gets no input, and nothing of it outlives the call: processes in the background are ended when the command
        ends. Each call starts anew in the working directory.

        Args:
            command: The command, as for `bash -c`.
            timeout: Seconds after which it is stopped.
        """
        seen = Excerpt(keep=_PARTIAL_CHARS)

        def on_text(text: str) -> None:
            seen.add(text.encode())
            context.keep_partial(seen.text)
            context.progress(text)

        try:
            finished = await run_program(
                [shell, "-c", command],
                directory=workspace.root,
                environment=environment_of_commands(),
                timeout=timeout,
                grace=context.limits.abort_grace / 2,
                on_text=on_text,
            )
        except (OSError, ValueError) as error:  # no such directory any more, too long, a NUL in it
            raise ToolError(f"The command could not be started: {error}.") from error
        if finished.timed_out or finished.exit_code != 0:
            raise ToolError(told(finished, timeout))
        return told(finished, timeout)

    return run_command


def told(finished: Finished, timeout: float) -> str:
    """How the command ended, and both outputs."""
    parts = [_ending(finished, timeout)]
    if finished.stdout.strip():
        parts.append(finished.stdout.rstrip())
    if finished.stderr.strip():
        parts.append(f"stderr:\n{finished.stderr.rstrip()}")
    if finished.others_ended and not finished.timed_out:
        parts.append("[processes that it left running were ended]")
    return "\n".join(part for part in parts if part) or "(no output)"


def _ending(finished: Finished, timeout: float) -> str:
    code = finished.exit_code
    if finished.timed_out:
        return f"Stopped: it had not ended after {timeout:g} seconds. Its output until then:"
    if code is None:
        return "It could not be ended."
    if code < 0:
        return f"Ended by signal {-code} ({_signal_name(-code)})."
    return f"Exit code {code}" if code else ""


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"
