"""What is drawn over a diagram: the path of a run, or how often each row was taken."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from fsm_agent.machine import Definition

RowKey: TypeAlias = tuple[str, str]
"""Source and trigger: they name a row."""

SHOWN_STEPS: Final = 3


class TraceError(ValueError):
    """A trace that is no path of the machine. The message names the first step that no row explains."""


@dataclass(frozen=True, slots=True)
class Overlay:
    """How often each row was taken and, for a single run, at which steps (from 1)."""

    counts: Mapping[RowKey, int] = field(default_factory=dict[RowKey, int])
    steps: Mapping[RowKey, tuple[int, ...]] = field(default_factory=dict[RowKey, tuple[int, ...]])

    @classmethod
    def of_trace(cls, definition: Definition, trace: Iterable[str]) -> Overlay:
        """The path of one run: its triggers, in order, from the initial state.

        Raises `TraceError` if the machine has no such path.

        >>> from fsm_agent.machine import AGENT_LOOP
        >>> Overlay.of_trace(AGENT_LOOP, ["context_ready", "abort"]).steps
        {('preprocess', 'context_ready'): (1,), ('calling_model', 'abort'): (2,)}
        """
        state = definition.initial
        steps: dict[RowKey, tuple[int, ...]] = {}
        for number, trigger in enumerate(trace, start=1):
            try:
                row = definition.row(state, trigger)
            except KeyError:
                known = ", ".join(row.trigger for row in definition.rows_from(state)) or "none: the run has ended"
                raise TraceError(
                    f"Step {number} of the trace is {trigger!r}, but the state {state!r} of the machine "
                    f"{definition.name!r} has no such row (it has {known})."
                ) from None
            steps[row.key] = (*steps.get(row.key, ()), number)
            state = row.dest
        return cls({key: len(numbers) for key, numbers in steps.items()}, steps)

    @classmethod
    def of_coverage(cls, definition: Definition, coverage: Mapping[RowKey, int]) -> Overlay:
        """How often each row was taken by many runs; rows that are not named count as never taken.

        Raises `TraceError` for a row that the machine does not have.
        """
        known = {row.key for row in definition.rows}
        for source, trigger in coverage:
            if (source, trigger) not in known:
                raise TraceError(
                    f"The coverage names the row {source} --{trigger}-->, which the machine {definition.name!r} "
                    "does not have."
                )
        return cls({row.key: coverage.get(row.key, 0) for row in definition.rows})

    @property
    def is_path(self) -> bool:
        """Whether this is the path of a single run."""
        return bool(self.steps)

    def count(self, key: RowKey) -> int:
        return self.counts.get(key, 0)

    def mark(self, key: RowKey) -> str:
        """What stands beside a row: `step 3`, `steps 3, 7, 11, ... (9x)`; for many runs `9x` or `never`."""
        taken = self.count(key)
        if not self.is_path:
            return f"{taken}\N{MULTIPLICATION SIGN}" if taken else "never"
        if not taken:
            return ""
        numbers = ", ".join(map(str, self.steps[key][:SHOWN_STEPS]))
        if taken > SHOWN_STEPS:
            return f"steps {numbers}, \N{HORIZONTAL ELLIPSIS} ({taken}\N{MULTIPLICATION SIGN})"
        return f"steps {numbers}" if taken > 1 else f"step {numbers}"
