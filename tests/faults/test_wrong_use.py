"""Fault `duplicate-tool-names`: a wrong set of tools is told before any request, and the tool list never changes."""

from __future__ import annotations

import pytest

from fsm_agent import AgentMachine, Deps, tool
from fsm_agent.testing import Repeat, Reply, ScriptedModel, tool_use
from fsm_agent.tools import ToolConfigError
from tests.faults.behaviours import Seen, make_tools
from tests.faults.loader import MODEL


def test_duplicate_tool_names_are_refused_at_construction_and_both_are_named() -> None:
    first, second = make_tools({"echo": {}}, Seen()), make_tools({"echo": {}}, Seen())
    with pytest.raises(ToolConfigError, match="echo"):
        AgentMachine(MODEL, tools=[*first, *second])


def test_duplicate_tool_names_of_a_tool_and_a_server_tool_are_refused() -> None:
    with pytest.raises(ToolConfigError, match="web_search"):
        AgentMachine(
            MODEL,
            tools=[*make_tools({"web_search": {}}, Seen()), {"type": "web_search_20250305", "name": "web_search"}],
        )


@pytest.mark.parametrize("name", ["a.b", "two words", "", "x" * 129, "naïve"])
def test_duplicate_tool_names_cannot_come_from_names_that_the_api_does_not_take(name: str) -> None:
    async def work() -> None:
        """Work."""

    with pytest.raises(ToolConfigError, match="name"):
        tool(name=name)(work)


async def test_duplicate_tool_names_do_not_come_with_the_turns() -> None:
    model = ScriptedModel([Repeat(Reply(tool_use("b")), 20), Reply("done")])
    tools = make_tools({"b": {}, "a": {}, "c": {}}, Seen())
    await AgentMachine(MODEL, tools=tools, deps=Deps(call_model=model)).run("go")
    assert [[each["name"] for each in body["tools"]] for body in model.calls] == [["b", "a", "c"]] * 21
