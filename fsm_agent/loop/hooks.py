"""Stop hooks: a host's own checks of whether the model may end its turn."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from fsm_agent.model.surrogates import mended_text
from fsm_agent.tools.declare import called
from fsm_agent.tools.faults import text_of_fault
from fsm_agent.tools.gate import checked_text
from fsm_agent.tools.job import Job, Raised, Returned


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

    def __post_init__(self) -> None:
        checked_text(self.reason, "Block(reason=...)")


@dataclass(frozen=True, slots=True)
class Prevent:
    """The run ends here, with the terminal reason `stop_hook_prevented`."""

    reason: str

    def __post_init__(self) -> None:
        checked_text(self.reason, "Prevent(reason=...)")


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
        job = Job(partial(called, partial(hook, given), on_the_loop=True), name=f"stop hook {name}")
        answer = await job.within(timeout, grace=grace)
        match answer:
            case Returned(Prevent(reason)):
                return HookVerdict("prevent", (mended_text(reason),), tuple(problems))
            case Returned(Block(reason)):
                reasons.append(mended_text(reason))
            case Returned(None):
                pass
            case Returned(other):
                kind = type(other).__name__
                problems.append(("hook_error", f"The stop hook {name} returned a {kind}, not a Block or Prevent."))
            case Raised(fault):
                told = mended_text(text_of_fault(fault))
                problems.append(("hook_error", f"The stop hook {name} failed with {told}; it is passed."))
            case None:
                problems.append(("hook_timeout", f"The stop hook {name} took longer than {timeout:g} s; it is passed."))
    return HookVerdict("block" if reasons else "pass", tuple(reasons), tuple(problems))
