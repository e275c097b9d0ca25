"""Machines that nobody designed."""

from hypothesis import strategies as st

from fsm_agent.machine import (
    AnyOf,
    Below,
    Counter,
    Definition,
    DefinitionError,
    EffectSpec,
    Flag,
    FlagSpec,
    Guard,
    Increment,
    LoopLimits,
    Not,
    Predicate,
    Reset,
    Row,
    Set,
    StateSpec,
    Update,
)

STATES = ("a", "b", "c")


class RandomLimits(LoopLimits):
    one: int = 1
    two: int = 2
    three: int = 3
    zero: int = 0


def _even(name: str) -> Predicate:
    return Predicate(f"{name} is even", lambda control, limits: control[name] % 2 == 0, frozenset([name]))


@st.composite
def definitions(draw: st.DrawFn, *, bounded: bool = False, predicates: bool = False) -> Definition:
    """A machine of two or three states, up to three effects, three counters and two flags.

    With `bounded`, every row that raises a counter has the guard that keeps it below its limit.
    """
    states = STATES[: draw(st.integers(2, 3))]
    effects = draw(st.lists(st.sampled_from(("e", "f", "g")), unique=True, max_size=3))
    specs = [
        EffectSpec(
            name,
            draw(st.sampled_from(states)),
            ("yes", "no", "late")[: draw(st.integers(1, 3))],
            requests=draw(st.integers(0, 2)),
        )
        for name in effects
    ]
    counters = [
        Counter(f"n{i}", draw(st.sampled_from(("one", "two", "three", "zero"))), initial=draw(st.integers(0, 1)))
        for i in range(draw(st.integers(0, 3)))
    ]
    flags = [FlagSpec(f"f{i}") for i in range(draw(st.integers(0, 2)))]
    inherits = {
        state: tuple(draw(st.lists(st.sampled_from(effects), unique=True))) if effects else () for state in states
    }
    rows: list[Row] = []
    for state in states:
        usable = [spec for spec in specs if spec.state == state or spec.name in inherits[state]]
        triggers = [f"t{i}" for i in range(draw(st.integers(1, 4)))]
        rows += [draw(_rows(state, t, states, usable, counters, flags, bounded, predicates)) for t in triggers]
    try:
        return Definition(
            name="random",
            initial="a",
            states=(*(StateSpec(s, inherits=inherits[s]) for s in states), StateSpec("end", final=True)),
            effects=tuple(specs),
            counters=tuple(counters),
            flags=tuple(flags),
            rows=tuple(rows),
            limits=RandomLimits,
        )
    except DefinitionError:
        from hypothesis import reject

        reject()


@st.composite
def _rows(draw, state, trigger, states, usable, counters, flags, bounded, predicates) -> Row:
    given = {}
    for spec in draw(st.lists(st.sampled_from(usable), unique_by=lambda s: s.name, max_size=2)) if usable else ():
        given[spec.name] = draw(st.lists(st.sampled_from(spec.outcomes), unique=True, min_size=1))
    upon = {}
    if usable and draw(st.integers(0, 9)) == 0:
        spec = draw(st.sampled_from(usable))
        upon[spec.name] = draw(st.lists(st.sampled_from(spec.outcomes), unique=True, min_size=1))
    updates: list[Update] = []
    guards: list[Guard] = []
    for counter in counters:
        match draw(st.sampled_from(("leave", "leave", "raise", "reset"))):
            case "raise":
                updates.append(Increment(counter.name))
                if bounded or draw(st.booleans()):
                    guards.append(Below(counter.name))
            case "reset":
                updates.append(Reset(counter.name))
    for flag in flags:
        match draw(st.sampled_from(("leave", "leave", "set", "reset"))):
            case "set":
                updates.append(Set(flag.name))
            case "reset":
                updates.append(Reset(flag.name))
    atoms: list[Guard] = [Flag(flag.name) for flag in flags]
    atoms += [Below(counter.name) for counter in counters]
    atoms += [Below(counter.name, limit) for counter in counters for limit in ("one", "three")]
    if predicates:
        atoms += [_even(counter.name) for counter in counters]
    if atoms:
        guards += draw(st.lists(_guards(atoms), max_size=2))
    end = draw(st.integers(0, 2)) == 0
    dest = "end" if end else draw(st.sampled_from(states))
    reason = draw(st.sampled_from(("good", "bad", "ugly"))) if end else None
    return Row(state, trigger, dest, given=given, upon=upon, when=guards, update=updates, reason=reason)


def _guards(atoms: list[Guard]) -> st.SearchStrategy[Guard]:
    atom = st.sampled_from(atoms)
    return st.one_of(atom, atom.map(Not), st.tuples(atom, atom.map(Not)).map(lambda pair: AnyOf(*pair)))
