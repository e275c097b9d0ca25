"""Stand-ins: tools, hooks, permissions and effects that do what a scenario says, one act after the other."""

from __future__ import annotations

import asyncio
import builtins
import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from fsm_agent.loop.agent import AgentMachine
from fsm_agent.loop.hooks import Block, Prevent, StopHookInput
from fsm_agent.loop.visit import EffectFunction, Outcome, Visit
from fsm_agent.testing.scenario import HookAct, Scenario, ToolAct
from fsm_agent.tools.context import ToolContext
from fsm_agent.tools.declare import Tool
from fsm_agent.tools.gate import Allow, Change, Defer, Deny, Note, Stop

__all__ = ["ODD_RESULTS", "stand_ins"]


def _itself() -> list[Any]:
    circle: list[Any] = []
    circle.append(circle)
    return circle


ODD_RESULTS: Mapping[str, Callable[[], Any]] = {
    "<an object>": object,
    "<an iterator>": lambda: iter([1, 2]),
    "<a lone surrogate>": lambda: "a\ud800b",
    "<bytes>": lambda: b"\xff\xfe",
    "<not a number>": lambda: float("nan"),
    "<a set>": lambda: {1},
    "<100,000 characters>": lambda: "0123456789" * 10_000,
    "<itself>": _itself,
}
"""Results that JSON has no form for, by the name that a `ToolAct` gives them."""


def stand_ins(machine: AgentMachine, scenario: Scenario) -> dict[str, Any]:
    """The arguments of the machine that the scenario changes: `tools`, `hooks`, `can_use_tool`, `system`, `effects`,
    `limits`.

    Raises `ValueError` when the scenario names a tool, an effect or an outcome that the machine does not have.
    """
    changes: dict[str, Any] = {}
    if scenario.limits:
        kind = type(machine.limits)
        changes["limits"] = kind.model_validate({**dict(machine.limits), **scenario.limits})
    if scenario.tools:
        changes["tools"] = _tools(machine, scenario.tools)
    if scenario.stop_hooks or scenario.before_tool or scenario.after_tool:
        changes["hooks"] = replace(
            machine.hooks,
            stop=[*machine.hooks.stop, *_hook(scenario.stop_hooks, _stop_hook)],
            before_tool=[*machine.hooks.before_tool, *_hook(scenario.before_tool, _before_tool)],
            after_tool=[*machine.hooks.after_tool, *_hook(scenario.after_tool, _after_tool)],
        )
    if scenario.permissions:
        changes["can_use_tool"] = _permission(scenario.permissions, machine.can_use_tool)
    if scenario.system:
        changes["system"] = _system(scenario.system, machine.system)
    if scenario.effects:
        made = {name: _effect(machine, name, outcomes) for name, outcomes in scenario.effects.items()}
        changes["effects"] = {**machine.effects, **made}
    return changes


# ---- tools


def _tools(machine: AgentMachine, acts: Mapping[str, Sequence[ToolAct]]) -> list[Any]:
    toolbox = machine.toolbox
    unknown = sorted(set(acts) - set(toolbox.names))
    if unknown:
        known = ", ".join(toolbox.names) or "none"
        raise ValueError(f"The scenario stands in for the tools {', '.join(unknown)}; the machine has {known}.")
    made: list[Any] = []
    for definition in toolbox.definitions:
        name = str(definition.get("name"))
        real = toolbox.get(name)
        if real is None:
            made.append(definition)
        else:
            made.append(_stand_in(real, acts[name]) if acts.get(name) else real)
    return made


def _stand_in(real: Tool[..., Any], acts: Sequence[ToolAct]) -> Tool[..., Any]:
    return Tool(
        definition=real.definition,
        body=_StandInBody(real, acts),
        function=real,
        concurrency_safe=real.safe_with_others,
        read_only=real.read_only,
        idempotent=real.idempotent,
        timeout=real.timeout,
        max_result_chars=real.max_result_chars,
    )


class _StandInBody:
    """Takes what the tool takes, and does what the scenario says."""

    def __init__(self, real: Tool[..., Any], acts: Sequence[ToolAct]) -> None:
        self._real = real
        self._acts = _endless(acts, acts[-1])

    def arguments(self, given: dict[str, Any]) -> Mapping[str, Any]:
        return self._real.arguments(given)

    async def perform(self, arguments: Mapping[str, Any], context: ToolContext[Any]) -> object:
        del arguments
        act = next(self._acts)
        for data in act.progress:
            context.progress(data)
            await asyncio.sleep(0)
        try:
            await _wait(act.seconds, act.hangs)
        except asyncio.CancelledError:
            if act.deaf:
                await asyncio.sleep(act.deaf)
            raise
        if act.raises:
            raise _exception(act.raises)
        if isinstance(act.returns, str) and act.returns in ODD_RESULTS:
            return ODD_RESULTS[act.returns]()
        return act.returns


def _endless(acts: Sequence[Any], last: Any) -> Iterator[Any]:
    yield from acts
    while True:
        yield last


async def _wait(seconds: float, hangs: bool) -> None:
    if hangs:
        await asyncio.Event().wait()
    await asyncio.sleep(seconds)


def _exception(name: str) -> BaseException:
    kind = getattr(builtins, name, None)
    if not (isinstance(kind, type) and issubclass(kind, BaseException)):
        raise ValueError(f"A ToolAct raises {name!r}, which is no built-in exception; write 'ValueError', for example.")  # noqa: TRY004
    if name in {"BaseExceptionGroup", "ExceptionGroup"}:
        return ExceptionGroup("Several went wrong.", [ValueError("The first."), KeyError("The second.")])
    return kind("It went wrong.")


# ---- hooks and permissions


def _hook(acts: Sequence[HookAct], make: Callable[[Iterator[HookAct]], Any]) -> list[Any]:
    return [make(_endless(acts, HookAct()))] if acts else []


async def _common(act: HookAct) -> bool:
    """What any hook may do. Whether that was all."""
    await _wait(act.seconds, act.says == "hang")
    if act.says == "raise":
        raise RuntimeError(act.text)
    return act.says == "pass"


def _stop_hook(acts: Iterator[HookAct]) -> Callable[[StopHookInput], Awaitable[Any]]:
    async def stop_hook(_: StopHookInput) -> Any:
        act = next(acts)
        if await _common(act):
            return None
        return {"block": Block(act.text), "prevent": Prevent(act.text)}.get(act.says, act.says)

    return stop_hook


def _before_tool(acts: Iterator[HookAct]) -> Callable[..., Awaitable[Any]]:
    async def before_tool(call: Any, *_: Any) -> Any:
        act = next(acts)
        if await _common(act):
            return None
        answers = {
            "deny": Deny(act.text),
            "deny_and_stop": Deny(act.text, stop=True),
            "note": Note(act.text),
            "change": Change(dict(call.input), act.text),
        }
        return answers.get(act.says, act.says)

    return before_tool


def _after_tool(acts: Iterator[HookAct]) -> Callable[..., Awaitable[Any]]:
    async def after_tool(*_: Any) -> Any:
        act = next(acts)
        if await _common(act):
            return None
        return {"note": Note(act.text), "stop": Stop(act.text)}.get(act.says, act.says)

    return after_tool


def _permission(acts: Sequence[HookAct], own: Callable[..., Awaitable[Any]] | None) -> Callable[..., Awaitable[Any]]:
    """A stand-in for `can_use_tool`; where it passes, the machine's own is asked."""
    left = _endless(acts, HookAct())

    async def can_use_tool(call: Any, used: Any, context: Any) -> Any:
        act = next(left)
        if await _common(act):
            return Allow() if own is None else await own(call, used, context)
        answers = {
            "allow": Allow(),
            "deny": Deny(act.text),
            "deny_and_stop": Deny(act.text, stop=True),
            "defer": Defer(act.text),
        }
        return answers.get(act.says, act.says)

    return can_use_tool


def _system(acts: Sequence[HookAct], own: Any) -> Callable[[], Awaitable[Any]]:
    """A stand-in for the function that makes the system prompt; where it passes, the machine's own prompt is given."""
    left = _endless(acts, HookAct())

    async def system() -> Any:
        act = next(left)
        if not await _common(act):
            return object()  # nonsense: no prompt at all
        given = own() if callable(own) else own
        return await given if inspect.isawaitable(given) else given

    return system


# ---- effects of a user's own


def _effect(machine: AgentMachine, name: str, outcomes: Sequence[str]) -> EffectFunction:
    declared = next((spec.outcomes for spec in machine.definition.effects if spec.name == name), None)
    if declared is None:
        raise ValueError(f"The scenario stands in for the effect {name!r}; {machine.definition.name!r} has none such.")
    if not outcomes or not set(outcomes) <= set(declared):
        said = ", ".join(outcomes) or "nothing"
        raise ValueError(f"The effect {name!r} ends in {', '.join(declared)}; the scenario says {said}.")
    left = _endless(outcomes, outcomes[-1])

    async def effect(_: Visit) -> Outcome:
        outcome = next(left)
        await _wait(0, outcome == "aborted")  # only an abort ends in that
        return Outcome(outcome, f"the scenario says {outcome}")

    return effect
