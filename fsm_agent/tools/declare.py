"""`@tool`: a function that the model may call, with its schema, its limits and what is known of its effects."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
import re
from collections.abc import Awaitable, Callable, Mapping
from types import FrameType
from typing import Any, Final, Generic, ParamSpec, Protocol, TypeVar, cast, overload

from pydantic import BaseModel

from fsm_agent.log import logger
from fsm_agent.tools.context import ToolContext
from fsm_agent.tools.faults import InvalidInputError, ToolConfigError, text_of_fault
from fsm_agent.tools.schema import FunctionInput, checked_schema, described, title_of
from fsm_agent.tools.threads import DAEMON_THREADS

__all__ = ["Body", "FunctionBody", "Safety", "Tool", "ToolContext", "called", "checked_name", "is_async", "tool"]

P = ParamSpec("P")
R = TypeVar("R")

NAME_PATTERN: Final = re.compile(r"[a-zA-Z0-9_-]{1,128}")
"""Names that the Messages API takes for a tool (api rule: `^[a-zA-Z0-9_-]{1,128}$`)."""

Safety = bool | Callable[[dict[str, Any]], bool]


class Body(Protocol):
    """What a tool does. The seam for tools that are no functions of ours: SDK objects, MCP, sub-agents."""

    def arguments(self, given: dict[str, Any]) -> Mapping[str, Any]:
        """The input as the body takes it. Raises `InvalidInputError`, worded for the model."""
        ...

    async def perform(self, arguments: Mapping[str, Any], context: ToolContext[Any]) -> object:
        """Do the work once. What it returns or raises is made a result by the caller."""
        ...


class FunctionBody:
    """A function, sync (in a thread) or async (on the loop)."""

    def __init__(self, function: Callable[..., Any], names: Mapping[str, Any]) -> None:
        if inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
            raise ToolConfigError(
                f"{title_of(function)} is a generator; a tool returns one result. "
                "For news on the way take a `ToolContext` parameter and call its `progress`."
            )
        self._function = function
        self._input = FunctionInput(function, names)
        self._on_the_loop = is_async(function)
        self.schema = self._input.schema

    def arguments(self, given: dict[str, Any]) -> Mapping[str, Any]:
        return self._input.arguments(given)

    async def perform(self, arguments: Mapping[str, Any], context: ToolContext[Any]) -> object:
        named = dict(arguments)
        if self._input.context_parameter is not None:
            named[self._input.context_parameter] = context
        return await called(functools.partial(self._function, **named), on_the_loop=self._on_the_loop)


def is_async(function: Callable[..., Any]) -> bool:
    """Whether calling the function gives a coroutine; an object with an async `__call__` counts too."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


async def called(work: Callable[[], Any], *, on_the_loop: bool) -> object:
    """Call it, in a thread with the caller's context variables unless it is async; await what can be awaited."""
    if on_the_loop:
        result = work()
    else:
        context = contextvars.copy_context()
        outcome = await asyncio.get_running_loop().run_in_executor(
            DAEMON_THREADS, lambda: context.run(_outcome_of, work)
        )
        if isinstance(outcome, _Raised):
            raise outcome.fault
        result = outcome
    if inspect.isawaitable(result):
        return await cast("Awaitable[object]", result)
    return result


class _Raised:
    """An exception on its way out of a thread: a future takes neither StopIteration nor, on the loop, SystemExit."""

    def __init__(self, fault: BaseException) -> None:
        self.fault = fault


def _outcome_of(work: Callable[[], Any]) -> object:
    try:
        return work()
    except BaseException as fault:  # carried to the loop, raised there
        return _Raised(fault)


def checked_name(name: str, origin: str) -> None:
    """Raise `ToolConfigError` for a name that the API refuses."""
    if NAME_PATTERN.fullmatch(name) is None:
        raise ToolConfigError(
            f"The API takes no tool with the name {name!r} ({origin}): a name has 1 to 128 letters, digits, `_` or "
            "`-`. Give another with `@tool(name=...)`."
        )


class Tool(Generic[P, R]):
    """A tool as the machine runs it. Calling it calls the function it was made from, as if it were not declared."""

    def __init__(
        self,
        *,
        definition: dict[str, Any],
        body: Body,
        function: Callable[P, R],
        concurrency_safe: Safety | None = None,
        read_only: bool = False,
        idempotent: bool = False,
        timeout: float | None = None,
        max_result_chars: int | None = None,
    ) -> None:
        self.definition = definition
        """What the API is sent: name, description, input schema."""
        self.name: str = definition["name"]
        self.title = title_of(function)
        self.body = body
        self.read_only = read_only
        self.idempotent = idempotent
        self.timeout = timeout
        self.max_result_chars = max_result_chars
        self._function = function
        self._concurrency_safe: Safety = read_only if concurrency_safe is None else concurrency_safe
        checked_name(self.name, self.title)
        if timeout is not None and not timeout > 0:
            raise ToolConfigError(f"The timeout of {self.title} is {timeout!r}; it must be above 0 seconds.")
        if max_result_chars is not None and max_result_chars < 1:
            raise ToolConfigError(f"max_result_chars of {self.title} is {max_result_chars!r}; it must be above 0.")

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<Tool {self.name!r} ({self.title})>"

    @property
    def input_schema(self) -> dict[str, Any]:
        """The JSON schema of the input; empty for a tool whose schema the API itself knows."""
        schema: dict[str, Any] = self.definition.get("input_schema", {})
        return schema

    @property
    def repeatable(self) -> bool:
        """A second run with the same input does no harm: such a tool may start while the reply still streams."""
        return self.read_only or self.idempotent

    def arguments(self, given: dict[str, Any]) -> Mapping[str, Any]:
        """The input as the body takes it. Raises `InvalidInputError`, worded for the model, whatever went wrong."""
        try:
            return self.body.arguments(given)
        except InvalidInputError:
            raise
        except Exception as fault:  # a validator of the user's own
            raise InvalidInputError(text_of_fault(fault)) from fault

    def safe_with_others(self, given: dict[str, Any]) -> bool:
        """Whether this call may run beside others. A predicate that raises counts as no."""
        if isinstance(self._concurrency_safe, bool):
            return self._concurrency_safe
        try:
            return bool(self._concurrency_safe(given))
        except Exception as fault:  # the user's predicate; to run alone is always right
            logger.warning("tool_safety_unknown", tool=self.name, fault=type(fault).__name__)
            return False


@overload
def tool(function: Callable[P, R], /) -> Tool[P, R]: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    input_schema: Mapping[str, Any] | type[BaseModel] | None = None,
    concurrency_safe: Safety | None = None,
    read_only: bool = False,
    idempotent: bool = False,
    timeout: float | None = None,
    max_result_chars: int | None = None,
    defer: bool = False,
) -> Callable[[Callable[P, R]], Tool[P, R]]: ...
def tool(
    function: Callable[P, R] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    input_schema: Mapping[str, Any] | type[BaseModel] | None = None,
    concurrency_safe: Safety | None = None,
    read_only: bool = False,
    idempotent: bool = False,
    timeout: float | None = None,
    max_result_chars: int | None = None,
    defer: bool = False,
) -> Tool[P, R] | Callable[[Callable[P, R]], Tool[P, R]]:
    """Declare a function, sync or async, as a tool of the model.

    The schema comes from the annotations (anything that pydantic knows), descriptions from the docstring (Google, NumPy
    or Sphinx style) or from `Annotated[..., Field(description=...)]`. A parameter annotated `ToolContext` or
    `ToolContext[Deps]`, in any place, is handed the context and never shown to the model. A sync function runs in a
    thread of its own, with the context variables of the caller. What it returns is sent as it is if it is a text or a
    list of content blocks, else as JSON; what it raises is told to the model as an error and never ends the run.

    Args:
        name: 1 to 128 letters, digits, `_`, `-`. Left out: the function's name.
        description: left out: the docstring.
        input_schema: shown to the model instead of the schema made from the annotations, which still validate.
        concurrency_safe: may run beside other tools, in another thread if it is sync; or a predicate on the input.
            Left out: the value of `read_only`.
        read_only: changes nothing. Such a tool may start while the reply still streams, and run again after a crash.
        idempotent: a second run with the same input changes nothing more; else as `read_only`.
        timeout: seconds that a call may take, above 0; `math.inf` is no bound. Left out: `LoopLimits.tool_timeout`.
        max_result_chars: characters of a result in the history, if fewer than `LoopLimits.tool_result_max_chars`.
        defer: the API keeps the definition from the model until its tool search finds it (`defer_loading`).

    Raises:
        ToolConfigError: the function cannot be a tool (parameters without a schema, positional-only ones, a generator).

    >>> @tool(read_only=True)
    ... def temperature(town: str, unit: str = "C") -> str:
    ...     '''Tell the temperature.
    ...
    ...     Args:
    ...         town: Name of the town.
    ...     '''
    ...     return f"21 {unit} in {town}"
    >>> temperature.definition["description"], temperature.input_schema["required"]
    ('Tell the temperature.', ['town'])
    >>> temperature.input_schema["properties"]["town"]
    {'type': 'string', 'description': 'Name of the town.'}
    >>> temperature("Oslo")
    '21 C in Oslo'
    """

    def declared(function: Callable[P, R], names: Mapping[str, Any]) -> Tool[P, R]:
        if not callable(function):
            raise ToolConfigError(f"@tool was given {function!r}, which cannot be called; decorate a function.")
        if isinstance(function, Tool):
            raise ToolConfigError(f"{function!r} is a tool already; decorate it once.")
        body = FunctionBody(function, names)
        told = described(function) if description is None else description
        definition: dict[str, Any] = {"name": name if name is not None else _name_of(function)}
        if told:
            definition["description"] = told
        definition["input_schema"] = body.schema if input_schema is None else _given(input_schema, title_of(function))
        if defer:
            definition["defer_loading"] = True
        made = Tool(
            definition=definition,
            body=body,
            function=function,
            concurrency_safe=concurrency_safe,
            read_only=read_only,
            idempotent=idempotent,
            timeout=timeout,
            max_result_chars=max_result_chars,
        )
        # Not the function's own attributes: they could stand in the way of the tool's.
        functools.update_wrapper(made, function, updated=())
        return made

    names = _names_of_caller(inspect.currentframe())
    if function is not None:
        return declared(function, names)
    return lambda function: declared(function, names)


def _names_of_caller(frame: FrameType | None) -> dict[str, Any]:
    """Local names of the caller: with `from __future__ import annotations` an annotation may mean a local class."""
    caller = frame.f_back if frame is not None else None
    return dict(caller.f_locals) if caller is not None else {}


def _name_of(function: Callable[..., Any]) -> str:
    inner = getattr(function, "func", function)  # of a functools.partial
    return getattr(inner, "__name__", type(inner).__name__)


def _given(schema: Mapping[str, Any] | type[BaseModel], title: str) -> dict[str, Any]:
    if isinstance(schema, type):
        return checked_schema(schema.model_json_schema(), title)
    return checked_schema(dict(schema), title)
