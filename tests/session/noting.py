"""A function that notes what it was called with, and does what it did."""

from collections.abc import Callable
from typing import Any


def noting(seen: list[Any], function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, each call of which puts its last argument into `seen`."""

    def noted(*arguments: Any) -> Any:
        seen.append(arguments[-1])
        return function(*arguments)

    return noted
