"""Every single-row mutant of the shipped table is reported, or decides exactly as the table does."""

from collections import Counter

import pytest

from fsm_agent.machine import AGENT_LOOP
from fsm_agent.verify import AGENT_LOOP_CONTRACTS, Contract, Counts, Enters, check
from fsm_agent.verify.bounds_given import bounds_of
from fsm_agent.verify.configurations import Configurations
from fsm_agent.verify.decisions import Decisions
from fsm_agent.verify.layout import Layout
from fsm_agent.verify.limits_at_edge import OtherLimits
from fsm_agent.verify.obligations import Judge
from fsm_agent.verify.search import Search
from fsm_agent.verify.system import System
from tests.verify.equivalence import decide_alike
from tests.verify.mutants import mutants
from tests.verify.test_agent_loop_proof import ALL_ONE

# Small, and yet every row fires under them.
LIMITS = ALL_ONE | {
    "max_turns": 6,
    "max_transport_retries": 2,
    "max_stop_hook_blocks": 2,
    "max_budget_continuations": 2,
}

WHY_EQUIVALENT = {
    "swap": "No case fits both rows, so their order does not matter.",
    "unguard": "The row above takes the cases that the guard keeps out.",
    "whatever": "In this place the outcome is known to be this one: the rows above take or ask for every other.",
}


def cheapest_first(contract: Contract) -> int:
    return 0 if isinstance(contract, Counts) else 1 if isinstance(contract, Enters) else 2


def is_reported(definition) -> bool:
    """By a contract, the cheap ones first, or by the whole check."""
    system = System(Decisions(definition, LIMITS), remember=True)
    judge = Judge(Search(Configurations(system, Layout(definition, LIMITS))), OtherLimits(definition, LIMITS))
    contracts = sorted(AGENT_LOOP_CONTRACTS, key=cheapest_first)
    broken = any(not judge.judge(contract).holds for contract in contracts)
    return broken or not check(definition, LIMITS, AGENT_LOOP_CONTRACTS).ok


@pytest.mark.slow
def test_no_mutant_of_the_shipped_loop_survives_unexplained():
    assert check(AGENT_LOOP, LIMITS).ok
    verdicts: Counter[str] = Counter()
    survivors = []
    for mutant in mutants(AGENT_LOOP):
        kind = mutant.name.partition(" ")[0].rstrip(":")
        if mutant.definition is None:
            verdicts["refused at construction"] += 1
        elif decide_alike(AGENT_LOOP, mutant.definition, bounds_of(AGENT_LOOP, LIMITS)):
            assert kind in WHY_EQUIVALENT, mutant.name
            verdicts["equivalent"] += 1
        elif is_reported(mutant.definition):
            verdicts["reported"] += 1
        else:
            survivors.append(mutant.name)
    assert survivors == []
    assert verdicts["reported"] > 1_000
    assert verdicts["equivalent"] < 200
