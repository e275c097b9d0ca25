"""Batches of calls in a few words."""

from __future__ import annotations

from typing import Any

from fsm_agent.machine.limits import LoopLimits
from fsm_agent.tools import ToolBatch, Toolbox, ToolCall, ToolNotice


class Recorder:
    """A batch over some tools, with what it told."""

    def __init__(self, *tools: Any, limits: LoopLimits | None = None, **settings: Any) -> None:
        self.notices: list[ToolNotice] = []
        self.batch = ToolBatch(
            Toolbox(tools),
            limits=limits or LoopLimits(),
            run_id="run",
            turn=3,
            notify=self.notices.append,
            **settings,
        )

    def offer(self, *calls: ToolCall) -> None:
        for each in calls:
            self.batch.offer(each)

    async def run(self, *calls: ToolCall) -> str:
        return await self.batch.run(calls)

    @property
    def contents(self) -> list[Any]:
        return [result.content for result in self.batch.results()]

    @property
    def statuses(self) -> list[str]:
        return [result.status for result in self.batch.results()]

    def told(self, kind: str) -> list[str]:
        return [notice.tool_use_id for notice in self.notices if notice.kind == kind]

    def assert_balanced(self) -> None:
        """Each start has one finish after it, and what is told of a call lies between the two."""
        for call in {notice.tool_use_id for notice in self.notices}:
            kinds = [notice.kind for notice in self.notices if notice.tool_use_id == call]
            assert kinds[0] == "started"
            assert kinds[-1] == "finished"
            assert set(kinds[1:-1]) <= {"progress"}


def call(id: str, name: str, /, **given: Any) -> ToolCall:  # noqa: A002 - the field's name
    return ToolCall(id, name, given)


async def answer(tool: Any, **given: Any) -> Any:
    """The result of one call of one tool."""
    recorder = Recorder(tool)
    await recorder.run(call("toolu_1", recorder.batch._toolbox.names[0], **given))
    return recorder.batch.results()[0]
