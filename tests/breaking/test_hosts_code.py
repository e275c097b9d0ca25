"""Tools, hooks, permissions, system prompts and output types that misbehave: the run ends, and says why."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel, field_validator

from fsm_agent import Block, Hooks, Prevent, StopHookInput, ToolContext, tool
from fsm_agent.loop.events import Assistant, User
from fsm_agent.testing import Reply, text, tool_use
from fsm_agent.tools import Allow, Deny, Note, Stop
from tests.breaking.agents import QUICK, machine, results

NOT_UTF8 = os.fsdecode(b"\xff.txt")
"""A file name as Python spells it: a text with a lone surrogate."""


async def cancels_itself(*_: Any) -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(0)


async def raises_cancelled(*_: Any) -> None:
    raise asyncio.CancelledError


async def exits(*_: Any) -> None:
    raise SystemExit(3)


async def hangs(*_: Any) -> None:
    await asyncio.Event().wait()


UNRULY = [cancels_itself, raises_cancelled, exits, hangs]


@pytest.mark.parametrize("hook", UNRULY)
async def test_a_stop_hook_that_misbehaves_is_passed_and_told_of(hook: Callable[..., Any]) -> None:
    agent, _ = machine(Reply("done"), hooks=Hooks(stop=[hook]))
    run = agent.run("hi")
    told = [event.message async for event in run if event.type == "system"]
    assert run.result.reason == "completed"
    assert len(told) == 1
    assert f"The stop hook {hook.__name__} " in told[0]


@pytest.mark.parametrize("check", UNRULY)
async def test_a_permission_that_misbehaves_is_a_no(check: Callable[..., Any]) -> None:
    agent, _ = machine(Reply(tool_use("echo", {"x": "a"})), Reply("done"), can_use_tool=check)
    result = await agent.run("hi")
    assert result.reason == "completed"
    assert results(result)[0]["is_error"]


async def test_a_stop_hook_need_not_be_async() -> None:
    def hook(given: StopHookInput) -> Block | None:
        return None if given.stop_hook_active else Block("Again.")

    agent, _ = machine(Reply("one"), Reply("two"), hooks=Hooks(stop=[hook]))  # type: ignore[list-item]
    assert (await agent.run("hi")).text == "two"


async def test_a_stop_hook_that_changes_the_messages_changes_copies() -> None:
    async def hook(given: StopHookInput) -> None:
        for message in given.messages:
            message.clear()

    agent, _ = machine(Reply("done"), hooks=Hooks(stop=[hook]))
    result = await agent.run("hi")
    assert [message["role"] for message in result.messages] == ["user", "assistant"]


@pytest.mark.parametrize(
    "options",
    [
        {"hooks": Hooks(stop=[lambda _: Prevent(NOT_UTF8)])},  # type: ignore[list-item, return-value]
        {"hooks": Hooks(after_tool=[lambda *_: Stop(NOT_UTF8)])},
        {"hooks": Hooks(before_tool=[lambda *_: Note(NOT_UTF8)])},
        {"can_use_tool": lambda *_: Deny(NOT_UTF8, stop=True)},
    ],
)
async def test_a_text_that_is_no_unicode_gets_into_no_event(options: dict[str, Any]) -> None:
    agent, _ = machine(Reply(tool_use("echo", {"x": "a"})), Reply("done"), **options)
    run = agent.run("hi")
    lines = [event.model_dump_json() async for event in run]
    assert "�" in "".join(lines) + json.dumps(run.result.messages, ensure_ascii=False)


async def test_the_feedback_of_a_stop_hook_is_shown_as_it_is_sent() -> None:
    async def hook(given: StopHookInput) -> Block | None:
        return None if given.stop_hook_active else Block(NOT_UTF8)

    agent, _ = machine(Reply("one"), Reply("two"), hooks=Hooks(stop=[hook]))
    run = agent.run("hi")
    said = [event.message async for event in run if event.type == "user"]
    assert said == [run.result.messages[2]]


class Odd:
    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


CIRCLE: list[Any] = []
CIRCLE.append(CIRCLE)


@pytest.mark.parametrize("data", [Odd(), object(), b"\xff", NOT_UTF8, CIRCLE, {"a": {1, 2}}, float("nan")])
async def test_any_progress_of_a_tool_has_a_form_in_json(data: Any) -> None:
    @tool
    async def tell(ctx: ToolContext[Any]) -> str:
        """Tell."""
        ctx.progress(data)
        return "told"

    agent, _ = machine(Reply(tool_use("tell", {})), Reply("done"), tools=[tell])
    progress = [event async for event in agent.run("hi") if event.type == "progress" and event.kind == "tool_progress"]
    assert progress[0].data is data
    json.loads(progress[0].model_dump_json())


# ---- the system prompt


@pytest.mark.parametrize(
    "system",
    [
        cancels_itself,
        raises_cancelled,
        exits,
        lambda: 5,
        lambda: [{}],
        lambda: [{"type": "text", "text": object()}],
        lambda: [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}] * 6,
    ],
)
async def test_a_system_prompt_that_cannot_be_had_is_a_failed_setup(system: Any) -> None:
    agent, model = machine(system=system)
    result = await agent.run("hi")
    assert result.reason == "turn_setup_failed"
    assert result.detail.startswith("The system prompt could not be made: ")
    assert model.call_count == 0


async def test_an_abort_ends_the_wait_for_a_system_prompt() -> None:
    begun = asyncio.Event()

    async def system() -> str:
        begun.set()
        await asyncio.Event().wait()
        return ""

    agent, _ = machine(system=system)
    run = agent.run("hi")
    finishing = asyncio.create_task(run.finish())
    await begun.wait()
    run.abort("enough")
    assert (await finishing).reason == "aborted_streaming"


# ---- the output type


class Pair(BaseModel):
    a: int
    b: str


class Broken(BaseModel):
    a: int

    @field_validator("a")
    @classmethod
    def check(cls, _: int) -> int:
        raise RuntimeError("the validator is broken")


class Unprintable(BaseModel):
    a: int

    @field_validator("a")
    @classmethod
    def check(cls, _: int) -> int:
        raise ValueError(NOT_UTF8)


async def test_an_answer_that_was_cut_and_gone_on_with_is_validated_as_a_whole() -> None:
    cut = Reply('{"a": 1, "b": "one', stop="max_tokens")
    agent, model = machine(cut, cut, Reply(' two"}'), output_type=Pair)
    result = await agent.run("hi")
    assert (result.reason, result.output) == ("completed", Pair(a=1, b="one two"))
    model.assert_complete()


@pytest.mark.parametrize("kind", [Broken, Unprintable])
async def test_a_validator_that_raises_anything_makes_the_answer_invalid(kind: type[BaseModel]) -> None:
    agent, _ = machine(*[Reply('{"a": 1}')] * 4, output_type=kind)
    result = await agent.run("hi")
    assert result.reason == "structured_output_retry_exhausted"
    assert result.detail


# ---- cache marks

MARK = {"cache_control": {"type": "ephemeral"}}


async def test_cache_marks_of_tool_results_never_exceed_what_the_api_takes() -> None:
    @tool(read_only=True)
    async def marked() -> list[dict[str, Any]]:
        """Give a block with a mark."""
        return [{"type": "text", "text": "a", **MARK}]

    calls = [Reply(tool_use("marked", {})) for _ in range(7)]
    agent, model = machine(*calls, Reply("done"), tools=[marked], system=[{"type": "text", "text": "s", **MARK}])
    result = await agent.run([{"type": "text", "text": "hi", **MARK}])
    assert result.reason == "completed"
    assert max(json.dumps(body).count("cache_control") for body in model.calls) == 4
    assert "cache_control" in json.dumps(model.calls[-1]["messages"][-1])


async def test_cache_marks_of_prompts_never_exceed_what_the_api_takes() -> None:
    agent, model = machine(*(Reply("done") for _ in range(6)), cache=False)
    result = None
    for _ in range(6):
        result = await agent.run([{"type": "text", "text": "hi", **MARK}], history=result)
        assert result.reason == "completed"
    assert [json.dumps(body).count("cache_control") for body in model.calls] == [1, 2, 3, 4, 4, 4]


# ---- consumers


async def test_a_consumer_that_empties_what_it_is_shown_changes_nothing_of_the_history() -> None:
    agent, _ = machine(Reply(text("one"), tool_use("echo", {"x": "a"})), Reply("done"), can_use_tool=lambda *_: Allow())
    run = agent.run("hi")
    async for event in run:
        if event.type == "stream_event":
            for part in ("message", "content_block", "delta"):
                event.event.get(part, {}).clear()
        elif isinstance(event, Assistant | User):
            event.message.clear()
    assert run.result.text == "done"
    assert [message["role"] for message in run.result.messages] == ["user", "assistant", "user", "assistant"]
    assert results(run.result)[0]["content"] == "a"


async def test_a_hundred_calls_in_one_message_are_answered_in_their_order() -> None:
    @tool(read_only=True)
    async def double(i: int) -> int:
        """Double."""
        await asyncio.sleep(0)
        return 2 * i

    calls = [tool_use("double", {"i": i}) for i in range(100)]
    agent, _ = machine(Reply(*calls), Reply("done"), tools=[double], limits=QUICK)
    assert [block["content"] for block in results(await agent.run("hi"))] == [str(2 * i) for i in range(100)]
