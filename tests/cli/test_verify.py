"""`fsm-agent verify`: a report that a person enjoys reading, one object of JSON for programs, and the exit code."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from fsm_agent.cli.verifying import report_view
from fsm_agent.machine import Below, Counter, Definition, EffectSpec, Increment, Row, StateSpec
from fsm_agent.verify import Report, check
from tests.cli.scenes import as_text
from tests.cli.served import Caller

STOP = Row("ask", "stop", "end", given={"answer": "no"}, reason="gave_up")


def asking(*rows: Row) -> Definition:
    """A machine that asks up to three times."""
    again = Row("ask", "again", "ask", given={"answer": "no"}, when=Below("asked"), update=Increment("asked"))
    done = Row("ask", "thank", "end", given={"answer": "yes"}, reason="completed")
    return Definition(
        name="asking",
        initial="ask",
        states=(StateSpec("ask"), StateSpec("end", final=True)),
        effects=(EffectSpec("answer", "ask", ("yes", "no"), requests=1),),
        counters=(Counter("asked", 2),),
        flags=(),
        rows=(done, again, *rows),
    )


OWN = """
from tests.cli.test_verify import STOP, asking
GOOD, BAD = asking(STOP), asking()
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "own_asking.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "own_asking", raising=False)
    return "own_asking"


def test_a_proved_machine_is_ok(fsm_agent: Caller, own: str):
    done = fsm_agent("verify", f"{own}:GOOD")
    assert done.code == 0
    assert done.out.startswith("asking: ok\n")
    assert not [line for line in done.out.splitlines() if line != line.rstrip()]


def test_a_machine_with_a_hole_is_not_and_the_run_into_it_is_shown(fsm_agent: Caller, own: str):
    done = fsm_agent("verify", f"{own}:BAD")
    assert done.code == 1
    assert done.out.startswith("asking: not ok\n")
    assert "✗ In ask with answer: no no row fires." in done.out


def test_with_json_it_prints_one_object(fsm_agent: Caller, own: str):
    done = fsm_agent("verify", f"{own}:BAD", "--json")
    report = json.loads(done.out)
    assert done.code == 1
    assert report["ok"] is False
    assert report["reasons"]["completed"]["reachable"] is True
    assert len(report["holes"]) == 1
    promised = {
        "ok", "configurations", "edges", "reasons", "rows", "holes", "dead_rows", "cycles", "certificate", "contracts",
        "max_requests_per_turn", "max_requests_per_run", "seconds",
    }  # fmt: skip
    assert promised <= report.keys()


def test_the_limits_of_an_agent_are_the_ones_that_count(
    fsm_agent: Caller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "own_agent.py").write_text(
        "from fsm_agent import AgentMachine, Deps, LoopLimits\n"
        "agent = AgentMachine(model='claude-sonnet-5-5', limits=LoopLimits(max_turns=7), "
        "deps=Deps(call_model=lambda request: None))\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    asked: list[object] = []
    good = check(asking(STOP))

    def checked(_: Definition, limits: object) -> Report:
        asked.append(limits)
        return good

    monkeypatch.setattr("fsm_agent.cli.verifying.check", checked)
    assert fsm_agent("verify", "own_agent:agent").code == 0
    (limits,) = asked
    assert isinstance(limits, dict)
    assert (limits["max_turns"], limits["max_fallbacks"]) == (7, 0)


def test_the_report_reads_well():
    report = replace(check(asking(STOP)), seconds=0.25)
    lines = [line.rstrip() for line in as_text(report_view(report), width=90).splitlines()]
    assert lines[0] == "asking: ok"
    assert lines[1].endswith("(found by composition, not one by one) in 250 ms")
    assert lines[3:6] == [
        "Terminal reasons, with the shortest run to each",
        "  completed   1 move  thank",
        "  gave_up    3 moves  2 x again → stop",
    ]
    assert "Why every run ends" in lines
    assert any(line.startswith("  3  requests per run") for line in lines)
    assert "What was not checked" in lines
