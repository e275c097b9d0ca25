"""The order of one run: asks the choices, remembers where they deviated from asyncio's order."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from fsm_agent.testing.simulation.choices import FIFO, Choices, Schedule

Option = TypeVar("Option")

_TOLD = 20  # deviations that are told in words


class Order:
    """The choice points of one run."""

    def __init__(self, choices: Choices) -> None:
        self.fifo = choices == FIFO
        """Nothing is ever drawn."""
        self.story: list[str] = []
        """The first deviations, in words."""
        self._pick = choices.begin()
        self._position = 0
        self._deviations: list[tuple[int, int]] = []

    @property
    def schedule(self) -> Schedule:
        """What was chosen so far."""
        return Schedule(self._deviations)

    def choose(self, options: Sequence[Option], label: Callable[[Option], str]) -> int:
        """Returns the index of the option to take. One option alone is no choice point."""
        if self.fifo or len(options) < 2:
            return 0
        index = self._pick(len(options))
        if index:
            self._deviations.append((self._position, index))
            if len(self.story) < _TOLD:
                self.story.append(f"choice {self._position}: {label(options[index])} before {label(options[0])}")
        self._position += 1
        return index

    def shuffled(self, options: Sequence[Option], label: Callable[[Option], str]) -> Sequence[Option]:
        """Returns all the options in a drawn order."""
        if self.fifo or len(options) < 2:
            return options
        left = list(options)
        return [left.pop(self.choose(left, label)) for _ in options]
