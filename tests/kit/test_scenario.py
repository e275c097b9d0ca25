"""A scenario is a value: printed as a program, saved, read again, and played the same each time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given

from fsm_agent.testing import (
    ApiError,
    Chunking,
    Fault,
    HookAct,
    Reply,
    Scenario,
    Schedule,
    Stream,
    ToolAct,
    UserAct,
    check_scenario,
    play_scenario,
    replay_scenario,
    scenarios,
    thinking,
    tool_use,
)
from fsm_agent.testing.scenario import load_scenario, program
from fsm_agent.testing.strategies.answers import PAUSED
from tests.kit.agents import sound_agent

EVERYTHING = Scenario(
    [
        Reply(
            thinking("hm"), "Let me see.", tool_use("echo", {"x": "a"}), tool_use("write"), usage={"output_tokens": 3}
        ),
        ApiError(429, "rate_limit_error", headers={"retry-after": "3"}),
        Reply("half", fault=Fault(2, "reset")),
        Stream(["message_start", {"text": "one"}, {"message_delta": "end_turn"}, "message_stop"]),
        Reply("<summary>s</summary>", when="summary"),
    ],
    prompt="Do it.",
    tools={"write": [ToolAct(raises="ValueError", seconds=2.0, progress=["half"])]},
    stop_hooks=[HookAct("block")],
    permissions=[HookAct("allow")],
    before_tool=[HookAct("note", "careful")],
    after_tool=[HookAct("note", seconds=1.0)],
    system=[HookAct(seconds=1.0)],
    acts=[UserAct("send", request=1, steps=3, text="and hurry")],
    limits={"max_turns": 5},
    history=[{"role": "user", "content": "Hi."}, {"role": "assistant", "content": [{"type": "text", "text": "Yes?"}]}],
    chunking=Chunking(text=2),
    schedule=Schedule([(3, 1)]),
)


def test_json_and_back_gives_the_same_scenario():
    assert Scenario.from_json(json.loads(json.dumps(EVERYTHING.as_json()))) == EVERYTHING


def test_its_repr_is_the_program_that_makes_it():
    assert eval(repr(EVERYTHING)) == EVERYTHING


@given(scenario=scenarios(sound_agent))
def test_every_generated_scenario_can_be_saved_and_pasted(scenario: Scenario):
    assert Scenario.from_json(json.loads(json.dumps(scenario.as_json()))) == scenario
    assert eval(repr(scenario)) == scenario


def test_everything_in_it_happens():
    played = check_scenario(sound_agent, EVERYTHING)
    assert played.result.reason == "completed"
    told = played.transcript
    assert "write finished with an error" in told
    assert "write tells half" in told
    assert "and hurry" in told
    assert "careful" in told
    assert "stop_hook_blocking" in told
    assert played.calls[:2] == [("echo", {"x": "a"}), ("write", {})]


def test_playing_twice_is_the_same():
    assert play_scenario(sound_agent, EVERYTHING).events == play_scenario(sound_agent, EVERYTHING).events


def test_an_abort_a_close_and_a_cancel_end_the_run_wherever_they_come():
    script = [Reply(tool_use("hang"), tool_use("echo", {"x": "a"}))]
    for act in (UserAct("abort", steps=9), UserAct("close", steps=9), UserAct("cancel", seconds=0.5)):
        assert str(check_scenario(sound_agent, Scenario(script, acts=[act])).result.reason).startswith("aborted")


def too_long(played: object) -> None:
    raise AssertionError("too long")


def test_a_failure_tells_a_program_and_a_file_that_fail_again(tmp_path: Path):
    file = tmp_path / "failures" / "one.json"
    scenario = Scenario([Reply("hi")])
    with pytest.raises(AssertionError, match="too long") as caught:
        check_scenario(sound_agent, scenario, too_long, name="tests.kit.agents:sound_agent", save=file)
    note = caught.value.__notes__[-1]
    assert program(scenario, "tests.kit.agents:sound_agent") in note
    assert load_scenario(file) == scenario
    with pytest.raises(AssertionError, match="too long"):
        replay_scenario(file, sound_agent, too_long)


def test_the_program_runs_when_it_is_pasted(capsys: pytest.CaptureFixture[str]):
    text = program(EVERYTHING, "tests.kit.agents:sound_agent")
    exec(text, {})
    assert text.splitlines()[1] == "from tests.kit.agents import sound_agent"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"format": 2}, "has format 2; this version reads format 1"),
        ({"scripts": []}, "has no scripts"),
        ({"tools": {"echo": [{"shouts": True}]}}, "cannot be read"),
    ],
)
def test_what_is_no_scenario_is_refused_in_words(data: dict, message: str, tmp_path: Path):
    file = tmp_path / "scenario.json"
    file.write_text(json.dumps(data))
    with pytest.raises(ValueError, match=message):
        load_scenario(file)


def test_a_stand_in_for_a_tool_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="stands in for the tools rm; the machine has echo, write, fetch, hang"):
        play_scenario(sound_agent, Scenario(tools={"rm": [ToolAct()]}))


def test_a_paused_reply_that_comes_to_nothing_leaves_no_call_that_waits():
    """Found by the strategies: the nudge after an empty reply left the call of the API's own tool in the history."""
    for after in (Reply(stop="end_turn"), Reply("I see.")):
        check_scenario(
            sound_agent,
            Scenario([PAUSED, after, Reply(tool_use("fetch"))], stop_hooks=[HookAct("block")]),
        )
