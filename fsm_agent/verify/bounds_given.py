"""The limits that a check is made for, from what the caller gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias, cast

from pydantic import BaseModel, ValidationError

from fsm_agent.machine import Below, Definition, Limits
from fsm_agent.verify.decisions import atoms_of

Bounds: TypeAlias = BaseModel | Mapping[str, int | None] | None
"""A settings model such as `LoopLimits`, the bounds by name, or None: the defaults of the definition's own model."""


class LimitsError(ValueError):
    """The limits do not fit the machine."""


def bounds_of(definition: Definition, limits: Bounds) -> dict[str, int | None]:
    """The bounds by name, as guards read them. A number of fallbacks that is left open counts as one.

    Raises `LimitsError` if a limit that the machine asks about is missing or is no whole number.
    """
    if limits is None:
        try:
            limits = definition.limits()
        except ValidationError as error:
            raise LimitsError(
                f"The limits {definition.limits.__name__} of the machine {definition.name!r} have no defaults for "
                f"{', '.join(str(e['loc'][0]) for e in error.errors())}; give limits=..."
            ) from error
    bounds = dict(limits) if isinstance(limits, Mapping) else _of_model(limits)
    for name in dict.fromkeys(_asked_about(definition)):
        if name not in bounds:
            raise LimitsError(f"The machine {definition.name!r} asks about the limit {name!r}, which is not given.")
        value = cast("object", bounds[name])
        if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
            raise LimitsError(f"The limit {name!r} is {value!r}; give a whole number, or None for no bound.")
    return bounds


def _of_model(limits: BaseModel) -> dict[str, int | None]:
    if hasattr(limits, "resolved"):
        fallbacks = getattr(limits, "max_fallbacks", None)
        return cast(Any, limits).resolved(fallback_models=1 if fallbacks is None else fallbacks)  # type: ignore[no-any-return]
    values = ((name, getattr(limits, name)) for name in type(limits).model_fields)
    return {name: value for name, value in values if value is None or isinstance(value, int)}


def _asked_about(definition: Definition) -> list[str]:
    guards = atoms_of(guard for row in definition.rows for guard in row.when)
    named = [name for guard in guards for name in guard.limits]
    return [*named, *(counter.limit for counter in definition.counters if isinstance(counter.limit, str))]


def unbounded(definition: Definition, limits: Limits) -> tuple[str, ...]:
    """The limits that guards ask about and that are None."""
    atoms = atoms_of(guard for row in definition.rows for guard in row.when)
    named = (atom.limit for atom in atoms if isinstance(atom, Below) and isinstance(atom.limit, str))
    return tuple(name for name in dict.fromkeys(named) if limits[name] is None)
