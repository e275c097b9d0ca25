"""What a declaration must keep to be a machine. `transitions` accepts nearly anything; these checks do not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from fsm_agent.machine.guards import AnyOf, Below, Flag, Guard, Increment, Not, Set

if TYPE_CHECKING:
    from fsm_agent.machine.definition import Definition, Row


def validate(definition: Definition) -> None:
    """Raise `DefinitionError` with one sentence for each fault of the declaration."""
    from fsm_agent.machine.definition import DefinitionError

    problems = [*_unique_names(definition), *_specs(definition)]
    for row in definition.rows:
        problems += _row(definition, row)
    problems += _once_per_source(definition)
    if not problems:
        problems += [*_probe(definition), *_shadowed(definition)]
    if problems:
        raise DefinitionError("\n".join(dict.fromkeys(problems)))


def _known(names: Iterable[str]) -> str:
    return ", ".join(sorted(map(str, names))) or "none"


def _unique_names(definition: Definition) -> Iterator[str]:
    kinds = {
        "state": [s.name for s in definition.states],
        "effect": [e.name for e in definition.effects],
        "counter or flag": [*(c.name for c in definition.counters), *(f.name for f in definition.flags)],
    }
    for kind, names in kinds.items():
        for name in sorted({name for name in names if names.count(name) > 1}):
            yield f"The {kind} {name!r} is declared twice in the machine {definition.name!r}; keep one of them."


def _specs(definition: Definition) -> Iterator[str]:
    states = {s.name for s in definition.states}
    effects = {e.name for e in definition.effects}
    limits = set(definition.limits.model_fields)
    if definition.initial not in states:
        yield f"The initial state {definition.initial!r} is not declared; the states are {_known(states)}."
    if not any(s.final for s in definition.states):
        yield f"The machine {definition.name!r} has no final state, so no run of it could end; declare one."
    for effect in definition.effects:
        if effect.state not in states:
            yield (
                f"The effect {effect.name!r} belongs to the unknown state {effect.state!r}; "
                f"the states are {_known(states)}."
            )
        if not effect.outcomes:
            yield f"The effect {effect.name!r} declares no outcome; an effect ends in one of a finite set of outcomes."
    for counter in definition.counters:
        if isinstance(counter.limit, str) and counter.limit not in limits:
            yield (
                f"The counter {counter.name!r} names the unknown limit {counter.limit!r}; "
                f"the limits of {definition.limits.__name__} are {_known(limits)}."
            )
    for state in definition.states:
        for name in state.inherits:
            if name not in effects:
                yield f"The state {state.name!r} inherits the unknown effect {name!r}; known are {_known(effects)}."


def _row(definition: Definition, row: Row) -> Iterator[str]:
    yield from _row_ends(definition, row)
    yield from _row_facts(definition, row)
    yield from _row_names(definition, row)


def _row_ends(definition: Definition, row: Row) -> Iterator[str]:
    final = {s.name: s.final for s in definition.states}
    for what, name in (("source", row.source), ("dest", row.dest)):
        if name not in final:
            yield f"The row «{row}» has the unknown {what} {name!r}; the states are {_known(final)}."
    if final.get(row.source):
        yield f"The row «{row}» leaves the final state {row.source!r}; a run that has ended stays so."
    if final.get(row.dest) and row.reason is None:
        yield f"The row «{row}» enters the final state {row.dest!r} without a terminal reason; give it reason=..."
    if final.get(row.dest) is False and row.reason is not None:
        yield f"The row «{row}» gives a terminal reason but enters {row.dest!r}, which is not final."


def _row_facts(definition: Definition, row: Row) -> Iterator[str]:
    effects = {e.name: e for e in definition.effects}
    inherits = {name for s in definition.states if s.name == row.source for name in s.inherits}
    for field, facts in (("given", row.given), ("upon", row.upon)):
        for name, outcomes in facts.items():
            effect = effects.get(name)
            if effect is None:
                yield f"The row «{row}» names the unknown effect {name!r} in {field}; known are {_known(effects)}."
                continue
            if effect.state != row.source and name not in inherits:
                yield (
                    f"The row «{row}» needs the effect {name!r}, which belongs to the state {effect.state!r} "
                    f"and is not inherited by {row.source!r}."
                )
            for outcome in outcomes:
                if outcome not in effect.outcomes:
                    yield (
                        f"The row «{row}» expects the unknown outcome {outcome!r} of the effect {name!r}; "
                        f"its outcomes are {_known(effect.outcomes)}."
                    )


def _row_names(definition: Definition, row: Row) -> Iterator[str]:
    counters = {c.name for c in definition.counters}
    flags = {f.name for f in definition.flags}
    limits = set(definition.limits.model_fields)
    for guard in row.when:
        yield from _guard(row, guard, counters, flags, limits)
    for update in row.update:
        match update:
            case Increment(name) if name not in counters:
                yield f"The row «{row}» raises the unknown counter {name!r}; the counters are {_known(counters)}."
            case Set(name) if name not in flags:
                yield f"The row «{row}» sets the unknown flag {name!r}; the flags are {_known(flags)}."
            case _ if update.name not in counters | flags:
                yield f"The row «{row}» updates the unknown counter or flag {update.name!r}."
            case _:
                pass
    for action in row.do:
        if action not in definition.actions:
            yield f"The row «{row}» does the unknown action {action!r}; the actions are {_known(definition.actions)}."


def _guard(row: Row, guard: Guard, counters: set[str], flags: set[str], limits: set[str]) -> Iterator[str]:
    match guard:
        case Not(inner):
            yield from _guard(row, inner, counters, flags, limits)
            return
        case AnyOf():
            for inner in guard.guards:
                yield from _guard(row, inner, counters, flags, limits)
            return
        case _:
            pass
    if not all(hasattr(guard, name) for name in ("__call__", "reads", "limits")):
        yield (
            f"The row «{row}» has the guard {guard!r}, which is not a guard: "
            "use Below, Flag, Not, AnyOf, or a Predicate around a function of your own."
        )
        return
    known, kind = (flags, "flag") if isinstance(guard, Flag) else (counters, "counter")
    if not isinstance(guard, (Flag, Below)):
        known, kind = counters | flags, "counter or flag"
    for name in sorted(guard.reads - known):
        yield f"The row «{row}» guards on the unknown {kind} {name!r}; there are {_known(known)}."
    for name in sorted(guard.limits - limits):
        yield f"The row «{row}» guards on the unknown limit {name!r}; the limits are {_known(limits)}."


def _once_per_source(definition: Definition) -> Iterator[str]:
    seen: set[tuple[str, str]] = set()
    for row in definition.rows:
        if row.key in seen:
            yield (
                f"The trigger {row.trigger!r} occurs twice in the state {row.source!r}, and the second row could never "
                "be told from the first; give one of them another trigger."
            )
        seen.add(row.key)


def _probe(definition: Definition) -> Iterator[str]:
    """Each guard is asked once, about the initial control record under the default limits."""
    control = definition.initial_control()
    bounds: dict[str, int | None] = {
        name: info.default if isinstance(info.default, int) else None
        for name, info in definition.limits.model_fields.items()
    }
    for row in definition.rows:
        for guard in row.when:
            try:
                answer: object = guard(control, bounds)
            except Exception as error:
                yield f"The guard {guard} of the row «{row}» raised {error!r}; a guard is a pure predicate on control."
                continue
            if answer is not True and answer is not False:
                yield (
                    f"The guard {guard} of the row «{row}» returned {answer!r}, which is not a bool; "
                    "return True or False."
                )


def _shadowed(definition: Definition) -> Iterator[str]:
    for state in definition.states:
        rows = definition.rows_from(state.name)
        for i, later in enumerate(rows):
            for earlier in rows[:i]:
                if _shadows(earlier, later):
                    yield (
                        f"The row «{later}» can never fire: the row «{earlier}» above it takes every case of it. "
                        "Move it up, or narrow the one above."
                    )


def _shadows(earlier: Row, later: Row) -> bool:
    if not set(earlier.when) <= set(later.when):
        return False
    if earlier.upon and not (later.upon and _within(later.upon, earlier.upon)):
        return False
    return all(
        effect in later.given and set(later.given[effect]) <= set(outcomes)
        for effect, outcomes in earlier.given.items()
    )


def _within(narrow: Mapping[str, tuple[str, ...]], wide: Mapping[str, tuple[str, ...]]) -> bool:
    return all(set(outcomes) <= set(wide.get(effect, ())) for effect, outcomes in narrow.items())
