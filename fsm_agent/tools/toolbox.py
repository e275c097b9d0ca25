"""The tools of a machine, checked once, listed to the API in the order in which they were declared."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias, cast

from fsm_agent.tools.declare import Tool, checked_name
from fsm_agent.tools.faults import ToolConfigError
from fsm_agent.tools.sdk import SdkTool, sdk_tool

AnyTool: TypeAlias = "Tool[..., Any] | SdkTool | Mapping[str, Any]"
"""What a machine takes as a tool: one declared with `@tool`, an SDK object, or a server tool's definition."""

_NAMES_SHOWN = 40


class Toolbox:
    """Tools by name.

    >>> from fsm_agent.tools import tool
    >>> @tool
    ... def add(a: int, b: int) -> int:
    ...     "Add two numbers."
    ...     return a + b
    >>> box = Toolbox([add, {"type": "web_search_20250305", "name": "web_search"}])
    >>> [definition["name"] for definition in box.definitions]
    ['add', 'web_search']
    """

    def __init__(self, tools: Iterable[AnyTool] = ()) -> None:
        """Raises `ToolConfigError` for a name used twice, a name that the API refuses, or what is no tool."""
        self._tools: dict[str, Tool[..., Any]] = {}
        self._definitions: list[dict[str, Any]] = []
        self._origins: dict[str, str] = {}
        for each in tools:
            self._add(each)

    @property
    def definitions(self) -> list[dict[str, Any]]:
        """What the API is sent as `tools`: always the same list in the same order."""
        return self._definitions

    @property
    def names(self) -> list[str]:
        """The names of the tools that run here (a server tool's does not)."""
        return list(self._tools)

    def get(self, name: str) -> Tool[..., Any] | None:
        """The tool of this very name, or None."""
        return self._tools.get(name)

    def unknown(self, name: str) -> str:
        """What the model is told when it calls a name that is not here."""
        if name in self._origins:
            return f"The tool {name!r} is run by the API, not here: its call cannot be answered."
        told = f"There is no tool named {name[:200]!r}."
        by_lower = {each.lower(): each for each in self._tools}
        close = difflib.get_close_matches(name.lower()[:200], by_lower, n=1)
        if close:
            told += f" Do you mean {by_lower[close[0]]!r}?"
        shown = ", ".join(self.names[:_NAMES_SHOWN]) or "none"
        more = len(self._tools) - _NAMES_SHOWN
        return f"{told} The tools are: {shown}{f' and {more} more' if more > 0 else ''}."

    def _add(self, given: object) -> None:
        if isinstance(given, Tool):
            self._run_here(cast("Tool[..., Any]", given))
        elif isinstance(given, Mapping):
            self._run_by_the_api(dict(cast("Mapping[str, Any]", given)))
        elif isinstance(given, SdkTool):
            self._run_here(sdk_tool(given))
        elif callable(given):
            raise ToolConfigError(f"{given!r} is a function, not a tool; declare it with `@tool`.")
        else:
            raise ToolConfigError(f"{given!r} is not a tool; declare a function with `@tool` and pass that.")

    def _run_here(self, made: Tool[..., Any]) -> None:
        self._claim(made.name, made.title)
        self._tools[made.name] = made
        self._definitions.append(made.definition)

    def _run_by_the_api(self, definition: dict[str, Any]) -> None:
        kind = definition.get("type", "custom")
        if kind == "custom":
            raise ToolConfigError(
                f"The tool {definition.get('name')!r} is a definition without a function, so nothing could run its "
                "calls. Declare a function with `@tool(input_schema=...)`; only tools of the API itself (with a "
                "`type` such as `web_search_20250305`) are passed as dicts."
            )
        name: Any = definition.get("name", definition.get("mcp_server_name"))
        if not isinstance(name, str):
            raise ToolConfigError(f"The tool of type {kind!r} has no name.")
        if "name" in definition:
            checked_name(name, f"the API's {kind}")
        self._claim(name, f"the API's {kind}")
        self._definitions.append(definition)

    def _claim(self, name: str, origin: str) -> None:
        if name in self._origins:
            raise ToolConfigError(
                f"Two tools have the name {name!r}: {self._origins[name]} and {origin}. "
                "Give one of them another with `@tool(name=...)`."
            )
        self._origins[name] = origin
