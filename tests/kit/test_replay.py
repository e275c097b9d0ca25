"""A failure of a state machine is told wholly: its file and its program fail the same way, without Hypothesis."""

from __future__ import annotations

import datetime as dt
import json
import uuid
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import run_state_machine_as_test
from pydantic import BaseModel

from fsm_agent import AgentMachine
from fsm_agent.testing import (
    AgentStateMachine,
    ApiError,
    Drawn,
    Fault,
    Reply,
    Result,
    Stream,
    UserAct,
    load_scenario,
    replay_scenario,
    rule,
    thinking,
    tool_use,
)
from fsm_agent.testing.strategies import json_values
from fsm_agent.testing.written import Code, UnwritableError, from_json, to_json
from tests.kit.agents import sound_agent
from tests.kit.shops import Delivery, ShopMachine, Size, TrialMachine


class Model(BaseModel):
    size: Size
    day: dt.date


class Pair(NamedTuple):
    one: int
    other: tuple[int, ...]


VALUES: list[Any] = [
    *(None, True, 3, -1.5, "ünï", "\ud800", b"\xff\x00", [1, [2]], {"a": (1,)}, {"$a": 1, 2: {3}}, frozenset({1, 2})),
    *(dt.date(2020, 2, 29), dt.datetime(2020, 1, 1, tzinfo=dt.UTC), dt.time(1, 2, 3), Decimal("1.50"), Fraction(1, 3)),
    *(
        uuid.UUID(int=7),
        Path("a/b"),
        Size.SMALL,
        Delivery(Size.LARGE, 2),
        Model(size=Size.SMALL, day=dt.date(2020, 1, 1)),
    ),
    *(Pair(1, (2,)), float("inf"), Result(2), Result(0, 1), Drawn([1, (2,)]), UserAct("abort", steps=3)),
    Reply(thinking("hm"), "Yes.", tool_use("echo", {"x": "a"}), fault=Fault(2, "reset")),
    ApiError(429, "rate_limit_error", headers={"retry-after": "3"}),
    Stream(["message_start", {"text": "one"}, "eof"]),
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_value_is_read_as_it_was_written(value: Any):
    written = json.loads(json.dumps(to_json(value)))
    assert from_json(written) == value
    assert type(from_json(written)) is type(value)
    code = Code()
    text = code.of(written)
    names: dict[str, Any] = {}
    exec("\n".join(code.lines()), names)
    assert eval(text, names) == value


@given(value=json_values())
def test_any_json_value_is_written_as_itself(value: Any):
    assert from_json(json.loads(json.dumps(to_json(value)))) == value


@pytest.mark.parametrize("value", [object(), [lambda: 1], {"a": iter([])}], ids=["object", "function", "iterator"])
def test_what_has_no_written_form_is_refused(value: Any):
    with pytest.raises(UnwritableError, match="has no written form"):
        to_json(value)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def failure(kind: type[AgentStateMachine]) -> BaseException:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - whatever the machine raises
        run_state_machine_as_test(kind)
    return caught.value


def program_in(error: BaseException) -> str:
    note = next(note for note in error.__notes__ if note.startswith("The same again:"))
    return note.partition("\n\n")[2].rpartition("\n\nor:")[0]


@pytest.mark.parametrize("kind", [ShopMachine, TrialMachine])
def test_the_file_and_the_program_fail_as_the_state_machine_did(kind: type[AgentStateMachine], folder: Path):
    error = failure(kind)
    file = folder / ".fsm_agent" / "failures" / f"tests.kit.shops.{kind.__name__}.json"
    program = program_in(error)
    for again in (lambda: replay_scenario(file), lambda: kind.replay(file), lambda: exec(program, {})):
        with pytest.raises(type(error)) as caught:
            again()
        assert str(caught.value) == str(error)
        assert not any("The same again" in note for note in getattr(caught.value, "__notes__", ()))
    assert f"{kind.__name__}.replay([" in program


def test_steps_of_your_own_rules_are_in_the_file(folder: Path):
    failure(ShopMachine)
    words = json.loads((folder / ".fsm_agent" / "failures" / "tests.kit.shops.ShopMachine.json").read_text())
    assert words["state_machine"] == "tests.kit.shops:ShopMachine"
    names = [name for name, _ in words["steps"]]
    assert names[0] == "open_shop"
    counted = [given for name, given in words["steps"] if name == "count"]
    assert {names[given["delivery"]["$result"][0]] for given in counted} == {"deliver"}
    assert any(drawn[0] and drawn[1] > 4 for drawn in (given["data"]["$drawn"] for given in counted))


def test_arguments_are_written_as_they_were_before_the_rule_changed_them(folder: Path):
    failure(TrialMachine)
    words = json.loads((folder / ".fsm_agent" / "failures" / "tests.kit.shops.TrialMachine.json").read_text())
    notes = [given["notes"] for name, given in words["steps"] if name == "write_down"]
    assert len(notes) > 1
    assert all(notes), "the rule empties the list that it is given"


def test_a_replay_that_fails_nowhere_returns_the_machine(folder: Path):
    machine = ShopMachine.replay(
        [
            ("open_shop", {"stock": 1}),
            ("deliver", {"size": Size.SMALL, "pieces": 2, "both": True}),
            ("count", {"delivery": Result(1, 0), "data": Drawn([True, 9])}),
            ("model_calls", {"call": ("sell", {"pieces": 3})}),
            ("model_says", {"text": "Done."}),
        ]
    )
    assert machine.counted == [Delivery(Size.SMALL, 2)]
    assert machine.calls == [("sell", {"pieces": 3})]
    assert machine.over
    assert not (folder / ".fsm_agent").exists()


def test_steps_that_do_not_fit_are_refused_in_words(folder: Path):
    with pytest.raises(ValueError, match="Step 0 is 'fly'; TrialMachine has no such rule"):
        TrialMachine.replay([("fly", {})])
    with pytest.raises(ValueError, match="Step 1, model_says, cannot be done there"):
        TrialMachine.replay([("model_says", {"text": "Done."}), ("model_says", {"text": "Done."})])
    with pytest.raises(ValueError, match="draws more than the 1 values"):
        ShopMachine.replay(
            [
                ("open_shop", {"stock": 1}),
                ("deliver", {"size": Size.SMALL, "pieces": 2, "both": False}),
                ("count", {"delivery": Result(1), "data": Drawn([True])}),
            ]
        )


def test_a_file_of_another_kind_is_refused_in_words(folder: Path):
    failure(TrialMachine)
    file = folder / ".fsm_agent" / "failures" / "tests.kit.shops.TrialMachine.json"
    with pytest.raises(ValueError, match=r"has the steps of tests.kit.shops:TrialMachine; play them with replay_scen"):
        load_scenario(file)
    with pytest.raises(ValueError, match=r"has the steps of tests.kit.shops:TrialMachine, not of tests.kit.shops:Shop"):
        ShopMachine.replay(file)
    file.write_text(file.read_text().replace("tests.kit.shops", "tests.kit.gone"))
    with pytest.raises(ValueError, match=r"tests.kit.gone:TrialMachine cannot be imported .* Or call TrialMachine"):
        replay_scenario(file)
    file.write_text("{}")
    with pytest.raises(ValueError, match="has no steps of a state machine"):
        replay_scenario(file)


class Secretive(AgentStateMachine):
    """Its rule takes what cannot be written down."""

    def agent(self) -> AgentMachine:
        return sound_agent()

    @rule(what=st.builds(object))
    def take(self, what: object) -> None:
        raise RuntimeError("no")


Secretive.TestCase.settings = settings(Secretive.TestCase.settings, max_examples=20, database=None, derandomize=True)


def test_what_cannot_be_written_is_said_and_the_scenario_is_there_still(folder: Path):
    error = failure(Secretive)
    note = next(note for note in error.__notes__ if "without your own rules" in note)
    assert "has no written form" in note
    assert load_scenario(folder / ".fsm_agent" / "failures" / f"{__name__}.Secretive.json").prompt == "Go."
