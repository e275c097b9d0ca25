"""Permissions and hooks around each tool, and what happens when they fail."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from fsm_agent.machine.limits import LoopLimits
from fsm_agent.testing.simulation import simulate
from fsm_agent.tools import (
    Allow,
    Change,
    Defer,
    Deny,
    Note,
    Stop,
    Tool,
    ToolCall,
    ToolContext,
    ToolError,
    ToolHooks,
    ToolResult,
    tool,
)
from tests.tools.batches import Recorder, call


class Shop:
    """A tool that remembers what it sold."""

    def __init__(self) -> None:
        self.sold: list[str] = []

        @tool
        async def buy(item: str) -> str:
            "Buy an item."
            if item == "air":
                raise ToolError("Not for sale.")
            self.sold.append(item)
            return f"bought {item}"

        self.buy: Tool[..., Any] = buy


def allowing(decision: Any) -> Any:
    """A permission that always gives this decision, or raises it."""

    async def permission(call: ToolCall, tool: Tool[..., Any], context: ToolContext[Any]) -> Any:
        if isinstance(decision, BaseException):
            raise decision
        return decision

    return permission


async def never(*_: Any) -> Any:
    await asyncio.sleep(1_000_000)


class TestPermission:
    async def test_what_is_allowed_runs(self) -> None:
        shop = Shop()
        recorder = Recorder(shop.buy, permission=allowing(Allow()))
        assert await recorder.run(call("1", "buy", item="bread")) == "done"
        assert recorder.contents == ["bought bread"]

    async def test_what_is_denied_does_not_run_and_the_reason_is_told(self) -> None:
        shop = Shop()
        recorder = Recorder(shop.buy, permission=allowing(Deny("The shop is closed.")))
        assert await recorder.run(call("1", "buy", item="bread")) == "done"
        assert recorder.statuses == ["denied"]
        assert recorder.contents == ["The tool did not run, by decision: The shop is closed."]
        assert shop.sold == []
        assert recorder.notices == []

    async def test_it_is_asked_once_for_each_call_with_the_call_the_tool_and_the_context(self) -> None:
        shop = Shop()
        asked: list[tuple[str, str, str]] = []

        async def permission(call: ToolCall, tool: Tool[..., Any], context: ToolContext[Any]) -> Allow | Deny:
            asked.append((call.id, call.input["item"], context.deps))
            assert tool is shop.buy
            return Allow() if call.input["item"] == "bread" else Deny("no")

        recorder = Recorder(shop.buy, permission=permission, deps="till")
        await recorder.run(call("1", "buy", item="bread"), call("2", "buy", item="gun"), call("3", "buy", wrong=1))
        assert asked == [("1", "bread", "till"), ("2", "gun", "till")]
        assert recorder.statuses == ["ok", "denied", "invalid_input"]

    async def test_a_denial_may_end_the_run_and_what_waits_does_not_run(self) -> None:
        shop = Shop()
        recorder = Recorder(shop.buy, permission=allowing(Deny("Fraud.", stop=True)))
        outcome = await recorder.run(call("1", "buy", item="bread"), call("2", "buy", item="milk"))
        assert outcome == "hook_stopped"
        assert recorder.batch.detail == "Fraud."
        assert recorder.statuses == ["hook_stopped", "not_run"]
        assert recorder.contents[1] == "The tool did not run: a call before it ended the run."

    async def test_a_decision_that_is_put_off_ends_the_run_and_what_waits_does_not_run(self) -> None:
        shop = Shop()
        recorder = Recorder(shop.buy, permission=allowing(Defer("ask the boss")))
        outcome = await recorder.run(call("1", "buy", item="bread"), call("2", "buy", item="milk"))
        assert outcome == "deferred"
        assert recorder.batch.detail == "ask the boss"
        assert recorder.statuses == ["deferred", "not_run"]
        assert shop.sold == []

    @pytest.mark.parametrize(
        ("decision", "told"),
        [
            (RuntimeError("the database is gone"), "failed (RuntimeError: the database is gone)"),
            (SystemExit(1), "failed (SystemExit: 1)"),
            (asyncio.CancelledError(), "failed (CancelledError)"),
            (True, "answered with bool, which is no decision"),
            (None, "answered with NoneType, which is no decision"),
            (Allow, "answered with type, which is no decision"),
        ],
        ids=lambda value: type(value).__name__,
    )
    async def test_a_permission_that_fails_is_a_no(self, decision: Any, told: str) -> None:
        shop = Shop()
        recorder = Recorder(shop.buy, permission=allowing(decision))
        assert await recorder.run(call("1", "buy", item="bread")) == "done"
        assert recorder.statuses == ["denied"]
        assert told in recorder.contents[0]
        assert shop.sold == []

    def test_a_permission_that_never_comes_is_a_no(self) -> None:
        shop = Shop()

        async def turn() -> list[str]:
            recorder = Recorder(shop.buy, permission=never, limits=LoopLimits(hook_timeout=30))
            await recorder.run(call("1", "buy", item="bread"))
            assert "did not answer within 30 seconds" in recorder.contents[0]
            return recorder.statuses

        run = simulate(turn)
        assert run.result == ["denied"]
        assert run.elapsed == 30
        assert shop.sold == []

    def test_an_abort_while_it_is_asked_means_that_the_tool_did_not_run(self) -> None:
        shop = Shop()

        async def turn() -> Recorder:
            recorder = Recorder(shop.buy, permission=never)
            work = asyncio.ensure_future(recorder.run(call("1", "buy", item="bread")))
            await asyncio.sleep(1)
            work.cancel()
            await asyncio.wait({work})
            return recorder

        run = simulate(turn)
        assert run.elapsed == 1
        assert run.result.statuses == ["not_run"]
        assert run.result.notices == []


class TestBefore:
    async def run(self, shop: Shop, *hooks: Any, item: str = "bread", **settings: Any) -> Recorder:
        recorder = Recorder(shop.buy, hooks=ToolHooks(before_tool=hooks), **settings)
        self.outcome = await recorder.run(call("1", "buy", item=item))
        return recorder

    async def test_a_hook_that_says_nothing_changes_nothing(self) -> None:
        shop = Shop()
        assert (await self.run(shop, allowing(None))).contents == ["bought bread"]

    async def test_a_hook_may_deny(self) -> None:
        shop = Shop()
        recorder = await self.run(shop, allowing(Deny("Too expensive.")))
        assert recorder.statuses == ["denied"]
        assert shop.sold == []

    async def test_a_denial_may_end_the_run(self) -> None:
        shop = Shop()
        recorder = await self.run(shop, allowing(Deny("Fraud.", stop=True)))
        assert self.outcome == "hook_stopped"
        assert recorder.statuses == ["hook_stopped"]
        assert shop.sold == []

    async def test_a_hook_may_change_the_input_and_the_models_message_stays(self) -> None:
        shop = Shop()
        recorder = Recorder(shop.buy, hooks=ToolHooks(before_tool=[allowing(Change({"item": "roll"}, "Rolls only."))]))
        given = call("1", "buy", item="bread")
        await recorder.run(given)
        assert given.input == {"item": "bread"}
        assert recorder.contents == ["bought roll\n\nRolls only."]

    async def test_a_changed_input_is_validated_and_judged_by_the_permission(self) -> None:
        shop = Shop()
        asked: list[Any] = []

        async def permission(call: ToolCall, *_: Any) -> Allow:
            asked.append(call.input)
            return Allow()

        recorder = await self.run(shop, allowing(Change({"item": "roll"})), permission=permission)
        assert recorder.contents == ["bought roll"]
        assert asked == [{"item": "roll"}]
        recorder = await self.run(shop, allowing(Change({"thing": 1})), permission=permission)
        assert recorder.statuses == ["invalid_input"]
        assert "A hook changed it." in recorder.contents[0]
        assert asked == [{"item": "roll"}]

    async def test_later_hooks_see_what_earlier_ones_changed(self) -> None:
        shop = Shop()

        async def plural(call: ToolCall, *_: Any) -> Change:
            return Change({"item": call.input["item"] + "s"})

        assert (await self.run(shop, plural, plural)).contents == ["bought breadss"]

    async def test_notes_follow_the_result_in_order(self) -> None:
        shop = Shop()
        recorder = await self.run(shop, allowing(Note("one")), allowing(Note("two")))
        assert recorder.contents == ["bought bread\n\none\n\ntwo"]

    @pytest.mark.parametrize("answer", [ValueError("oops"), "yes", Stop("no such answer before"), Change("x")])  # type: ignore[arg-type]
    async def test_a_hook_that_fails_is_a_no(self, answer: Any) -> None:
        shop = Shop()
        recorder = await self.run(shop, allowing(answer))
        assert recorder.statuses == ["denied"]
        assert shop.sold == []

    def test_a_hook_out_of_time_is_a_no(self) -> None:
        shop = Shop()

        async def turn() -> list[str]:
            return (await self.run(shop, never, limits=LoopLimits(hook_timeout=2))).statuses

        run = simulate(turn)
        assert run.result == ["denied"]
        assert run.elapsed == 2
        assert shop.sold == []


class TestAfter:
    async def run(self, shop: Shop, *hooks: Any, items: tuple[str, ...] = ("bread", "milk"), **more: Any) -> Recorder:
        recorder = Recorder(shop.buy, hooks=ToolHooks(after_tool=hooks), **more)
        self.outcome = await recorder.run(*[call(str(i), "buy", item=item) for i, item in enumerate(items)])
        return recorder

    async def test_it_sees_the_result_also_of_a_tool_that_failed(self) -> None:
        shop = Shop()
        seen: list[tuple[str, str]] = []

        async def hook(call: ToolCall, tool: Any, result: ToolResult, context: ToolContext[Any]) -> None:
            seen.append((call.input["item"], result.status))

        await self.run(shop, hook, items=("bread", "air"))
        assert seen == [("bread", "ok"), ("air", "error")]

    async def test_a_note_follows_the_result(self) -> None:
        recorder = await self.run(Shop(), allowing_after(Note("Keep the receipt.")), items=("bread",))
        assert recorder.contents == ["bought bread\n\nKeep the receipt."]

    async def test_a_stop_keeps_the_result_and_what_waits_does_not_run(self) -> None:
        shop = Shop()
        recorder = await self.run(shop, allowing_after(Stop("Enough.")))
        assert self.outcome == "hook_stopped"
        assert recorder.batch.detail == "Enough."
        assert recorder.statuses == ["ok", "not_run"]
        assert shop.sold == ["bread"]

    @pytest.mark.parametrize("answer", [ValueError("oops"), "yes", Deny("too late")])
    async def test_if_it_fails_the_result_stands(self, answer: Any) -> None:
        shop = Shop()
        recorder = await self.run(shop, allowing_after(answer))
        assert self.outcome == "done"
        assert recorder.contents == ["bought bread", "bought milk"]

    def test_if_it_is_out_of_time_the_result_stands(self) -> None:
        shop = Shop()

        async def turn() -> list[Any]:
            return (await self.run(shop, never, items=("bread",), limits=LoopLimits(hook_timeout=2))).contents

        assert simulate(turn).result == ["bought bread"]

    def test_an_abort_during_it_keeps_the_true_result(self) -> None:
        shop = Shop()

        async def turn() -> Recorder:
            recorder = Recorder(shop.buy, hooks=ToolHooks(after_tool=[never]))
            work = asyncio.ensure_future(recorder.run(call("1", "buy", item="bread")))
            await asyncio.sleep(1)
            work.cancel()
            await asyncio.wait({work})
            recorder.assert_balanced()
            return recorder

        assert simulate(turn).result.contents == ["bought bread"]

    async def test_it_does_not_run_for_a_tool_that_did_not(self) -> None:
        async def hook(*_: Any) -> None:
            raise AssertionError("nothing ran")

        recorder = Recorder(Shop().buy, permission=allowing(Deny("no")), hooks=ToolHooks(after_tool=[hook]))
        await recorder.run(call("1", "buy", item="bread"), call("2", "sell"))
        assert recorder.statuses == ["denied", "unknown_tool"]


def allowing_after(answer: Any) -> Any:
    async def hook(call: ToolCall, tool: Any, result: ToolResult, context: ToolContext[Any]) -> Any:
        if isinstance(answer, BaseException):
            raise answer
        return answer

    return hook


def test_siblings_that_run_already_end_in_truth_when_a_hook_ends_the_run() -> None:
    @tool(read_only=True)
    async def look(item: str, seconds: float) -> str:
        await asyncio.sleep(seconds)
        return item

    async def stop_at_first(call: ToolCall, *_: Any) -> Stop | None:
        return Stop("found") if call.id == "1" else None

    async def turn() -> Recorder:
        recorder = Recorder(
            look, hooks=ToolHooks(after_tool=[stop_at_first]), limits=LoopLimits(max_concurrent_tools=2)
        )
        calls = [call(str(i), "look", item=str(i), seconds=i) for i in (1, 2, 3)]
        assert await recorder.run(*calls) == "hook_stopped"
        return recorder

    run = simulate(turn)
    assert run.elapsed == 2
    assert run.result.statuses == ["ok", "ok", "not_run"]


async def test_a_hook_that_is_no_coroutine_is_taken_too() -> None:
    shop = Shop()
    recorder = Recorder(shop.buy, hooks=ToolHooks(before_tool=[lambda *_: Note("sync")]))  # type: ignore[list-item]
    await recorder.run(call("1", "buy", item="bread"))
    assert recorder.contents == ["bought bread\n\nsync"]
