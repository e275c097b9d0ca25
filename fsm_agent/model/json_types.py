"""What a JSON value is, said so that type checkers learn it too."""

from collections.abc import Mapping
from typing import Any, TypeGuard

__all__ = ["as_object", "as_text", "is_array", "is_mapping", "is_object"]


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def is_mapping(value: object) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(value, Mapping)


def is_array(value: object) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def as_object(value: object) -> dict[str, Any] | None:
    """The value if it is an object, else None."""
    return value if is_object(value) else None


def as_text(value: object) -> str:
    """The value if it is a string, else ''."""
    return value if isinstance(value, str) else ""
