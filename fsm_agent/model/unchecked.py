"""Frozen models of our own values, made without a check."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import BaseModel

__all__ = ["unchecked"]

M = TypeVar("M", bound=BaseModel)


def unchecked(kind: type[M], fields: dict[str, Any]) -> M:
    """The model with these fields, all of them, and no check: for what comes many times a turn, and is our own.

    (`model_construct` takes five times as long, and the check itself twice.)
    """
    made = kind.__new__(kind)
    put = object.__setattr__
    put(made, "__dict__", fields)
    put(made, "__pydantic_fields_set__", set(fields))
    put(made, "__pydantic_extra__", None)
    put(made, "__pydantic_private__", None)
    return made
