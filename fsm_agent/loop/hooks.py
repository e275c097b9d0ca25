"""Stop hooks: a host's own checks of whether the model may end its turn."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class StopHookInput:
    """What a stop hook is told. `stop_hook_active`: the model works because a stop hook objected before."""

    stop_hook_active: bool
    text: str
    messages: Sequence[dict[str, Any]]
    turn: int
    run_id: str


@dataclass(frozen=True, slots=True)
class Block:
    """The model may not stop yet; it is told the reason and goes on."""

    reason: str


@dataclass(frozen=True, slots=True)
class Prevent:
    """The run ends here, with the terminal reason `stop_hook_prevented`."""

    reason: str


StopHook: TypeAlias = Callable[[StopHookInput], Awaitable[Block | Prevent | None]]
"""An async callable. `None` lets the model stop. A hook that fails or takes too long never blocks."""


@dataclass(frozen=True, slots=True)
class Hooks:
    """The hooks of a machine.

    `stop` hooks are asked in order after a normal end of turn, and only then. `before_tool` and `after_tool` are asked
    around each tool call (see `fsm_agent.tools`).
    """

    stop: Sequence[StopHook] = ()
    before_tool: Sequence[Any] = ()
    after_tool: Sequence[Any] = ()


@dataclass(frozen=True, slots=True)
class HookVerdict:
    """What the stop hooks said together. `problems` are hooks that failed or took too long."""

    outcome: str
    reasons: tuple[str, ...] = ()
    problems: tuple[tuple[str, str], ...] = ()


async def ask_stop_hooks(
    hooks: Sequence[StopHook], given: StopHookInput, *, timeout: float, grace: float
) -> HookVerdict:
    """Ask each hook in turn. The first `Prevent` ends the round; the reasons of all `Block`s are gathered."""
    reasons: list[str] = []
    problems: list[tuple[str, str]] = []
    for hook in hooks:
        name = getattr(hook, "__name__", type(hook).__name__)
        answer = await _ask(hook, given, timeout=timeout, grace=grace)
        match answer:
            case Prevent(reason):
                return HookVerdict("prevent", (reason,), tuple(problems))
            case Block(reason):
                reasons.append(reason)
            case None:
                pass
            case TimeoutError():
                problems.append(("hook_timeout", f"The stop hook {name} took longer than {timeout:g} s; it is passed."))
            case BaseException():
                problems.append(("hook_error", f"The stop hook {name} failed with {_named(answer)}; it is passed."))
            case _:
                problems.append(
                    ("hook_error", f"The stop hook {name} returned a {type(answer).__name__}, not a Block or Prevent.")
                )
    return HookVerdict("block" if reasons else "pass", tuple(reasons), tuple(problems))


def _named(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"[:500]
    except Exception:
        return type(error).__name__


async def _ask(hook: StopHook, given: StopHookInput, *, timeout: float, grace: float) -> object:
    """The hook's answer, or what it raised. A hook that does not heed its cancellation is left behind after a grace."""
    task = asyncio.ensure_future(_call(hook, given))
    try:
        done, _ = await asyncio.wait({task}, timeout=timeout)
    except asyncio.CancelledError:
        await _stop(task, grace)
        raise
    if not done:
        await _stop(task, grace)
        return TimeoutError()
    return task.result()


async def _call(hook: StopHook, given: StopHookInput) -> object:
    try:
        return await hook(given)
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        return error
    except BaseException as error:
        return error


async def _stop(task: asyncio.Future[object], grace: float) -> None:
    task.cancel()
    await asyncio.wait({task}, timeout=grace)
