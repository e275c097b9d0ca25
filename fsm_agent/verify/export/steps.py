"""A machine under given limits, in the plain terms that every export needs: variables, events, conditions, assignments.

A run alternates between two kinds of event: `effect.outcome`, by which the environment answers the effect that the
machine asks for, and `go`, by which the machine moves. So a case that no row takes can be seen: nothing follows.
Outcomes are remembered in variables: 0 is not known, 1 the first declared outcome, and so on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from fsm_agent.machine import AnyOf, Below, Definition, Flag, Guard, Increment, Limits, Not, Row
from fsm_agent.verify.bounds_given import Bounds, bounds_of
from fsm_agent.verify.decisions import bound_of
from fsm_agent.verify.layout import Layout

GO = "go"
REASON = "reason"


class ExportError(ValueError):
    """The machine has something that other tools cannot read."""


@dataclass(frozen=True, slots=True)
class Compare:
    """A variable compared with a number; `operator` is ==, < or >=."""

    variable: str
    operator: str
    number: int


@dataclass(frozen=True, slots=True)
class All:
    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Any:
    parts: tuple[Condition, ...]


Condition: TypeAlias = Compare | All | Any
ALWAYS, NEVER = All(()), Any(())


@dataclass(frozen=True, slots=True)
class Assign:
    """A variable gets a number, or goes up by one as far as `top`."""

    variable: str
    number: int
    top: int | None = None

    @property
    def raises(self) -> bool:
        return self.top is not None


@dataclass(frozen=True, slots=True)
class Variable:
    name: str
    initial: int
    top: int


@dataclass(frozen=True, slots=True)
class Arc:
    """What an event does in a state, if the condition holds and no arc above it for the same event takes it.

    An arc without `dest` and assignments says that the event does nothing here.
    """

    event: str
    condition: Condition
    dest: str | None = None
    assigns: tuple[Assign, ...] = ()
    trigger: str = ""


@dataclass(frozen=True, slots=True)
class Steps:
    """The whole machine."""

    definition: Definition
    limits: Limits
    variables: tuple[Variable, ...]
    arcs: dict[str, tuple[Arc, ...]]

    @property
    def finals(self) -> tuple[str, ...]:
        return tuple(state.name for state in self.definition.states if state.final)


def outcome_variable(effect: str) -> str:
    return f"of_{effect}"


def steps(definition: Definition, limits: Bounds = None) -> Steps:
    """Raises `ExportError` for a guard of a user's own: other tools cannot call it."""
    bounds = bounds_of(definition, limits)
    return _Writer(definition, bounds).steps()


class _Writer:
    def __init__(self, definition: Definition, limits: Limits) -> None:
        self.definition = definition
        self.limits = limits
        self.fields = Layout(definition, limits).fields
        self.kept = {name for name, field in self.fields.items() if field.top is not None and field.top > field.initial}

    def steps(self) -> Steps:
        variables = [Variable(outcome_variable(e.name), 0, len(e.outcomes)) for e in self.definition.effects]
        variables += [Variable(f.name, f.initial, f.top or 0) for f in self.fields.values() if f.name in self.kept]
        if self.definition.reasons:
            variables.append(Variable(REASON, 0, len(self.definition.reasons)))
        arcs = {state.name: tuple(self._arcs(state.name)) for state in self.definition.states}
        return Steps(self.definition, self.limits, tuple(variables), arcs)

    def _arcs(self, state: str) -> Iterator[Arc]:
        rows = self.definition.rows_from(state)
        asked = dict.fromkeys(effect for row in rows for effect in row.given)
        for row in rows:
            yield Arc(GO, self.fires(row), row.dest, tuple(self._assigns(row)), row.trigger)
            yield from (Arc(GO, self.asks(row, effect)) for effect in row.given)
        for effect in asked:
            for code, outcome in enumerate(self.definition.effect(effect).outcomes, 1):
                event = f"{effect}.{outcome}"
                for row in rows:
                    yield Arc(event, self.fires(row))
                    for other in row.given:
                        if other == effect:
                            put = (Assign(outcome_variable(effect), code),)
                            yield Arc(event, self.asks(row, effect), None, put)
                        else:
                            yield Arc(event, self.asks(row, other))

    def fires(self, row: Row) -> Condition:
        """The row takes the case as it is."""
        return _all([*self._holds(row), *(self._is(effect, outcomes) for effect, outcomes in row.given.items())])

    def asks(self, row: Row, effect: str) -> Condition:
        """The row asks for the effect: what it needs before is known and fits."""
        before: list[Condition] = []
        for other, outcomes in row.given.items():
            if other == effect:
                break
            before.append(self._is(other, outcomes))
        return _all([*self._holds(row), *before, Compare(outcome_variable(effect), "==", 0)])

    def _holds(self, row: Row) -> Iterator[Condition]:
        yield from (self._guard(guard, wanted=True) for guard in row.when)
        if row.upon:
            yield _any([self._is(effect, outcomes) for effect, outcomes in row.upon.items()])

    def _is(self, effect: str, outcomes: tuple[str, ...]) -> Condition:
        declared = self.definition.effect(effect).outcomes
        return _any([Compare(outcome_variable(effect), "==", declared.index(o) + 1) for o in outcomes])

    def _guard(self, guard: Guard, *, wanted: bool) -> Condition:
        match guard:
            case Not(inner):
                return self._guard(inner, wanted=not wanted)
            case AnyOf():
                parts = [self._guard(inner, wanted=wanted) for inner in guard.guards]
                return _any(parts) if wanted else _all(parts)
            case Flag(name):
                return Compare(name, "==", int(wanted)) if name in self.kept else (NEVER if wanted else ALWAYS)
            case Below():
                return self._below(guard, wanted=wanted)
            case _:
                raise ExportError(
                    f"The guard {guard} of the machine {self.definition.name!r} is a function of your own, which other "
                    "tools cannot call; write it with Below, Flag, Not and AnyOf to export the machine."
                )

    def _below(self, guard: Below, *, wanted: bool) -> Condition:
        bound = bound_of(guard, self.limits)
        if bound is None:
            return ALWAYS if wanted else NEVER
        if guard.counter not in self.kept:
            return ALWAYS if (self.fields[guard.counter].initial < bound) is wanted else NEVER
        return Compare(guard.counter, "<" if wanted else ">=", bound)

    def _assigns(self, row: Row) -> Iterator[Assign]:
        for update in row.update:
            if update.name in self.kept:
                field = self.fields[update.name]
                if isinstance(update, Increment):
                    yield Assign(update.name, 1, field.top)
                else:
                    yield Assign(update.name, update(0, field.initial))
        inherited = self.definition.state(row.dest).inherits
        yield from (Assign(outcome_variable(e.name), 0) for e in self.definition.effects if e.name not in inherited)
        if row.reason is not None:
            yield Assign(REASON, self.definition.reasons.index(row.reason) + 1)


def _all(parts: list[Condition]) -> Condition:
    if NEVER in parts:
        return NEVER
    rest = tuple(part for part in parts if part != ALWAYS)
    return rest[0] if len(rest) == 1 else All(rest)


def _any(parts: list[Condition]) -> Condition:
    if ALWAYS in parts:
        return ALWAYS
    rest = tuple(part for part in parts if part != NEVER)
    return rest[0] if len(rest) == 1 else Any(rest)


def infix(condition: Condition, *, true: str = "true", false: str = "false") -> str:
    """A condition in the notation that C, ECMAScript and Promela share."""
    match condition:
        case Compare(variable, operator, number):
            return f"{variable} {operator} {number}"
        case All(parts) if not parts:
            return true
        case Any(parts) if not parts:
            return false
        case _:
            sign = " && " if isinstance(condition, All) else " || "
            return "(" + sign.join(infix(part, true=true, false=false) for part in condition.parts) + ")"
