"""What a contract says must hold: guards on the control record and known outcomes, joined by `Not` and `AnyOf`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from fsm_agent.machine import AnyOf, Below, Control, Definition, Flag, Guard, Limits, Not
from fsm_agent.verify.decisions import Facts, Literal, implied
from fsm_agent.verify.layout import Layout


@dataclass(frozen=True, slots=True, init=False)
class Fact:
    """Holds where the outcome of an effect is known and is one of these. For contracts only: rows have `given`.

    >>> str(Fact("hooks", "pass"))
    'hooks: pass'
    """

    effect: str
    outcomes: tuple[str, ...]

    def __init__(self, effect: str, *outcomes: str) -> None:
        object.__setattr__(self, "effect", str(effect))
        object.__setattr__(self, "outcomes", tuple(str(outcome) for outcome in outcomes))

    def __call__(self, control: Control, limits: Limits) -> bool:  # noqa: ARG002 - one signature for all guards
        raise TypeError(f"Fact({self.effect!r}) is no guard of a row: write it in `given`, and use Fact in contracts.")

    @property
    def reads(self) -> frozenset[str]:
        return frozenset()

    @property
    def limits(self) -> frozenset[str]:
        return frozenset()

    def __str__(self) -> str:
        return f"{self.effect}: {' or '.join(self.outcomes)}"


@dataclass(frozen=True, slots=True, init=False)
class AllOf:
    """Holds while each of several conditions does."""

    guards: tuple[Guard, ...]

    def __init__(self, *guards: Guard) -> None:
        object.__setattr__(self, "guards", guards)

    def __call__(self, control: Control, limits: Limits) -> bool:
        return all(guard(control, limits) for guard in self.guards)

    @property
    def reads(self) -> frozenset[str]:
        return frozenset[str]().union(*(guard.reads for guard in self.guards))

    @property
    def limits(self) -> frozenset[str]:
        return frozenset[str]().union(*(guard.limits for guard in self.guards))

    def __str__(self) -> str:
        return " and ".join(f"({guard})" for guard in self.guards)


def bound(condition: Guard, definition: Definition) -> Guard:
    """The same condition, with the limit that each counter declares where it names none."""
    match condition:
        case Below(counter, None):
            declared = {c.name: c.limit for c in definition.counters}
            return Below(counter, declared[counter]) if counter in declared else condition
        case Not(inner):
            return Not(bound(inner, definition))
        case AnyOf():
            return AnyOf(*(bound(inner, definition) for inner in condition.guards))
        case AllOf():
            return AllOf(*(bound(inner, definition) for inner in condition.guards))
        case _:
            return condition


def worded(condition: Guard) -> str:
    """A condition in words, also where a counter's own limit is meant and not named."""
    return str(condition).replace("< None", "< its limit")


def parts(condition: Guard) -> Iterator[Guard]:
    """The guards and facts that a condition is made of."""
    match condition:
        case Not(inner):
            yield from parts(inner)
        case AnyOf() | AllOf():
            for inner in condition.guards:
                yield from parts(inner)
        case _:
            yield condition


def holds(condition: Guard, facts: Mapping[str, str], layout: Layout, packed: int, state: str) -> bool:
    """Whether a condition holds in a configuration."""
    match condition:
        case Fact():
            return facts.get(condition.effect) in condition.outcomes
        case Not(inner):
            return not holds(inner, facts, layout, packed, state)
        case AnyOf():
            return any(holds(inner, facts, layout, packed, state) for inner in condition.guards)
        case AllOf():
            return all(holds(inner, facts, layout, packed, state) for inner in condition.guards)
        case _:
            return layout.answer(condition, packed, state)


def surely(
    condition: Guard, facts: Facts, answers: Iterable[Literal], definition: Definition, limits: Limits
) -> bool | None:
    """Whether a condition holds, as far as the outcomes and the answers of guards tell; None where they do not."""
    known = dict(facts)
    given = tuple(answers)

    def judge(part: Guard) -> bool | None:
        match part:
            case Fact():
                return known.get(part.effect) in part.outcomes
            case Not(inner):
                verdict = judge(inner)
                return None if verdict is None else not verdict
            case AnyOf():
                return _joined([judge(inner) for inner in part.guards], decisive=True)
            case AllOf():
                return _joined([judge(inner) for inner in part.guards], decisive=False)
            case _:
                for atom, answer in given:
                    if atom == part:
                        return answer
                return implied(part, given, definition, limits) if isinstance(part, Below) else None

    return judge(condition)


def _joined(verdicts: list[bool | None], *, decisive: bool) -> bool | None:
    if decisive in verdicts:
        return decisive
    return None if None in verdicts else not decisive


def unknown_names(condition: Guard, definition: Definition) -> Iterator[str]:
    """What a condition names that the machine does not have."""
    counters = {counter.name for counter in definition.counters}
    flags = {flag.name for flag in definition.flags}
    outcomes = {effect.name: effect.outcomes for effect in definition.effects}
    for part in parts(condition):
        if isinstance(part, Fact):
            if part.effect not in outcomes:
                yield f"the effect {part.effect!r}"
            else:
                yield from (
                    f"the outcome {outcome!r} of the effect {part.effect!r}"
                    for outcome in part.outcomes
                    if outcome not in outcomes[part.effect]
                )
            continue
        known = flags if isinstance(part, Flag) else counters if isinstance(part, Below) else counters | flags
        yield from (f"the counter or flag {name!r}" for name in sorted(part.reads - known))
        yield from (f"the limit {name!r}" for name in sorted(part.limits - set(definition.limits.model_fields)))
