"""Tasks of a simulated loop."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class NumberedTask(asyncio.Task[T]):
    """A task whose hash is its number in the run: sets of such tasks iterate alike in every repetition."""

    def __init__(self, coro: Coroutine[Any, Any, T], *, number: int, **options: Any) -> None:
        self.number = number
        super().__init__(coro, **options)

    def __hash__(self) -> int:
        return self.number
