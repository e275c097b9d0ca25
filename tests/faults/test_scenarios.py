"""Faults that users of agent loops reported, each run by its scenario: in process, and over the real SDK and a socket.

The test's id is the scenario's, with its variant. Every invariant that `fsm_agent.testing.invariants` knows is checked
in each, on each request, on each event and on what is left.
"""

from __future__ import annotations

import pytest

from tests.faults import expectations
from tests.faults.loader import Case, load, play_in_process, play_over_the_wire

CASES = load()
IN_PROCESS = [case for case in CASES if case.plays_in("process")]
OVER_THE_WIRE = [case for case in CASES if case.plays_in("wire")]


def named(case: Case) -> str:
    return case.name


@pytest.mark.parametrize("case", IN_PROCESS, ids=named)
def test_in_process(case: Case) -> None:
    expectations.check(play_in_process(case))


@pytest.mark.parametrize("case", OVER_THE_WIRE, ids=named)
async def test_over_the_wire(case: Case) -> None:
    expectations.check(await play_over_the_wire(case))
