"""Contracts: what a machine should do, said a second time and apart from its rows.

A table that ends every run, without a hole or a dead row, may still be the wrong one: a row that leads to `completed`
where it should lead to `model_error` breaks no rule of form. So the intent is written down twice, as in double-entry
book-keeping: once as rows, once as a few short lines here, and the checker compares the two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from fsm_agent.machine import Control, Definition, Guard, Increment, Row, Set
from fsm_agent.verify.conditions import AllOf, unknown_names, worded

Names: TypeAlias = str | Iterable[str]
"""Several names: words in one string, or a list of them."""


class ContractError(ValueError):
    """A contract that speaks of something the machine does not have."""


def names(value: Names) -> tuple[str, ...]:
    return tuple(value.split()) if isinstance(value, str) else tuple(str(name) for name in value)


def _when(value: Guard | Sequence[Guard]) -> Guard | None:
    guards = tuple(value) if isinstance(value, Sequence) else (value,)
    if not guards:
        return None
    return guards[0] if len(guards) == 1 else AllOf(*guards)


@dataclass(frozen=True, slots=True, init=False)
class Answers:
    """Which triggers may follow each outcome of an effect, and all of them do.

    `triggers` has one entry for each outcome that the effect may have. `state` is where the outcome is answered: left
    out, the state that performs the effect, and then the entry is also the list of its outcomes.

    >>> print(Answers("hooks", {"pass": "complete", "block": "stop_hook_blocking stop_hook_limit"}))
    the outcomes of hooks are answered by complete, stop_hook_blocking, stop_hook_limit
    """

    effect: str
    triggers: Mapping[str, tuple[str, ...]]
    state: str | None

    def __init__(self, effect: str, triggers: Mapping[str, Names], *, state: str | None = None) -> None:
        object.__setattr__(self, "effect", str(effect))
        object.__setattr__(self, "triggers", {str(outcome): names(value) for outcome, value in triggers.items()})
        object.__setattr__(self, "state", None if state is None else str(state))

    @property
    def subject(self) -> tuple[str, ...]:
        return "answers", self.effect, self.state or ""

    def __str__(self) -> str:
        every = ", ".join(dict.fromkeys(name for value in self.triggers.values() for name in value))
        where = f" in {self.state}" if self.state else ""
        return f"the outcomes of {self.effect} are answered{where} by {every}"

    def unknown(self, definition: Definition) -> Iterator[str]:
        effects = {effect.name: effect for effect in definition.effects}
        if self.effect not in effects:
            yield f"the effect {self.effect!r}"
            return
        for outcome in self.triggers:
            if outcome not in effects[self.effect].outcomes:
                yield f"the outcome {outcome!r} of the effect {self.effect!r}"
        yield from _unknown_triggers((name for value in self.triggers.values() for name in value), definition)
        if self.state is not None:
            yield from _unknown_states([self.state], definition)


@dataclass(frozen=True, slots=True, init=False)
class Enters:
    """By which triggers a state is entered, or a run ends for a reason; all of them do; and what must hold then.

    >>> from fsm_agent.machine import Below, Not
    >>> print(Enters("max_turns", "turn_limit", when=Not(Below("turn", "max_turns"))))
    max_turns is entered by turn_limit, only when not (turn < max_turns)
    """

    target: str
    by: tuple[str, ...]
    when: Guard | None

    def __init__(self, target: str, by: Names, *, when: Guard | Sequence[Guard] = ()) -> None:
        object.__setattr__(self, "target", str(target))
        object.__setattr__(self, "by", names(by))
        object.__setattr__(self, "when", _when(when))

    @property
    def subject(self) -> tuple[str, ...]:
        return "enters", self.target

    def __str__(self) -> str:
        return f"{self.target} is entered by {', '.join(self.by)}" + _only_when(self.when)

    def unknown(self, definition: Definition) -> Iterator[str]:
        if self.target not in {state.name for state in definition.states} | set(definition.reasons):
            yield f"the state or terminal reason {self.target!r}"
        yield from _unknown_triggers(self.by, definition)
        yield from _unknown_in(self.when, definition)


@dataclass(frozen=True, slots=True, init=False)
class Fires:
    """What must hold when one of these triggers fires, in whatever state."""

    triggers: tuple[str, ...]
    when: Guard

    def __init__(self, triggers: Names, *, when: Guard | Sequence[Guard]) -> None:
        object.__setattr__(self, "triggers", names(triggers))
        object.__setattr__(self, "when", _when(when) or AllOf())

    @property
    def subject(self) -> tuple[str, ...]:
        return "fires", *self.triggers

    def __str__(self) -> str:
        return f"{', '.join(self.triggers)} fires" + _only_when(self.when)

    def unknown(self, definition: Definition) -> Iterator[str]:
        yield from _unknown_triggers(self.triggers, definition)
        yield from _unknown_in(self.when, definition)


@dataclass(frozen=True, slots=True, init=False)
class Performs:
    """What must hold when an effect is performed: outcomes known before it, counters, flags."""

    effect: str
    when: Guard

    def __init__(self, effect: str, *, when: Guard | Sequence[Guard]) -> None:
        object.__setattr__(self, "effect", str(effect))
        object.__setattr__(self, "when", _when(when) or AllOf())

    @property
    def subject(self) -> tuple[str, ...]:
        return "performs", self.effect

    def __str__(self) -> str:
        return f"{self.effect} is performed" + _only_when(self.when)

    def unknown(self, definition: Definition) -> Iterator[str]:
        yield from _unknown_effects([self.effect], definition)
        yield from _unknown_in(self.when, definition)


@dataclass(frozen=True, slots=True, init=False)
class Counts:
    """Which triggers raise a counter (or set a flag), and which put it back: these, all of them, and no others."""

    name: str
    raised_by: tuple[str, ...]
    reset_by: tuple[str, ...]

    def __init__(self, name: str, raised_by: Names, reset_by: Names = ()) -> None:
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "raised_by", names(raised_by))
        object.__setattr__(self, "reset_by", names(reset_by))

    @property
    def subject(self) -> tuple[str, ...]:
        return "counts", self.name

    def __str__(self) -> str:
        reset = f" and put back by {', '.join(self.reset_by)}" if self.reset_by else " and never put back"
        return f"{self.name} is raised by {', '.join(self.raised_by) or 'nothing'}{reset}"

    def unknown(self, definition: Definition) -> Iterator[str]:
        if self.name not in definition.initial_control().index:
            yield f"the counter or flag {self.name!r}"
        yield from _unknown_triggers((*self.raised_by, *self.reset_by), definition)

    def faults(self, definition: Definition) -> Iterator[str]:
        """Where the rows say something else."""
        for row in definition.rows:
            mine = [update for update in row.update if update.name == self.name]
            up = any(isinstance(update, (Increment, Set)) for update in mine)
            down = any(not isinstance(update, (Increment, Set)) for update in mine)
            if up != (row.trigger in self.raised_by):
                yield f"the row «{row}» {'raises' if up else 'does not raise'} {self.name}"
            if down != (row.trigger in self.reset_by):
                yield f"the row «{row}» {'puts' if down else 'does not put'} {self.name} back"


@dataclass(frozen=True, slots=True, init=False)
class Once:
    """After each end of an effect, exactly one of these actions is done before it is performed again or the run ends.

    `outcomes` are those that need it; left out, all. For the loop: each message of the model is kept, kept in part, or
    discarded.
    """

    effect: str
    actions: tuple[str, ...]
    outcomes: tuple[str, ...]

    def __init__(self, effect: str, actions: Names, *, outcomes: Names = ()) -> None:
        object.__setattr__(self, "effect", str(effect))
        object.__setattr__(self, "actions", names(actions))
        object.__setattr__(self, "outcomes", names(outcomes))

    @property
    def subject(self) -> tuple[str, ...]:
        return "once", self.effect

    def __str__(self) -> str:
        return f"after each {self.effect}, exactly one of {', '.join(self.actions)} is done"

    def unknown(self, definition: Definition) -> Iterator[str]:
        yield from _unknown_effects([self.effect], definition)
        yield from (f"the action {name!r}" for name in self.actions if name not in definition.actions)


@dataclass(frozen=True, slots=True, init=False)
class Never:
    """Once this outcome of an effect is known (or this trigger has fired), none of these effects and triggers follows.

    `until` names triggers after which they may again.

    >>> print(Never("response context", after=("hooks", "aborted")))
    response, context never follow hooks: aborted
    """

    what: tuple[str, ...]
    after: str | tuple[str, str]
    until: tuple[str, ...]

    def __init__(self, what: Names, *, after: str | tuple[str, str], until: Names = ()) -> None:
        object.__setattr__(self, "what", names(what))
        object.__setattr__(self, "after", after if isinstance(after, tuple) else str(after))
        object.__setattr__(self, "until", names(until))

    @property
    def subject(self) -> tuple[str, ...]:
        return "never", *self.what, *names(self.after)

    def __str__(self) -> str:
        after = ": ".join(self.after) if isinstance(self.after, tuple) else self.after
        until = f" until {', '.join(self.until)}" if self.until else ""
        return f"{', '.join(self.what)} never follow {after}{until}"

    def unknown(self, definition: Definition) -> Iterator[str]:
        known = {effect.name for effect in definition.effects} | set(definition.triggers)
        yield from (f"the effect or trigger {name!r}" for name in self.what if name not in known)
        yield from _unknown_triggers(self.until, definition)
        if isinstance(self.after, tuple):
            effect, outcome = self.after
            known_outcomes = {e.name: e.outcomes for e in definition.effects}
            if outcome not in known_outcomes.get(effect, ()):
                yield f"the outcome {outcome!r} of the effect {effect!r}"
        else:
            yield from _unknown_triggers([self.after], definition)


@dataclass(frozen=True, slots=True)
class Firing:
    """A row that fires, as an `Always` sees it."""

    before: Control
    facts: Mapping[str, str]
    row: Row
    after: Control


@dataclass(frozen=True, slots=True)
class Always:
    """Something that holds whenever a row fires.

    `holds` gets a `Firing` and looks at no counters or flags but those in `reads`. (A counter is only counted up to the
    largest of its bounds.)
    """

    name: str
    holds: Callable[[Firing], bool]
    reads: frozenset[str] = field(default=frozenset())

    @property
    def subject(self) -> tuple[str, ...]:
        return "always", self.name

    def __str__(self) -> str:
        return self.name

    def unknown(self, definition: Definition) -> Iterator[str]:
        known = definition.initial_control().index
        yield from (f"the counter or flag {name!r}" for name in sorted(self.reads) if name not in known)


Contract: TypeAlias = Answers | Enters | Fires | Performs | Counts | Once | Never | Always


def amended(contracts: Iterable[Contract], *changes: Contract) -> tuple[Contract, ...]:
    """The same contracts, where those of `changes` take the place of the ones on the same subject."""
    by_subject = {contract.subject: contract for contract in contracts}
    by_subject.update({contract.subject: contract for contract in changes})
    return tuple(by_subject.values())


def checked_names(contracts: Iterable[Contract], definition: Definition) -> Iterator[str]:
    """One sentence for each thing that a contract speaks of and the machine does not have."""
    for contract in contracts:
        for thing in contract.unknown(definition):
            yield (
                f"The contract «{contract}» names {thing}, which the machine {definition.name!r} does not have; "
                "correct the name, or leave the contract out."
            )


def _only_when(condition: Guard | None) -> str:
    return "" if condition is None else f", only when {worded(condition)}"


def _unknown_triggers(wanted: Iterable[str], definition: Definition) -> Iterator[str]:
    yield from (f"the trigger {name!r}" for name in dict.fromkeys(wanted) if name not in definition.triggers)


def _unknown_states(wanted: Iterable[str], definition: Definition) -> Iterator[str]:
    known = {state.name for state in definition.states}
    yield from (f"the state {name!r}" for name in wanted if name not in known)


def _unknown_effects(wanted: Iterable[str], definition: Definition) -> Iterator[str]:
    known = {effect.name for effect in definition.effects}
    yield from (f"the effect {name!r}" for name in wanted if name not in known)


def _unknown_in(condition: Guard | None, definition: Definition) -> Iterator[str]:
    if condition is not None:
        yield from unknown_names(condition, definition)
