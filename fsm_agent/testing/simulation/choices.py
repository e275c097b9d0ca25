"""Where the order of a simulated run comes from.

Whenever the loop could go on in more than one way it asks for a number: *choice point* 0, 1, 2, ... of the run.
Option 0 is always what plain asyncio would do (first come, first served), so an order is described by its few
*deviations*, and an order that found a bug can be printed, pasted into a test and made smaller.
"""

import random
from collections.abc import Callable, Iterable
from typing import Protocol


class Choices(Protocol):
    """A description of an order: an immutable value from which any number of runs can begin."""

    def begin(self) -> Callable[[int], int]:
        """Returns the choosing function of one new run.

        It is called once per choice point with the number of options (2 or more) and returns an index below it.
        """
        ...


class Schedule:
    """An order given by its deviations: at choice point `position` take `option`, everywhere else option 0.

    The empty schedule is asyncio's own order. Options beyond those that a choice point has wrap around among the ones
    that deviate, so every schedule fits every program.

    >>> Schedule([(3, 1), (17, 2)])
    Schedule([(3, 1), (17, 2)])

    Raises ValueError for a position below 0 or given twice, or an option below 1.
    """

    __slots__ = ("deviations",)

    deviations: tuple[tuple[int, int], ...]
    """Pairs of choice point and option, by choice point; as a list they can be kept in a JSON file."""

    def __init__(self, deviations: Iterable[Iterable[int]] = ()) -> None:
        self.deviations = tuple(sorted((position, option) for position, option in deviations))
        before = None
        for position, option in self.deviations:
            if position < 0 or option < 1:
                raise ValueError(
                    f"The deviation ({position}, {option}) means nothing: "
                    "give a choice point of 0 or more and an option of 1 or more (option 0 is the plain order)."
                )
            if position == before:
                raise ValueError(f"The schedule deviates twice at choice point {position}: give each one once.")
            before = position

    def begin(self) -> Callable[[int], int]:
        position = -1
        deviations = dict(self.deviations)

        def pick(options: int) -> int:
            nonlocal position
            position += 1
            option = deviations.get(position)
            return 0 if option is None else 1 + (option - 1) % (options - 1)

        return pick

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schedule) and self.deviations == other.deviations

    def __hash__(self) -> int:
        return hash(self.deviations)

    def __repr__(self) -> str:
        return f"Schedule({list(self.deviations) if self.deviations else ''})"


FIFO = Schedule()
"""The order of plain asyncio."""


class RandomChoices:
    """Each option equally likely, repeatable by its seed.

    The schedule that a run took is in `Simulation.schedule`, and in the notes of an exception.
    """

    __slots__ = ("seed",)

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def begin(self) -> Callable[[int], int]:
        return random.Random(self.seed).randrange

    def __repr__(self) -> str:
        return f"RandomChoices({self.seed})"
