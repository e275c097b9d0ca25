"""The tools that the loop under test is given: plain async functions, which every framework can wrap."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

__all__ = ["RecordedCall", "ToolFunction", "ToolRecord"]

ToolFunction: TypeAlias = Callable[..., Coroutine[Any, Any, str]]
"""A tool: an async function with annotations and a docstring that says what its arguments are."""

LONG_VALUE = "A line of the file. " * 400
"""What `read` gives: 8,000 characters, so that a few of them are a long conversation."""
SECONDS_FOR_THE_OTHER = 0.02
"""How long the call `lookup("first")` waits for `lookup("second")`, so that calls that overlap end in the other order.
A loop that runs its tools one by one loses this time, no more."""


@dataclass(slots=True)
class RecordedCall:
    """One call that the loop really made."""

    name: str
    input: dict[str, Any]
    ended: Literal["running", "done", "raised", "cancelled"] = "running"

    def __str__(self) -> str:
        return f"{self.name}({', '.join(f'{name}={value!r}' for name, value in self.input.items())})"


class ToolRecord:
    """The tools of one run, and every call of them. `changed` is called when a call begins and when it ends."""

    def __init__(self, changed: Callable[[], object]) -> None:
        self.calls: list[RecordedCall] = []
        self._changed = changed
        self._second_ended = asyncio.Event()

    def functions(self) -> tuple[ToolFunction, ...]:
        """`lookup`, `read`, `fails` and `hangs`, made for this record."""

        async def lookup(key: str) -> str:
            """Look up the value of a key.

            Args:
                key: The key.
            """
            return await self._record("lookup", key, self._value)

        async def read(key: str) -> str:
            """Read a long file.

            Args:
                key: The name of the file.
            """
            return await self._record("read", key, self._long_value)

        async def fails(key: str) -> str:
            """Look up the value of a key in the archive.

            Args:
                key: The key.
            """
            return await self._record("fails", key, self._failure)

        async def hangs(key: str) -> str:
            """Wait until the value of a key changes.

            Args:
                key: The key.
            """
            return await self._record("hangs", key, self._for_ever)

        return lookup, read, fails, hangs

    async def _record(self, name: str, key: str, work: Callable[[str], Awaitable[str]]) -> str:
        call = RecordedCall(name, {"key": key})
        self.calls.append(call)
        self._changed()
        try:
            result = await work(key)
            call.ended = "done"
            return result
        except asyncio.CancelledError:
            call.ended = "cancelled"
            raise
        except Exception:
            call.ended = "raised"
            raise
        finally:
            self._changed()

    async def _value(self, key: str) -> str:
        if key == "first":
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._second_ended.wait(), SECONDS_FOR_THE_OTHER)
        elif key == "second":
            self._second_ended.set()
        return f"The value of {key}."

    async def _long_value(self, key: str) -> str:
        return f"{key}: {LONG_VALUE}"

    async def _failure(self, key: str) -> str:
        raise ValueError(f"The archive has no {key}.")

    async def _for_ever(self, key: str) -> str:
        await asyncio.Event().wait()
        return key
