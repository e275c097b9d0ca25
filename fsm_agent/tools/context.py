"""What a tool is handed beside its input: the host's own objects, and the call it serves."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic

from typing_extensions import TypeVar

from fsm_agent.machine.limits import LoopLimits

DepsT = TypeVar("DepsT", default=Any)


def _nowhere(_: Any) -> None:
    """Where a context that no batch made reports to."""


@dataclass(frozen=True, slots=True)
class ToolContext(Generic[DepsT]):
    """One call, as its tool sees it. Never shown to the model: a parameter of this type is left out of the schema.

    All fields but `deps` have defaults, so that a test can call the tool's function with a context of its own.

    >>> from fsm_agent.tools import tool
    >>> @tool
    ... def whoami(context: ToolContext[str]) -> str:
    ...     "Say who is asking."
    ...     return context.deps
    >>> whoami.input_schema["properties"]
    {}
    >>> whoami(ToolContext("Ada"))
    'Ada'
    """

    deps: DepsT
    """What the host gave the machine as `tool_deps`: a database, a session, a user."""
    tool_use_id: str = ""
    idempotency_key: str = ""
    """The same for a repetition of the same call after a crash, different for every other call. Give it to services
    that take one (`Idempotency-Key`)."""
    run_id: str = ""
    turn: int = 1
    limits: LoopLimits = field(default_factory=LoopLimits)
    stopped: threading.Event = field(default_factory=threading.Event, repr=False)
    """Set when the call is to end: abort, or out of time. A function in a thread cannot be cancelled: let a long one
    use `context.stopped.wait(seconds)` instead of sleeping."""
    report: Callable[[Any], None] = field(default=_nowhere, repr=False)
    keep: Callable[[str], None] = field(default=_nowhere, repr=False)

    @property
    def aborted(self) -> bool:
        """The result of this call is not waited for any more. A function in a thread should look now and then."""
        return self.stopped.is_set()

    def progress(self, data: Any) -> None:
        """Tell the consumer of the run how far the call is. From any thread; never waits.

        `data` is anything; texts that come faster than they are read are joined (and cut to the newest), of other
        values the newest stays. After the call's end nothing is told any more.
        """
        self.report(data)

    def keep_partial(self, text: str) -> None:
        """Remember what there is so far: the model is shown it if the call is interrupted or runs out of time."""
        self.keep(text)
