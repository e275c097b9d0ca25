"""What a machine is made of, looked at before anything runs: what is wrong, and what to write instead."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from fsm_agent.loop.deps import Deps
from fsm_agent.loop.hooks import Hooks
from fsm_agent.machine import Definition
from fsm_agent.model.json_types import is_mapping

if TYPE_CHECKING:
    from pydantic import TypeAdapter

__all__ = ["ConfigurationError", "check_arguments", "model_name", "output_adapter"]


class ConfigurationError(ValueError):
    """A machine that could not run as it is configured. Raised before any request."""


Check: TypeAlias = Callable[[Any], bool]


def _series(value: object) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)


def _mapping_of(fits: Check) -> Check:
    return lambda value: is_mapping(value) and all(map(fits, value.values()))


def _client(value: object) -> bool:
    post = getattr(value, "post", None)
    return callable(post) and (inspect.iscoroutinefunction(post) or not inspect.isroutine(post))


def _price(value: object) -> bool:
    from fsm_agent.model.prices import Price

    return isinstance(value, Price)


def _store(value: object) -> bool:
    from fsm_agent.context.results import ResultStore

    return isinstance(value, ResultStore)


def _system(value: object) -> bool:
    if isinstance(value, str) or callable(value):
        return True
    return isinstance(value, list | tuple) and all(
        isinstance(block, Mapping) for block in cast("Sequence[object]", value)
    )


def _count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


_ARGUMENTS: Final[Mapping[str, tuple[Check, str]]] = MappingProxyType(
    {
        "client": (_client, "an `anthropic.AsyncAnthropic` (not the blocking `anthropic.Anthropic`)"),
        "tools": (_series, "a list of tools, such as [read_file]"),
        "system": (_system, "text, a list of text blocks, or a function that returns one of these"),
        "fallback_models": (_series, "a list of names, such as ['claude-haiku-4-5']"),
        "hooks": (lambda value: isinstance(value, Hooks), "`Hooks(stop=[...], before_tool=[...], after_tool=[...])`"),
        "can_use_tool": (callable, "an async function that answers with Allow, Deny or Defer"),
        "definition": (lambda value: isinstance(value, Definition), "a `Definition`, such as AGENT_LOOP"),
        "effects": (_mapping_of(callable), "a mapping of names to async functions"),
        "actions": (_mapping_of(callable), "a mapping of names to functions"),
        "deps": (lambda value: isinstance(value, Deps), "`Deps(...)`"),
        "prices": (_mapping_of(_price), "a mapping of models to `Price(...)`"),
        "thinking": (lambda value: isinstance(value, Mapping), 'a dict, such as {"type": "adaptive"}'),
        "tool_choice": (lambda value: isinstance(value, Mapping), 'a dict, such as {"type": "auto"}'),
        "extra": (lambda value: isinstance(value, Mapping), 'a dict, such as {"temperature": 0.2}'),
        "betas": (_series, "a list of names, such as ['context-1m-2025-08-07']"),
        "output_ceilings": (_mapping_of(_count), "a mapping of models to numbers of tokens, from 1"),
        "result_store": (_store, "a `ResultStore`"),
    }
)
"""What fits each argument of a machine that has no closer check elsewhere, and what to give."""


def check_arguments(**given: object) -> None:
    """Raise `ConfigurationError` for an argument that is of no use; `None` is one that was left out."""
    for name, value in given.items():
        fits, instead = _ARGUMENTS[name]
        if value is None and name not in ("tools", "fallback_models", "betas"):
            continue
        if not fits(value):
            raise ConfigurationError(f"AgentMachine({name}=...) was given {_shown(value)}; give {instead}.")
    hooks = given.get("hooks")
    if isinstance(hooks, Hooks):
        _check_hooks(hooks)


def _check_hooks(hooks: Hooks) -> None:
    for name in ("stop", "before_tool", "after_tool"):
        value: Any = getattr(hooks, name)
        if not isinstance(value, list | tuple) or not all(map(callable, cast("Sequence[object]", value))):
            raise ConfigurationError(
                f"Hooks({name}=...) was given {_shown(cast('object', value))}; give a list of async functions, such as "
                "[check]."
            )


def _shown(value: object) -> str:
    try:
        text = repr(value)
    except Exception:  # an object of the user's own class
        text = "an object"
    return f"{text[:100]} of type {type(value).__name__}"


def model_name(name: object) -> str:
    """The name of a model, or a `ConfigurationError`."""
    if not isinstance(name, str) or not name.strip():
        raise ConfigurationError(f"The model is {name!r}; give the name of a model, such as 'claude-sonnet-5-5'.")
    return name


def output_adapter(output_type: Any) -> tuple[TypeAdapter[Any] | None, dict[str, Any]]:
    """What validates the answer, and the JSON schema that the model is told."""
    if output_type is None:
        return None, {}
    from pydantic import TypeAdapter
    from pydantic.errors import PydanticUserError

    try:
        adapter: TypeAdapter[Any] = TypeAdapter(output_type)
        return adapter, adapter.json_schema()
    except (PydanticUserError, NameError) as error:
        reason = str(error).partition("\n")[0]
        raise ConfigurationError(
            f"The output type {_shown(output_type)} has no JSON form; give a type that pydantic can validate, such as "
            f"a BaseModel ({reason})"
        ) from error
