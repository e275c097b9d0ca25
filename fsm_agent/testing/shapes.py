"""Narrowing of parsed JSON.

A request body is untrusted: each look into it asks first whether it is an object or an array. These functions are the
only place that has to tell the type checker so.
"""

from typing import Any, TypeAlias, TypeGuard

__all__ = ["JsonObject", "as_list", "as_object", "is_list", "is_object", "objects"]

JsonObject: TypeAlias = dict[str, Any]
"""A JSON object as parsed from, or sent to, the wire."""


def is_object(value: object) -> TypeGuard[JsonObject]:
    """Whether the value is a JSON object."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[Any]]:
    """Whether the value is a JSON array."""
    return isinstance(value, list)


def as_object(value: object) -> JsonObject | None:
    """The value as a JSON object, or `None` when it is anything else.

    >>> as_object({"a": 1}), as_object([1])
    ({'a': 1}, None)
    """
    return value if is_object(value) else None


def as_list(value: object) -> list[Any] | None:
    """The value as a JSON array, or `None` when it is anything else.

    >>> as_list([1]), as_list("ab")
    ([1], None)
    """
    return value if is_list(value) else None


def objects(value: object) -> list[JsonObject]:
    """The JSON objects of an array; an empty list when the value is no array.

    >>> objects([{"a": 1}, 2])
    [{'a': 1}]
    """
    return [item for item in value if is_object(item)] if is_list(value) else []
