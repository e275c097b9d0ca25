"""Abort, cancel, close or drop a run at each of its suspension points: nothing breaks, nothing is left."""

import pytest

from fsm_agent.testing.simulation import abort_points
from tests.drivers.disturbed import Disturbance, Disturbed
from tests.loop.scenarios import SCENARIOS


@pytest.mark.parametrize("how", ["abort", "cancel", "close", "drop"])
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_run_that_is_disturbed_at_some_points(name: str, how: Disturbance) -> None:
    report = abort_points(lambda: Disturbed(SCENARIOS[name], how), at_most=12 if how == "abort" else 5)
    assert report.ok, report


@pytest.mark.deep
@pytest.mark.parametrize("how", ["abort", "cancel", "close", "drop"])
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_run_that_is_disturbed_at_any_point(name: str, how: Disturbance) -> None:
    report = abort_points(lambda: Disturbed(SCENARIOS[name], how))
    assert report.ok, report


FEW = [
    "one tool",
    "truncated, then continued",
    "a summary that is too long itself",
    "a stop hook that objects once",
    "overload, then another model",
    "a cut stream that is resumed",
    "a pause",
    "nothing visible",
    "a hook that stops after a tool",
    "an output that does not fit",
    "the spend limit",
    "an abort while a tool runs",
]


@pytest.mark.slow
@pytest.mark.parametrize("name", FEW)
def test_a_run_that_is_aborted_at_every_point(name: str) -> None:
    report = abort_points(lambda: Disturbed(SCENARIOS[name], "abort"))
    assert report.ok, report
