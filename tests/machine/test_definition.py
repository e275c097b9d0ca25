"""A table that cannot be run is refused at construction, in a whole sentence."""

import pytest

from fsm_agent.machine import (
    AGENT_LOOP,
    AnyOf,
    Below,
    Control,
    Counter,
    Definition,
    DefinitionError,
    EffectSpec,
    Flag,
    FlagSpec,
    Increment,
    LoopLimits,
    Not,
    Predicate,
    Reset,
    Row,
    Set,
    StateSpec,
)


def small(**changes: object) -> Definition:
    """A machine that works, but for the changes."""
    parts: dict[str, object] = {
        "name": "small",
        "initial": "work",
        "states": (StateSpec("work"), StateSpec("end", final=True)),
        "effects": (EffectSpec("look", "work", ("good", "bad")),),
        "counters": (Counter("tries", "max_turns"),),
        "flags": (FlagSpec("warned"),),
        "rows": (
            Row("work", "again", "work", given={"look": "bad"}, when=Below("tries"), update=Increment("tries")),
            Row("work", "done", "end", reason="done"),
        ),
        "actions": ("note",),
    }
    return Definition(**(parts | changes))  # type: ignore[arg-type]


def with_row(*rows: Row) -> Definition:
    return small(rows=(*small().rows[:1], *rows, *small().rows[1:]))


WRONG = {
    "source": (Row("wrok", "x", "end", reason="r"), "unknown source 'wrok'; the states are end, work."),
    "dest": (Row("work", "x", "ned", given={"look": "bad"}), "unknown dest 'ned'"),
    "effect": (Row("work", "x", "end", given={"lok": "bad"}, reason="r"), "unknown effect 'lok' in given"),
    "effect in upon": (Row("work", "x", "end", upon={"lok": "bad"}, reason="r"), "unknown effect 'lok' in upon"),
    "outcome": (Row("work", "x", "end", given={"look": "ugly"}, reason="r"), "its outcomes are bad, good."),
    "counter in a guard": (Row("work", "x", "end", when=Below("trys", 1), reason="r"), "unknown counter 'trys'"),
    "flag in a guard": (Row("work", "x", "end", when=Flag("warnd"), reason="r"), "unknown flag 'warnd'"),
    "inside Not": (Row("work", "x", "end", when=Not(Flag("warnd")), reason="r"), "unknown flag 'warnd'"),
    "inside AnyOf": (Row("work", "x", "end", when=AnyOf(Flag("w"), Flag("warned")), reason="r"), "unknown flag 'w'"),
    "limit in a guard": (
        Row("work", "x", "end", when=Below("tries", "max_tries"), reason="r"),
        "unknown limit 'max_tr",
    ),
    "counter raised": (
        Row("work", "x", "work", when=Flag("warned"), update=Increment("n")),
        "raises the unknown counte",
    ),
    "flag set": (Row("work", "x", "work", when=Flag("warned"), update=Set("n")), "sets the unknown flag 'n'"),
    "reset": (
        Row("work", "x", "work", when=Flag("warned"), update=Reset("n")),
        "updates the unknown counter or flag 'n'",
    ),
    "action": (Row("work", "x", "work", when=Flag("warned"), do="sing"), "unknown action 'sing'; the actions are note"),
    "no reason": (Row("work", "x", "end", when=Flag("warned")), "without a terminal reason; give it reason=..."),
    "reason not final": (
        Row("work", "x", "work", when=Flag("warned"), reason="r"),
        "gives a terminal reason but enters",
    ),
    "leaves the end": (Row("end", "x", "work"), "leaves the final state 'end'"),
    "trigger twice": (
        Row("work", "again", "end", when=Flag("warned"), reason="r"),
        "'again' occurs twice in the state",
    ),
    "not a guard": (Row("work", "x", "end", when="warned", reason="r"), "is not a guard: use Below, Flag"),  # type: ignore[arg-type]
    "not a bool": (
        Row("work", "x", "end", when=Predicate("late", lambda c, _: c["tries"], frozenset({"tries"})), reason="r"),  # type: ignore[arg-type,return-value]
        "The guard late of the row «work --x--> end: r» returned 0, which is not a bool",
    ),
    "raising guard": (
        Row("work", "x", "end", when=Predicate("late", lambda c, _: bool(c["x"]), frozenset()), reason="r"),
        "raised KeyError('x'); a guard is a pure predicate",
    ),
    "shadowed": (
        Row("work", "x", "work", given={"look": "bad"}, when=(Below("tries"), Flag("warned"))),
        "can never fire: the row «work --again--> work» above it takes every case",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_row_is_refused_with_a_sentence_that_names_it(name: str) -> None:
    row, sentence = WRONG[name]
    with pytest.raises(DefinitionError) as error:
        with_row(row)
    assert sentence in str(error.value)


WRONG_PARTS = {
    "initial": ({"initial": "wrk"}, "initial state 'wrk' is not declared"),
    "no final state": ({"states": (StateSpec("work"), StateSpec("end"))}, "has no final state"),
    "state twice": ({"states": (StateSpec("work"), StateSpec("work"), StateSpec("end", final=True))}, "declared twice"),
    "counter as a flag": ({"flags": (FlagSpec("tries"), FlagSpec("warned"))}, "'tries' is declared twice"),
    "limit of a counter": ({"counters": (Counter("tries", "max_tries"),)}, "unknown limit 'max_tries'"),
    "state of an effect": ({"effects": (EffectSpec("look", "wrok", ("good", "bad")),)}, "unknown state 'wrok'"),
    "no outcome": ({"effects": (EffectSpec("look", "work", ()),)}, "declares no outcome"),
    "inherits": (
        {"states": (StateSpec("work", inherits=("lok",)), StateSpec("end", final=True))},
        "inherits the unknown effect 'lok'",
    ),
}


@pytest.mark.parametrize("name", WRONG_PARTS)
def test_a_wrong_part_is_refused_with_a_sentence_that_names_it(name: str) -> None:
    changes, sentence = WRONG_PARTS[name]
    with pytest.raises(DefinitionError) as error:
        small(**changes)  # type: ignore[arg-type]
    assert sentence in str(error.value)


def test_an_effect_of_another_state_must_be_inherited() -> None:
    states = (StateSpec("work"), StateSpec("more"), StateSpec("end", final=True))
    rows = (*small().rows, Row("more", "x", "end", given={"look": "bad"}, reason="r"))
    with pytest.raises(DefinitionError, match="belongs to the state 'work' and is not inherited by 'more'"):
        small(states=states, rows=rows)
    heir = StateSpec("more", inherits=("look",))
    assert small(states=(states[0], heir, states[2]), rows=rows).state("more").inherits == ("look",)


def test_every_fault_is_told_at_once() -> None:
    with pytest.raises(DefinitionError) as error:
        with_row(Row("work", "x", "ned", given={"lok": "bad"}, when=Flag("warnd")))
    assert len(str(error.value).splitlines()) == 3


def test_a_row_below_another_with_the_same_facts_but_a_narrower_guard_is_allowed() -> None:
    with_row(Row("work", "given_up", "end", given={"look": "bad"}, reason="given_up"))


def test_a_row_upon_known_facts_does_not_hide_a_row_that_asks() -> None:
    machine = small(
        rows=(
            Row("work", "stop", "end", upon={"look": "bad"}, reason="stopped"),
            Row("work", "done", "end", given={"look": "good"}, reason="done"),
        )
    )
    assert machine.reasons == ("stopped", "done")


def test_below_takes_the_limit_that_its_counter_declares() -> None:
    assert small().rows[0].when == (Below("tries", "max_turns"),)


def test_guards_and_updates_are_data_and_callable() -> None:
    control = Control("work", (2, 0), {"tries": 0, "warned": 1})
    guard = AnyOf(Below("tries", "max_turns"), Flag("warned"))
    assert guard(control, {"max_turns": 3}) is True
    assert guard(control, {"max_turns": 2}) is False
    assert guard(control, {"max_turns": None}) is True
    assert Not(guard)(control, {"max_turns": 2}) is True
    assert guard.reads == {"tries", "warned"}
    assert guard.limits == {"max_turns"}
    assert str(Not(Below("tries", "max_turns"))) == "not (tries < max_turns)"
    assert [str(update) for update in (Increment("a"), Reset("b"), Set("c"))] == ["a + 1", "b reset", "c set"]


def test_a_definition_is_changed_by_making_another() -> None:
    changed = AGENT_LOOP.without_row("recovering", "empty_response_nudge")
    assert len(changed.rows) == len(AGENT_LOOP.rows) - 1
    with pytest.raises(KeyError, match="no row recovering --empty_response_nudge-->"):
        changed.row("recovering", "empty_response_nudge")
    assert AGENT_LOOP.row("recovering", "empty_response_nudge").dest == "preprocess"


def test_rows_are_inserted_before_a_named_one() -> None:
    row = Row(
        "recovering", "give_up", "terminal", given={"response": "empty"}, when=Flag("escalated"), reason="gave_up"
    )
    changed = AGENT_LOOP.with_rows(row, before="empty_response_nudge")
    triggers = [row.trigger for row in changed.rows_from("recovering")]
    assert triggers.index("give_up") + 1 == triggers.index("empty_response_nudge")
    assert "gave_up" in changed.reasons


def test_replacing_a_row_that_is_not_there_is_an_error() -> None:
    with pytest.raises(DefinitionError, match="no row recovering --nothing-->"):
        AGENT_LOOP.replace_row(Row("recovering", "nothing", "preprocess"))


def test_limits_are_checked() -> None:
    with pytest.raises(ValueError, match="max_turns"):
        LoopLimits(max_turns=0)
    with pytest.raises(ValueError, match="max_turn"):
        LoopLimits(max_turn=3)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="frozen"):
        LoopLimits().max_turns = 3


def test_fallbacks_are_bounded_by_the_models_that_there_are() -> None:
    assert LoopLimits().resolved(fallback_models=2)["max_fallbacks"] == 2
    assert LoopLimits(max_fallbacks=5).resolved(fallback_models=1)["max_fallbacks"] == 1
    assert LoopLimits(max_turns=None).resolved()["max_turns"] is None
