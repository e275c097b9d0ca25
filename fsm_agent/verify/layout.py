"""The control record as one whole number: a field of bits for each counter and flag.

A counter counts in its field up to the largest bound that anything asks about. Above it no guard can tell two values
apart, so it stays there; a counter that no guard bounds is not kept at all. That keeps the number of configurations
finite without changing what any guard answers. A counter that a guard of a user's own reads is kept as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from fsm_agent.machine import Below, Control, Definition, Flag, Guard, Increment, Limits, Row
from fsm_agent.verify.decisions import Literal, atoms_of, bound_of

WIDE = 24
"""Bits of a field without a known top. A counter that reaches 2**24 is not going to stop."""


class GuardFaultError(ValueError):
    """A guard of a user's own raised, or returned something that is not a bool."""


class UnboundedCounterError(ValueError):
    """A counter that a guard of a user's own reads grows for ever."""


@dataclass(frozen=True, slots=True)
class Field:
    """Where a counter or flag is kept, and the value at which it stays (`None`: it is counted as far as it goes)."""

    name: str
    shift: int
    mask: int
    initial: int
    top: int | None

    @property
    def bits(self) -> int:
        return self.mask << self.shift


@dataclass(frozen=True, slots=True)
class Change:
    """What a row does to the packed control record: keep some bits, put others, then count up."""

    keep: int
    put: int
    raised: tuple[tuple[Field, int], ...]

    def __call__(self, packed: int) -> int:
        packed = packed & self.keep | self.put
        for field, by in self.raised:
            value = (packed >> field.shift & field.mask) + by
            if field.top is None:
                if value > field.mask:
                    raise UnboundedCounterError(
                        f"The counter {field.name!r} grows without bound, and a guard of your own reads it; "
                        "guard the rows that raise it with Below."
                    )
            elif value > field.top:
                value = field.top
            packed = packed & ~field.bits | value << field.shift
        return packed


class Layout:
    """How the counters and flags of a definition, under given limits, share the bits of one number."""

    def __init__(self, definition: Definition, limits: Limits, also_asked: Iterable[Guard] = ()) -> None:
        self.definition = definition
        self.limits = limits
        self.also_asked = tuple(also_asked)
        atoms = [*atoms_of(guard for row in definition.rows for guard in row.when), *atoms_of(self.also_asked)]
        self.bounds, self._open = _bounds(definition, limits, atoms)
        self.fields: dict[str, Field] = {}
        shift = 0
        for name in definition.initial_control():
            initial = definition.initial_value(name)
            top = None if name in self._open else max(initial, *self.bounds.get(name, (initial,)))
            width = WIDE if top is None else max(top.bit_length(), 1)
            self.fields[name] = Field(name, shift, (1 << width) - 1, initial, top)
            shift += width
        self.bits = shift
        self.initial = self.pack(definition.initial_control().values)
        self._answers: dict[tuple[Guard, int], bool] = {}

    def pack(self, values: Iterable[int]) -> int:
        packed = 0
        for field, value in zip(self.fields.values(), values, strict=True):
            packed |= (value if field.top is None else min(value, field.top)) << field.shift
        return packed

    def unpack(self, packed: int, state: str) -> Control:
        """The control record, as guards read it. A counter that stays at its top has at least that value."""
        values = tuple(packed >> field.shift & field.mask for field in self.fields.values())
        return Control(state, values, self.definition.initial_control().index)

    def value(self, packed: int, name: str) -> int:
        field = self.fields[name]
        return packed >> field.shift & field.mask

    def bits_of(self, names: Iterable[str]) -> int:
        """The bits in which these counters and flags are kept."""
        mask = 0
        for name in names:
            mask |= self.fields[name].bits
        return mask

    def names_in(self, *masks: int) -> frozenset[str]:
        """The counters and flags that are kept in these bits."""
        return frozenset(name for name, field in self.fields.items() if any(field.bits & mask for mask in masks))

    def domain(self, name: str) -> int:
        """How many values of this counter or flag are told apart."""
        field = self.fields[name]
        return field.mask + 1 if field.top is None else field.top - min(field.initial, field.top) + 1

    def change(self, row: Row) -> Change:
        constants: dict[str, int] = {}
        raised: dict[str, int] = {}
        for update in row.update:
            if isinstance(update, Increment):
                raised[update.name] = raised.get(update.name, 0) + 1
            else:
                constants[update.name] = update(0, self.definition.initial_value(update.name))
                raised.pop(update.name, None)
        keep, put = ~self.bits_of(constants), 0
        for name, value in constants.items():
            field = self.fields[name]
            put |= (value if field.top is None else min(value, field.top)) << field.shift
        up = tuple((self.fields[name], by) for name, by in raised.items() if self.domain(name) > 1)
        return Change(keep, put, up)

    def answer(self, atom: Guard, packed: int, state: str) -> bool:
        """What a guard says. `Below` and `Flag` are read from the bits, every other guard is called (once per case)."""
        match atom:
            case Below():
                bound = bound_of(atom, self.limits)
                return bound is None or self.value(packed, atom.counter) < bound
            case Flag(name):
                return bool(self.value(packed, name))
            case _:
                key = atom, packed & self.bits_of(atom.reads)
                if key not in self._answers:
                    self._answers[key] = self._called(atom, packed, state)
                return self._answers[key]

    def _called(self, guard: Guard, packed: int, state: str) -> bool:
        control = self.unpack(packed, state)
        try:
            answer: object = guard(control, self.limits)
        except Exception as error:
            raise GuardFaultError(
                f"The guard {guard} raised {error!r} in {control}; a guard is a pure predicate on control."
            ) from error
        if answer is not True and answer is not False:
            raise GuardFaultError(
                f"The guard {guard} returned {answer!r} in {control}, which is not a bool; return True or False."
            )
        return answer

    def agrees(self, literals: Iterable[Literal], packed: int, state: str) -> bool:
        return all(self.answer(atom, packed, state) is wanted for atom, wanted in literals)


def _bounds(
    definition: Definition, limits: Limits, atoms: Iterable[Guard]
) -> tuple[Mapping[str, set[int]], frozenset[str]]:
    """The bounds that are asked about for each counter, and the counters that are read in another way."""
    bounds: dict[str, set[int]] = {flag.name: {1} for flag in definition.flags}
    read: set[str] = set()
    counters = {counter.name for counter in definition.counters}
    for atom in atoms:
        if isinstance(atom, Below):
            bound = bound_of(atom, limits)
            if bound is not None and bound > definition.initial_value(atom.counter):
                bounds.setdefault(atom.counter, set()).add(bound)
        elif not isinstance(atom, Flag):
            read |= atom.reads & counters
    return bounds, frozenset(read)
