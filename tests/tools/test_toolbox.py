"""The list of a machine's tools: what is taken, what is refused before any request."""

from __future__ import annotations

from typing import Any

import pytest

from fsm_agent.tools import Toolbox, ToolConfigError, sdk_tool, tool


@tool
def search(text: str) -> None:
    "Search."


@tool(name="search")
def search_elsewhere(text: str) -> None:
    "Search elsewhere."


@tool
def list_orders() -> None:
    "List the orders."


def test_two_tools_with_one_name_are_refused_and_both_are_named() -> None:
    with pytest.raises(
        ToolConfigError, match=r"Two tools have the name 'search': .*test_toolbox.search and .*search_elsewhere\."
    ):
        Toolbox([search, search_elsewhere])


def test_the_same_tool_twice_is_refused() -> None:
    with pytest.raises(ToolConfigError, match="Two tools have the name 'search'"):
        Toolbox([search, list_orders, search])


def test_a_tool_may_not_have_the_name_of_a_tool_of_the_api() -> None:
    with pytest.raises(ToolConfigError, match=r"'search': .*test_toolbox.search and the API's web_search_20250305"):
        Toolbox([search, {"type": "web_search_20250305", "name": "search"}])


def test_a_configuration_error_is_a_value_error() -> None:
    assert issubclass(ToolConfigError, ValueError)


def test_definitions_keep_the_order_of_the_declarations_and_are_the_same_each_turn() -> None:
    web = {"type": "web_search_20250305", "name": "web_search", "max_uses": 3}
    box = Toolbox([search, web, list_orders])
    assert [each["name"] for each in box.definitions] == ["search", "web_search", "list_orders"]
    assert box.definitions[1] == web
    assert box.definitions is box.definitions
    assert box.names == ["search", "list_orders"]


def test_an_mcp_toolset_of_the_api_is_passed_on() -> None:
    toolset = {"type": "mcp_toolset", "mcp_server_name": "my server"}
    assert Toolbox([toolset]).definitions == [toolset]


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (lambda text: None, "is a function, not a tool; declare it with `@tool`"),
        (17, "17 is not a tool"),
        ({"name": "search", "input_schema": {"type": "object"}}, "'search' is a definition without a function"),
        ({"type": "custom", "name": "search"}, "is a definition without a function"),
        ({"type": "web_search_20250305"}, "of type 'web_search_20250305' has no name"),
        ({"type": "web_search_20250305", "name": "web search"}, "no tool with the name 'web search'"),
    ],
)
def test_what_is_no_tool_is_refused(wrong: Any, why: str) -> None:
    with pytest.raises(ToolConfigError, match=why):
        Toolbox([wrong])


class WithoutAName:
    def to_dict(self) -> dict[str, Any]:
        return {"type": "mcp_toolset", "mcp_server_name": "x"}

    def call(self, input: Any) -> str:  # noqa: A002 - the name in the SDK
        return ""


def test_an_sdk_object_without_a_name_is_refused() -> None:
    with pytest.raises(ToolConfigError, match="describes itself without a name"):
        Toolbox([WithoutAName()])
    with pytest.raises(ToolConfigError, match="describes itself without a name"):
        sdk_tool(WithoutAName())


def test_an_unknown_name_is_told_with_what_there_is() -> None:
    box = Toolbox([search, list_orders])
    assert box.get("lookup") is None
    assert box.unknown("lookup") == "There is no tool named 'lookup'. The tools are: search, list_orders."
    assert "Do you mean 'search'?" in box.unknown("Search")
    assert "Do you mean 'list_orders'?" in box.unknown("list_order")
    assert box.unknown("") == "There is no tool named ''. The tools are: search, list_orders."
    assert Toolbox().unknown("x") == "There is no tool named 'x'. The tools are: none."


def test_what_is_told_of_an_unknown_name_is_bounded() -> None:
    many = [tool(name=f"tool_{number}")(lambda: None) for number in range(500)]
    told = Toolbox(many).unknown("x" * 100_000)
    assert "and 460 more" in told
    assert len(told) < 1_000


def test_a_tool_of_the_api_that_is_called_here_is_told_apart_from_an_unknown_one() -> None:
    box = Toolbox([{"type": "web_search_20250305", "name": "web_search"}])
    assert box.unknown("web_search").startswith("The tool 'web_search' is run by the API")
