"""Tools made with the Anthropic SDK (`beta_tool`, `beta_async_tool`, its memory tool, its MCP conversion), as they are.

The SDK is not imported: whatever has `to_dict()` and `call(input)` is taken.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, Protocol, runtime_checkable

from pydantic import ValidationError

from fsm_agent.tools.context import ToolContext
from fsm_agent.tools.declare import Safety, Tool, called, is_async
from fsm_agent.tools.faults import InvalidInputError, ToolConfigError, text_of_validation


@runtime_checkable
class SdkTool(Protocol):
    """What the SDK's runnable tools have in common."""

    def to_dict(self) -> Any: ...
    def call(self, input: Any) -> Any: ...  # noqa: A002 - the SDK's name


class SdkBody:
    """Calls the SDK's object; it validates the input itself."""

    def __init__(self, tool: SdkTool) -> None:
        self._call: Callable[[Any], Any] = tool.call
        self._refusal = f"Invalid arguments for function {getattr(tool, 'name', '')}"

    def arguments(self, given: dict[str, Any]) -> Mapping[str, Any]:
        return given

    async def perform(self, arguments: Mapping[str, Any], context: ToolContext[Any]) -> object:
        del context  # the SDK's tools know of none
        try:
            return await called(functools.partial(self._call, dict(arguments)), on_the_loop=is_async(self._call))
        except ValueError as error:
            # The SDK says that the arguments are wrong, and keeps what is wrong to itself, in the cause.
            if isinstance(error.__cause__, ValidationError) and str(error) == self._refusal:
                raise InvalidInputError(text_of_validation(error.__cause__)) from error
            raise


def sdk_tool(
    made: SdkTool,
    *,
    concurrency_safe: Safety | None = None,
    read_only: bool = False,
    idempotent: bool = False,
    timeout: float | None = None,
    max_result_chars: int | None = None,
) -> Tool[[Any], Any]:
    """A tool of the SDK with what the SDK has no word for. The arguments are those of `tool`.

    A machine takes the SDK's objects without this too: they then run alone and never early.
    """
    definition: dict[str, Any] = dict(made.to_dict())
    if "name" not in definition:
        raise ToolConfigError(f"{made!r} describes itself without a name; pass the tools of a toolset one by one.")
    return Tool(
        definition=definition,
        body=SdkBody(made),
        function=made.call,
        concurrency_safe=concurrency_safe,
        read_only=read_only,
        idempotent=idempotent,
        timeout=timeout,
        max_result_chars=max_result_chars,
    )
