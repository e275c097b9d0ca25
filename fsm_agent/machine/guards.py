"""Guards and updates: what a row asks of the control record, and what it does to it.

Both are values that can be called and can be read: the engine calls them, the checker, the exports and the diagrams
read them. Nothing is modelled twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from fsm_agent.machine.control import Control

Limits: TypeAlias = Mapping[str, int | None]
"""The bounds by name; `None` is no bound at all."""


class Guard(Protocol):
    """A pure predicate on the control record that can also be read as data."""

    def __call__(self, control: Control, limits: Limits, /) -> bool: ...

    @property
    def reads(self) -> frozenset[str]:
        """Names of the counters and flags that the answer depends on."""
        ...

    @property
    def limits(self) -> frozenset[str]:
        """Names of the limits that the answer depends on."""
        ...


@dataclass(frozen=True, slots=True)
class Below:
    """Holds while a counter is below its bound.

    `limit` is the name of a limit, or a whole number; left out it is the limit that the counter itself declares
    (filled in when the definition is made).

    >>> str(Below("turn", "max_turns"))
    'turn < max_turns'
    """

    counter: str
    limit: str | int | None = None

    def __call__(self, control: Control, limits: Limits) -> bool:
        if self.limit is None:
            raise TypeError(f"Below({self.counter!r}) has no limit yet: use it in a Definition, or name the limit.")
        bound = self.limit if isinstance(self.limit, int) else limits[self.limit]
        return bound is None or control[self.counter] < bound

    @property
    def reads(self) -> frozenset[str]:
        return frozenset((self.counter,))

    @property
    def limits(self) -> frozenset[str]:
        return frozenset((self.limit,)) if isinstance(self.limit, str) else frozenset()

    def __str__(self) -> str:
        return f"{self.counter} < {self.limit}"


@dataclass(frozen=True, slots=True)
class Flag:
    """Holds while a flag is set."""

    name: str

    def __call__(self, control: Control, limits: Limits) -> bool:  # noqa: ARG002 - one signature for all guards
        return bool(control[self.name])

    @property
    def reads(self) -> frozenset[str]:
        return frozenset((self.name,))

    @property
    def limits(self) -> frozenset[str]:
        return frozenset()

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Not:
    """Holds while another guard does not."""

    guard: Guard

    def __call__(self, control: Control, limits: Limits) -> bool:
        return not self.guard(control, limits)

    @property
    def reads(self) -> frozenset[str]:
        return self.guard.reads

    @property
    def limits(self) -> frozenset[str]:
        return self.guard.limits

    def __str__(self) -> str:
        return f"not ({self.guard})"


@dataclass(frozen=True, slots=True, init=False)
class AnyOf:
    """Holds while one of several guards does. (All of several: list them in the row.)"""

    guards: tuple[Guard, ...]

    def __init__(self, *guards: Guard) -> None:
        object.__setattr__(self, "guards", guards)

    def __call__(self, control: Control, limits: Limits) -> bool:
        return any(guard(control, limits) for guard in self.guards)

    @property
    def reads(self) -> frozenset[str]:
        return frozenset[str]().union(*(guard.reads for guard in self.guards))

    @property
    def limits(self) -> frozenset[str]:
        return frozenset[str]().union(*(guard.limits for guard in self.guards))

    def __str__(self) -> str:
        return " or ".join(f"({guard})" for guard in self.guards)


@dataclass(frozen=True, slots=True)
class Predicate:
    """A guard of a user's own: a named pure function over the control record.

    `reads` names every counter and flag that the function looks at. The compositional check cannot abstract what it
    cannot read: what it leaves undecided of a machine with predicates is explored exactly.
    """

    name: str
    function: Callable[[Control, Limits], bool]
    reads: frozenset[str]
    limits: frozenset[str] = frozenset()

    def __call__(self, control: Control, limits: Limits) -> bool:
        return self.function(control, limits)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Increment:
    """A counter goes up by one."""

    counter: str

    def __call__(self, value: int, initial: int) -> int:  # noqa: ARG002 - one signature for all updates
        return value + 1

    @property
    def name(self) -> str:
        return self.counter

    def __str__(self) -> str:
        return f"{self.counter} + 1"


@dataclass(frozen=True, slots=True)
class Reset:
    """A counter or flag goes back to its initial value."""

    name: str

    def __call__(self, value: int, initial: int) -> int:  # noqa: ARG002 - one signature for all updates
        return initial

    def __str__(self) -> str:
        return f"{self.name} reset"


@dataclass(frozen=True, slots=True)
class Set:
    """A flag is set."""

    flag: str

    def __call__(self, value: int, initial: int) -> int:  # noqa: ARG002 - one signature for all updates
        return 1

    @property
    def name(self) -> str:
        return self.flag

    def __str__(self) -> str:
        return f"{self.flag} set"


Update: TypeAlias = Increment | Reset | Set
