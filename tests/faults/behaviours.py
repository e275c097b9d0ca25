"""What tools, hooks and permissions of a fault scenario do: words of the scenario file made into real behaviour."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fsm_agent import Block, Hooks, Prevent, StopHookInput
from fsm_agent.tools.declare import Tool, ToolContext
from fsm_agent.tools.gate import Allow, Deny
from tests.session.histories import png

SCHEMA = {"type": "object", "properties": {}, "additionalProperties": True}


class StrangeError(Exception):
    """An exception that cannot even be told."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


FAULTS: Mapping[str, Any] = {
    "ValueError": lambda: ValueError("no such thing"),
    "ExceptionGroup": lambda: ExceptionGroup("two at once", [ValueError("one"), OSError("two")]),
    "BaseException": lambda: BaseException("worse"),
    "KeyboardInterrupt": KeyboardInterrupt,
    "SystemExit": lambda: SystemExit(3),
    "CancelledError": asyncio.CancelledError,
    "StopAsyncIteration": StopAsyncIteration,
    "without words": StrangeError,
    "huge": lambda: ValueError("x" * 5_000_000),
}


@dataclass
class Seen:
    """What the tools and hooks of a scenario have lived through."""

    inputs: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    running: list[str] = field(default_factory=list)
    """Names of tools that have begun and not ended."""
    hooks: list[bool] = field(default_factory=list)
    """`stop_hook_active` of each time that a stop hook was asked."""
    permissions: list[str] = field(default_factory=list)
    """Ids of the calls that a permission was asked for."""
    before_tool: list[str] = field(default_factory=list)


class Behaviour:
    """The body of a tool that does what its words say."""

    def __init__(self, name: str, words: Mapping[str, Any], seen: Seen) -> None:
        self.name = name
        self.words = dict(words)
        self.seen = seen
        self.count = 0

    def arguments(self, given: dict[str, Any]) -> Mapping[str, Any]:
        return given

    async def perform(self, arguments: Mapping[str, Any], context: ToolContext[Any]) -> object:
        self.seen.inputs.setdefault(self.name, []).append(dict(arguments))
        self.seen.running.append(self.name)
        self.count += 1
        try:
            return await self._do(dict(arguments), context)
        finally:
            self.seen.running.remove(self.name)

    async def _do(self, given: dict[str, Any], context: ToolContext[Any]) -> object:
        words = self.words
        if "sleep" in words:
            await asyncio.sleep(words["sleep"])
        if "sleep_input_ms" in words:
            await asyncio.sleep(given["ms"] / 1_000)
        if "hang" in words:
            await asyncio.Event().wait()
        if "ignores_cancel" in words:
            await _stubborn(words["ignores_cancel"])
            context.progress("too late")
        for number in range(words.get("progress", 0)):
            context.progress(f"{number};")
            if number % 100 == 0:
                await asyncio.sleep(0)
        if "raise" in words:
            fault: BaseException = FAULTS[words["raise"]]()
            raise fault
        return self._value(given)

    def _value(self, given: dict[str, Any]) -> object:
        words = self.words
        if "characters" in words:
            return words.get("of", "x") * words["characters"]
        if "image" in words:
            return [{"type": "image", "source": _image(words["image"])}]
        if "field" in words:
            return str(given[words["field"]])
        if "counter" in words:
            return f"{self.count} so far"
        if "object" in words:
            return object()
        return words.get("value", "ok")


async def _stubborn(seconds: float) -> None:
    """Go on for so long, whatever anybody says."""
    work = asyncio.ensure_future(asyncio.sleep(seconds))
    while not work.done():
        try:
            await asyncio.shield(work)
        except asyncio.CancelledError:
            continue


def _image(what: Any) -> dict[str, Any]:
    if what == "too large":  # valid base64 above the five megabytes
        return {"type": "base64", "media_type": "image/png", "data": png() + "A" * (5 * 1024 * 1024 + 4)}
    if what == "wrong type":
        return {"type": "base64", "media_type": "image/bmp", "data": "Qk0AAAAA"}
    return {"type": "base64", "media_type": "image/png", "data": png(*([what] if isinstance(what, int) else []))}


def make_tools(words: Mapping[str, Mapping[str, Any]], seen: Seen) -> list[Tool[..., Any]]:
    return [_tool(name, told, seen) for name, told in words.items()]


def _tool(name: str, words: Mapping[str, Any], seen: Seen) -> Tool[..., Any]:
    body = Behaviour(name, words, seen)
    options = {key: words[key] for key in ("read_only", "idempotent", "concurrency_safe", "timeout") if key in words}
    return Tool(
        definition={"name": name, "description": "A tool.", "input_schema": SCHEMA},
        body=body,
        function=body.perform,
        **options,
    )


def make_hooks(words: Mapping[str, Any], seen: Seen) -> Hooks:
    stop = [_stop_hook(told, seen) for told in words.get("stop", ())]
    before = [_before_tool(told, seen) for told in words.get("before_tool", ())]
    return Hooks(stop=stop, before_tool=before)


def _stop_hook(told: Any, seen: Seen) -> Any:
    async def hook(given: StopHookInput) -> Any:
        seen.hooks.append(given.stop_hook_active)
        match told:
            case "pass":
                return None
            case "block":
                return Block("run the tests")
            case "block differently":
                return Block(f"reason {len(seen.hooks)}")
            case "block once":
                return None if given.stop_hook_active else Block("run the tests")
            case "prevent":
                return Prevent("enough")
            case "raise":
                raise RuntimeError("the hook is broken")
            case "nonsense":
                return 42
            case "hang":
                await asyncio.Event().wait()
            case "ignore cancel":
                await _stubborn(50.0)
            case _:
                raise AssertionError(told)
        return None

    return hook


def _before_tool(told: Any, seen: Seen) -> Any:
    async def hook(call: Any, tool: Any, context: Any) -> Any:
        seen.before_tool.append(call.name)
        match told:
            case "pass":
                return None
            case "hang":
                await asyncio.Event().wait()
            case "raise":
                raise RuntimeError("the hook is broken")
            case _:
                raise AssertionError(told)
        return None

    return hook


def make_permission(words: Mapping[str, Any] | None, seen: Seen) -> Any:
    """`{tool: verdict}`: `deny`, `deny and stop`, `raise`, `hang`, `nothing`; other tools are allowed."""
    if words is None:
        return None

    async def ask(call: Any, tool: Any, context: Any) -> Any:
        seen.permissions.append(call.id)
        match words.get(call.name, "allow"):
            case "allow":
                return Allow()
            case "deny":
                return Deny("not in this house")
            case "deny and stop":
                return Deny("not in this house", stop=True)
            case "raise":
                raise RuntimeError("the check is broken")
            case "hang":
                await asyncio.Event().wait()
            case "nothing":
                return None
            case verdict:
                raise AssertionError(verdict)
        return None

    return ask
