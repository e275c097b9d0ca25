"""What a session has covered, and what there was to cover."""

from __future__ import annotations

import json

import pytest

from fsm_agent.machine import AGENT_LOOP
from fsm_agent.testing import coverage
from fsm_agent.testing.coverage import Coverage, possible_pairs, roughly_possible_pairs
from fsm_agent.verify import transition_pairs
from tests.loop.test_extension import APPROVAL
from tests.verify.sketch import SKETCH


def test_pairs_that_only_a_counter_rules_out_are_not_missed():
    exact, rough = possible_pairs(SKETCH), roughly_possible_pairs(SKETCH)
    assert exact is not None
    assert set(exact) == set(transition_pairs(SKETCH))
    # A call of tools resets the retries, so nobody gives up right after it.
    assert set(rough) - set(exact) == {(("tools", "next_turn"), ("calling", "give_up"))}
    seen = Coverage()
    seen.add_trace(SKETCH, ["called", "next_turn", "refuse"])
    report = seen.reports()[0]
    assert report.exact
    assert "tools.next_turn then give_up" not in report.pairs.missing
    assert (report.pairs.seen, report.pairs.all) == (2, len(exact))


def test_the_pairs_of_several_machines_are_found_out_only_as_far_as_time_allows(monkeypatch: pytest.MonkeyPatch):
    seen = Coverage()
    for definition, runs in ((APPROVAL, 1), (AGENT_LOOP, 2)):
        for _ in range(runs):
            seen.add_trace(definition, ["context_ready", "abort"])
    assert {report.machine: report.exact for report in seen.reports()} == {
        "agent_loop_with_approval": False,
        "agent_loop": True,
    }
    monkeypatch.setattr(coverage, "MOST_PAIRS", 1_000)
    assert all(report.exact for report in seen.reports())


def test_what_another_process_has_seen_is_added():
    seen, other = Coverage(), Coverage()
    seen.add_trace(AGENT_LOOP, ["context_ready", "abort"])
    other.add_trace(AGENT_LOOP, ["abort"])
    other.add_trace(SKETCH, ["called"])
    told = json.loads(json.dumps(other.as_json()))
    seen.merge(told)
    alone = Coverage()
    alone.merge(told)
    assert [(report.machine, report.runs, report.rows.seen) for report in seen.reports()] == [
        ("agent_loop", 2, 3),
        (SKETCH.name, 1, 1),
    ]
    # A machine that is known only from what was told has no definition that the checker could look at.
    assert {report.machine: report.exact for report in alone.reports()} == {"agent_loop": True, SKETCH.name: False}
    assert "agent_loop: rows 1/48" in str(alone.reports()[0])
