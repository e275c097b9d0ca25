"""Every way to get a single row of a table wrong."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from fsm_agent.machine import (
    AnyOf,
    Definition,
    DefinitionError,
    Guard,
    Increment,
    Not,
    Reset,
    Row,
    Set,
    Update,
)


@dataclass(frozen=True)
class Mutant:
    """A table with one fault. `definition` is None where its construction already refuses it."""

    name: str
    definition: Definition | None


def mutants(definition: Definition) -> Iterator[Mutant]:
    rows = definition.rows
    for i, row in enumerate(rows):
        for name, wrong in _wrong_rows(definition, row):
            yield _mutant(
                definition, f"{name}: {row}", [*rows[:i], *([] if wrong is None else [wrong]), *rows[i + 1 :]]
            )
        for j in range(i + 1, len(rows)):
            if rows[j].source == row.source:
                swapped = list(rows)
                swapped[i], swapped[j] = rows[j], row
                yield _mutant(definition, f"swap: {row} with {rows[j].trigger}", swapped)


def _mutant(definition: Definition, name: str, rows: Sequence[Row]) -> Mutant:
    try:
        return Mutant(name, replace(definition, rows=tuple(rows)))
    except DefinitionError:
        return Mutant(name, None)


def _wrong_rows(definition: Definition, row: Row) -> Iterator[tuple[str, Row | None]]:
    yield "delete", None
    yield from _retargeted(definition, row)
    for i, guard in enumerate(row.when):
        rest = [*row.when[:i]], [*row.when[i + 1 :]]
        yield f"unguard {guard}", _changed(row, when=[*rest[0], *rest[1]])
        yield f"negate {guard}", _changed(row, when=[*rest[0], _negated(guard), *rest[1]])
        if isinstance(guard, AnyOf):
            for k, _ in enumerate(guard.guards):
                narrower = AnyOf(*(inner for n, inner in enumerate(guard.guards) if n != k))
                yield f"narrow {guard}", _changed(row, when=[*rest[0], narrower, *rest[1]])
    for i, update in enumerate(row.update):
        before, after = row.update[:i], row.update[i + 1 :]
        yield f"drop {update}", _changed(row, update=[*before, *after])
        yield f"flip {update}", _changed(row, update=[*before, _flipped(definition, update), *after])
    yield from _other_outcomes(row)


def _retargeted(definition: Definition, row: Row) -> Iterator[tuple[str, Row]]:
    if row.reason is not None:
        for reason in definition.reasons:
            if reason != row.reason:
                yield f"end as {reason}", _changed(row, reason=reason)
    for state in definition.states:
        if state.name != row.dest:
            first = definition.reasons[0] if state.final else None
            yield f"go to {state.name}", _changed(row, dest=state.name, reason=first)


def _other_outcomes(row: Row) -> Iterator[tuple[str, Row]]:
    for effect, outcomes in row.given.items():
        rest = {name: value for name, value in row.given.items() if name != effect}
        yield f"whatever {effect}", _changed(row, given=rest)
        if len(outcomes) > 1:
            for outcome in outcomes:
                fewer = tuple(o for o in outcomes if o != outcome)
                yield f"not for {effect}: {outcome}", _changed(row, given={**row.given, effect: fewer})


def _negated(guard: Guard) -> Guard:
    return guard.guard if isinstance(guard, Not) else Not(guard)


def _flipped(definition: Definition, update: Update) -> Update:
    if not isinstance(update, Reset):
        return Reset(update.name)
    counters = {counter.name for counter in definition.counters}
    return Increment(update.name) if update.name in counters else Set(update.name)


def _changed(row: Row, **changes) -> Row:
    parts = {
        name: getattr(row, name)
        for name in ("source", "trigger", "dest", "given", "when", "upon", "update", "do", "reason")
    }
    parts |= changes
    return Row(parts.pop("source"), parts.pop("trigger"), parts.pop("dest"), **parts)
