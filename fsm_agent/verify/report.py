"""What a check found, as data, as JSON and as text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from fsm_agent.machine import Definition, Limits, Row
from fsm_agent.verify.bounds import Bound
from fsm_agent.verify.certificate import Certificate
from fsm_agent.verify.obligations import Verdict
from fsm_agent.verify.programs import program
from fsm_agent.verify.witness import Lasso, Witness

Key = tuple[str, str]
NOT_CHECKED = (
    "What happens inside an effect, how long it takes, and whether it ends: each effect needs its own time limit.",
    "Whether the machine does what you want beyond its contracts.",
)


class UnprovedError(AssertionError):
    """A machine that the checker refuses. The message is the whole report."""


@dataclass(frozen=True, slots=True)
class Hole:
    """A configuration in which no row fires: the shortest run that falls through."""

    state: str
    facts: tuple[tuple[str, str], ...]
    witness: Witness

    def __str__(self) -> str:
        known = ", ".join(f"{effect}: {outcome}" for effect, outcome in self.facts) or "nothing"
        return f"In {self.state} with {known} no row fires. Shortest run: {self.witness}"


@dataclass(frozen=True, slots=True)
class DeadRow:
    """A row that no run fires."""

    row: Row
    shadowed_by: tuple[str, ...]
    """Triggers above it that take all its cases; empty if no run comes to such a case at all."""

    def __str__(self) -> str:
        if self.shadowed_by:
            return f"The row «{self.row}» never fires: {', '.join(self.shadowed_by)} above it takes every case of it."
        return f"The row «{self.row}» never fires: no run comes to a case that its guards and outcomes fit."


@dataclass(frozen=True, slots=True)
class Cycle:
    """A run that need not end."""

    lasso: Lasso
    declared_by: str | None = None
    """The limit that was given as None and so asked for this."""

    def __str__(self) -> str:
        if self.declared_by is not None:
            return f"{self.declared_by}=None was asked for, so a run need not end. {self.lasso}"
        return f"A run need not end. {self.lasso}"


@dataclass(frozen=True, slots=True, repr=False)
class Report:
    """What is known about a machine under its limits. `ok` is True when nothing speaks against it."""

    definition: Definition
    limits: Limits
    exact: bool
    """Every configuration was visited; otherwise the compositional way was taken."""
    configurations: int
    edges: int
    rows: dict[Key, Witness]
    """For each row that fires, a shortest run that ends with it."""
    reasons: dict[str, Witness | None]
    """For each terminal reason, a shortest run to it, or None."""
    holes: tuple[Hole, ...]
    dead_rows: tuple[DeadRow, ...]
    dead_ends: tuple[str, ...]
    """States from which no final state can be reached."""
    switched_off: dict[Key, str]
    """Rows that cannot fire under these limits, with the limit that says so."""
    cycles: tuple[Cycle, ...]
    certificate: Certificate
    contracts: tuple[Verdict, ...]
    requests_per_turn: Bound | None
    requests_per_run: Bound | None
    moves_per_turn: Bound | None
    moves_per_run: Bound | None
    problems: tuple[str, ...]
    """Faults of the input, and what could not be decided."""
    notes: tuple[str, ...]
    seconds: float
    not_checked: tuple[str, ...] = field(default=NOT_CHECKED)

    @property
    def ok(self) -> bool:
        return next(self.faults(), None) is None

    @property
    def max_requests_per_turn(self) -> int | None:
        return None if self.requests_per_turn is None else self.requests_per_turn.value

    @property
    def max_requests_per_run(self) -> int | None:
        return None if self.requests_per_run is None else self.requests_per_run.value

    def faults(self) -> Iterator[str]:
        """One sentence for each thing that speaks against the machine."""
        yield from self.problems
        yield from map(str, self.holes)
        yield from (str(cycle) for cycle in self.cycles if cycle.declared_by is None)
        yield from map(str, self.dead_rows)
        yield from (f"No final state can be reached from {state}." for state in self.dead_ends)
        yield from self._lost_reasons()
        yield from (str(verdict) for verdict in self.contracts if not verdict.holds)

    def _lost_reasons(self) -> Iterator[str]:
        if self.problems and not self.rows:
            return  # it was not looked for
        for reason, witness in self.reasons.items():
            rows = [row.key for row in self.definition.rows if row.reason == reason]
            if witness is None and not any(key in self.switched_off for key in rows):
                yield f"No run ends for the reason {reason!r}."

    def witness(self, reason: str) -> Witness:
        """A shortest run that ends for a reason. Raises `KeyError` if there is none."""
        run = self.reasons.get(reason)
        if run is None:
            raise KeyError(f"No run of the machine {self.definition.name!r} ends for the reason {reason!r}.")
        return run

    def program(self, run: Witness | Lasso) -> str:
        """A witness or a lasso of this report as a program to paste and run."""
        return program(self.definition, self.limits, run)

    def require(self) -> Report:
        """The report itself if it is ok. Raises `UnprovedError` with the whole text if not."""
        if not self.ok:
            raise UnprovedError(str(self))
        return self

    def as_json(self) -> dict[str, Any]:
        """The report in JSON types, as `fsm-agent verify --json` prints it."""
        return {
            "machine": self.definition.name,
            "ok": self.ok,
            "exact": self.exact,
            "configurations": self.configurations,
            "edges": self.edges,
            "reasons": {
                name: {"reachable": run is not None, "witness": None if run is None else run.as_json()}
                for name, run in self.reasons.items()
            },
            "rows": [
                {
                    "source": row.source,
                    "trigger": row.trigger,
                    "dest": row.dest,
                    "reason": row.reason,
                    "reachable": row.key in self.rows,
                    "moves": len(self.rows[row.key].word) if row.key in self.rows else None,
                }
                for row in self.definition.rows
            ],
            "holes": [
                {"state": hole.state, "facts": dict(hole.facts), "witness": hole.witness.as_json()}
                for hole in self.holes
            ],
            "dead_rows": [list(dead.row.key) for dead in self.dead_rows],
            "switched_off": [[*key, limit] for key, limit in self.switched_off.items()],
            "cycles": [{**cycle.lasso.as_json(), "declared_by": cycle.declared_by} for cycle in self.cycles],
            "certificate": {
                "complete": self.certificate.complete,
                "order": list(self.certificate.order),
                "words": self.certificate.words(),
            },
            "contracts": [
                {"contract": verdict.contract, "holds": verdict.holds, "problem": verdict.problem}
                for verdict in self.contracts
            ],
            **{f"max_{name}": None if bound is None else bound.value for name, bound in self.bounds().items()},
            "formulas": {f"max_{name}": bound.formula for name, bound in self.bounds().items() if bound is not None},
            "faults": list(self.faults()),
            "notes": list(self.notes),
            "not_checked": list(self.not_checked),
            "limits": {name: self.limits[name] for name in sorted(self.limits)},
            "seconds": round(self.seconds, 3),
        }

    def bounds(self) -> dict[str, Bound | None]:
        return {
            "requests_per_turn": self.requests_per_turn,
            "requests_per_run": self.requests_per_run,
            "moves_per_turn": self.moves_per_turn,
            "moves_per_run": self.moves_per_run,
        }

    def __str__(self) -> str:
        from fsm_agent.verify.text import text

        return text(self)

    def __repr__(self) -> str:
        if self.ok:
            return f"Report({self.definition.name}, ok)"
        faults = list(self.faults())
        more = f" And {len(faults) - 1} more; print the report." if len(faults) > 1 else ""
        return f"Report({self.definition.name}, not ok: {faults[0]}{more})"
