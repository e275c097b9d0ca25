"""A declared machine: what it is made of, the checks that it passes at construction, and how a user extends it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TypeAlias, TypeVar

from fsm_agent.machine.control import Control
from fsm_agent.machine.guards import AnyOf, Below, Guard, Not, Update
from fsm_agent.machine.limits import LoopLimits

Outcomes: TypeAlias = str | Iterable[str]


class DefinitionError(ValueError):
    """A declaration that cannot be a machine. The message names the guilty row and says what to write instead."""


def _outcomes(value: Outcomes) -> tuple[str, ...]:
    return (str(value),) if isinstance(value, str) else tuple(str(outcome) for outcome in value)


def _facts(value: Mapping[str, Outcomes]) -> Mapping[str, tuple[str, ...]]:
    return MappingProxyType({str(effect): _outcomes(outcomes) for effect, outcomes in value.items()})


@dataclass(frozen=True, slots=True)
class StateSpec:
    """A state of the machine.

    `inherits` names the facts that survive entering this state; every other fact of a visit is forgotten when its
    state is left.
    """

    name: str
    inherits: tuple[str, ...] = ()
    final: bool = False
    note: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", str(self.name))
        object.__setattr__(self, "inherits", _outcomes(self.inherits))


@dataclass(frozen=True, slots=True)
class EffectSpec:
    """A piece of work on the world, the state that performs it, and the finite set of its outcomes.

    `requests` is the most requests to the model that one performance may make; the checker adds them up.
    """

    name: str
    state: str
    outcomes: tuple[str, ...]
    requests: int = 0
    note: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", str(self.name))
        object.__setattr__(self, "state", str(self.state))
        object.__setattr__(self, "outcomes", _outcomes(self.outcomes))


@dataclass(frozen=True, slots=True)
class Counter:
    """A whole number that a row may raise or reset, and the limit that bounds it."""

    name: str
    limit: str | int
    initial: int = 0
    note: str = ""


@dataclass(frozen=True, slots=True)
class FlagSpec:
    """A mark that a row may set or reset; it is not set at first."""

    name: str
    note: str = ""


@dataclass(frozen=True, slots=True, init=False, eq=False)
class Row:
    """One transition.

    - `when`: guards on the control record; all must hold.
    - `upon`: outcomes of which at least one must be known already. It never asks for an effect.
    - `given`: outcomes that must all be so. An effect that this visit has not performed yet is performed for it.
    - `update`: what happens to the control record; `do`: which actions happen to the conversation, in order.
    - `reason`: why the run ended; only, and always, on a row into a final state.
    """

    source: str
    trigger: str
    dest: str
    given: Mapping[str, tuple[str, ...]]
    when: tuple[Guard, ...]
    upon: Mapping[str, tuple[str, ...]]
    update: tuple[Update, ...]
    do: tuple[str, ...]
    reason: str | None
    note: str

    def __init__(
        self,
        source: str,
        trigger: str,
        dest: str,
        *,
        given: Mapping[str, Outcomes] | None = None,
        when: Guard | Sequence[Guard] = (),
        upon: Mapping[str, Outcomes] | None = None,
        update: Update | Sequence[Update] = (),
        do: str | Sequence[str] = (),
        reason: str | None = None,
        note: str = "",
    ) -> None:
        put = object.__setattr__
        put(self, "source", str(source))
        put(self, "trigger", str(trigger))
        put(self, "dest", str(dest))
        put(self, "given", _facts(given or {}))
        put(self, "when", tuple(when) if isinstance(when, Sequence) else (when,))
        put(self, "upon", _facts(upon or {}))
        put(self, "update", tuple(update) if isinstance(update, Sequence) else (update,))
        put(self, "do", (str(do),) if isinstance(do, str) else tuple(str(action) for action in do))
        put(self, "reason", None if reason is None else str(reason))
        put(self, "note", note)

    @property
    def key(self) -> tuple[str, str]:
        """A trigger occurs at most once per source, so these two name the row."""
        return self.source, self.trigger

    @property
    def asks(self) -> tuple[str, ...]:
        """Effects that this row may ask for or reads, in order."""
        return tuple(dict.fromkeys((*self.upon, *self.given)))

    def _parts(self) -> tuple[object, ...]:
        given, upon = tuple(self.given.items()), tuple(self.upon.items())
        return (*self.key, self.dest, given, self.when, upon, self.update, self.do, self.reason)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Row) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash(self._parts())

    def __str__(self) -> str:
        return f"{self.source} --{self.trigger}--> {self.dest}" + (f": {self.reason}" if self.reason else "")


def _bind(guard: Guard, limit_of: Mapping[str, str | int]) -> Guard:
    match guard:
        case Below(counter, None):
            return Below(counter, limit_of[counter]) if counter in limit_of else guard
        case Not(inner):
            return Not(_bind(inner, limit_of))
        case AnyOf():
            return AnyOf(*(_bind(inner, limit_of) for inner in guard.guards))
        case _:
            return guard


@dataclass(frozen=True, slots=True)
class Definition:
    """A machine as data: states, effects, counters, flags and rows in document order. Immutable and checked.

    Extend one with `with_rows`, `replace_row`, `with_states`, ...; each gives a new, checked definition.
    Raises `DefinitionError` for a table that cannot be run.
    """

    name: str
    initial: str
    states: tuple[StateSpec, ...]
    effects: tuple[EffectSpec, ...]
    counters: tuple[Counter, ...]
    flags: tuple[FlagSpec, ...]
    rows: tuple[Row, ...]
    actions: tuple[str, ...] = ()
    limits: type[LoopLimits] = LoopLimits

    _index: Mapping[str, int] = field(init=False, repr=False, compare=False)
    _from: Mapping[str, tuple[Row, ...]] = field(init=False, repr=False, compare=False)
    _state: Mapping[str, StateSpec] = field(init=False, repr=False, compare=False)
    _initial_values: tuple[int, ...] = field(init=False, repr=False, compare=False)
    _hash: int | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "_hash", None)
        limit_of = {counter.name: counter.limit for counter in self.counters}
        put(self, "initial", str(self.initial))
        for name in ("states", "effects", "counters", "flags", "rows"):
            put(self, name, tuple(getattr(self, name)))
        put(self, "actions", tuple(str(action) for action in self.actions))
        put(self, "rows", tuple(_bound(row, limit_of) for row in self.rows))
        names = [*(c.name for c in self.counters), *(f.name for f in self.flags)]
        put(self, "_index", MappingProxyType({name: i for i, name in enumerate(names)}))
        put(self, "_initial_values", (*(c.initial for c in self.counters), *(0 for _ in self.flags)))
        put(self, "_state", MappingProxyType({state.name: state for state in self.states}))
        by_source: dict[str, list[Row]] = {state.name: [] for state in self.states}
        for row in self.rows:
            by_source.setdefault(row.source, []).append(row)
        put(self, "_from", MappingProxyType({source: tuple(rows) for source, rows in by_source.items()}))
        from fsm_agent.machine.validation import validate

        validate(self)

    def __hash__(self) -> int:
        known = self._hash
        if known is None:  # each new `AgentMachine` asks, and the table is large
            parts = (self.name, self.initial, self.states, self.effects, self.counters, self.flags, self.rows)
            known = hash((*parts, self.actions, self.limits))
            object.__setattr__(self, "_hash", known)
        return known

    # ---- reading

    def rows_from(self, state: str) -> tuple[Row, ...]:
        """The rows of a state, in document order."""
        return self._from[state]

    def row(self, source: str, trigger: str) -> Row:
        """The one row with this source and trigger. Raises `KeyError` if there is none."""
        for row in self._from.get(str(source), ()):
            if row.trigger == trigger:
                return row
        raise KeyError(f"The machine {self.name!r} has no row {source} --{trigger}-->.")

    def state(self, name: str) -> StateSpec:
        return self._state[name]

    def effect(self, name: str) -> EffectSpec:
        for effect in self.effects:
            if effect.name == name:
                return effect
        raise KeyError(f"The machine {self.name!r} has no effect {name!r}.")

    @property
    def triggers(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(row.trigger for row in self.rows))

    @property
    def reasons(self) -> tuple[str, ...]:
        """Every terminal reason, in the order in which rows first give it."""
        return tuple(dict.fromkeys(row.reason for row in self.rows if row.reason is not None))

    def initial_control(self) -> Control:
        return Control(self.initial, self._initial_values, self._index)

    def initial_value(self, name: str) -> int:
        return self._initial_values[self._index[name]]

    def updated(self, control: Control, row: Row) -> Control:
        """The control record after a row has fired. Pure."""
        if not row.update and control.state == row.dest:
            return control
        values = list(control.values)
        for update in row.update:
            place = self._index[update.name]
            values[place] = update(values[place], self._initial_values[place])
        return Control(row.dest, tuple(values), self._index)

    def inherited(self, dest: str, facts: Mapping[str, str]) -> dict[str, str]:
        """The facts that survive entering a state."""
        return {effect: facts[effect] for effect in self._state[dest].inherits if effect in facts}

    # ---- extending

    def with_changes(
        self,
        *,
        name: str | None = None,
        states: Sequence[StateSpec] = (),
        effects: Sequence[EffectSpec] = (),
        counters: Sequence[Counter] = (),
        flags: Sequence[FlagSpec] = (),
        actions: Sequence[str] = (),
        rows: Sequence[Row] = (),
        replace_rows: Sequence[Row] = (),
        remove_rows: Sequence[tuple[str, str]] = (),
        before: str | None = None,
        limits: type[LoopLimits] | None = None,
    ) -> Definition:
        """Several changes at once, checked when all are made.

        States, effects, counters and flags with a known name replace that one. `replace_rows` take the place of the row
        with their source and trigger; `rows` are added at the end of their source, or before the row of the same source
        with the trigger `before`; `remove_rows` are pairs of source and trigger.
        """
        changed = list(self.rows)
        for key in remove_rows:
            changed.remove(self.row(*key))
        for row in replace_rows:
            changed[_position(changed, row.key)] = row
        for row in rows:
            if before is not None and any(other.key == (row.source, before) for other in changed):
                changed.insert(_position(changed, (row.source, before)), row)
            else:
                changed.append(row)
        return replace(
            self,
            name=name or self.name,
            states=_merged(self.states, states),
            effects=_merged(self.effects, effects),
            counters=_merged(self.counters, counters),
            flags=_merged(self.flags, flags),
            actions=tuple(dict.fromkeys((*self.actions, *map(str, actions)))),
            rows=tuple(changed),
            limits=limits or self.limits,
        )

    def replace_row(self, row: Row) -> Definition:
        """The same machine with another row for this source and trigger."""
        return self.with_changes(replace_rows=[row])

    def with_rows(self, *rows: Row, before: str | None = None) -> Definition:
        """More rows: at the end of their source, or before the row of that source with the trigger `before`."""
        return self.with_changes(rows=rows, before=before)

    def without_row(self, source: str, trigger: str) -> Definition:
        return self.with_changes(remove_rows=[(source, trigger)])


_Named = TypeVar("_Named", StateSpec, EffectSpec, Counter, FlagSpec)


def _position(rows: Sequence[Row], key: tuple[str, str]) -> int:
    for i, row in enumerate(rows):
        if row.key == key:
            return i
    raise DefinitionError(f"There is no row {key[0]} --{key[1]}--> to replace or to place another before.")


def _merged(old: Sequence[_Named], new: Sequence[_Named]) -> tuple[_Named, ...]:
    by_name = {item.name: item for item in old}
    by_name.update({item.name: item for item in new})
    return tuple(by_name.values())


def _bound(row: Row, limit_of: Mapping[str, str | int]) -> Row:
    return Row(
        row.source,
        row.trigger,
        row.dest,
        given=row.given,
        when=tuple(_bind(guard, limit_of) for guard in row.when),
        upon=row.upon,
        update=row.update,
        do=row.do,
        reason=row.reason,
        note=row.note,
    )
