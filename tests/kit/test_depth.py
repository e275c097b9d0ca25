"""A search of scenarios prefers runs that go deep."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from fsm_agent.testing import Reply, Scenario, check_scenario, scenarios, tool_use
from tests.kit.agents import sound_agent


def test_the_search_is_told_how_many_different_rows_fired(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[float, str]] = []
    monkeypatch.setattr("fsm_agent.testing.playing.LONG_SEARCH", 1)
    monkeypatch.setattr("hypothesis.target", lambda value, *, label: told.append((value, label)))

    @settings(max_examples=3, database=None)
    @given(scenario=scenarios(sound_agent))
    def look(scenario: Scenario) -> None:
        check_scenario(sound_agent, Scenario([Reply(tool_use("echo", {"x": "a"})), Reply("Done.")]))

    look()
    # context_ready twice, tools_requested, next_turn, response_ended, complete
    assert set(told) == {(5.0, "different rows that fired")}


def test_two_runs_in_one_example_are_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[Any] = []
    monkeypatch.setattr("fsm_agent.testing.playing.LONG_SEARCH", 1)

    @settings(max_examples=3, database=None)
    @given(scenario=scenarios(sound_agent))
    def look(scenario: Scenario) -> None:
        runs.extend(check_scenario(sound_agent, scenario).result.reason for _ in range(2))

    look()
    assert len(runs) >= 6


def test_a_short_search_is_not_led(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []
    monkeypatch.setattr("hypothesis.target", lambda *_, **more: told.append(more))

    @settings(max_examples=3, database=None)
    @given(scenario=scenarios(sound_agent))
    def look(scenario: Scenario) -> None:
        check_scenario(sound_agent, scenario)

    look()
    assert told == []


def test_outside_a_test_nothing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []
    monkeypatch.setattr("fsm_agent.testing.playing.LONG_SEARCH", 1)
    monkeypatch.setattr("hypothesis.target", lambda *_, **more: told.append(more))
    assert check_scenario(sound_agent, Scenario()).result.reason == "completed"
    assert told == []
