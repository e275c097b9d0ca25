"""Every single-row mutant of the shipped table is reported, or decides exactly as the table does."""

from collections import Counter
from pathlib import Path

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
from tests.verify.mutants import Mutant, mutants
from tests.verify.test_agent_loop_proof import ALL_ONE

LIST = Path(__file__).with_name("equivalent_mutants.md")
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


def kind_of(mutant: Mutant) -> str:
    return mutant.name.partition(" ")[0].rstrip(":")


@pytest.mark.slow
def test_no_mutant_of_the_shipped_loop_survives_unexplained():
    assert check(AGENT_LOOP, LIMITS).ok
    verdicts: Counter[str] = Counter()
    survivors, equivalent = [], []
    for mutant in mutants(AGENT_LOOP):
        if mutant.definition is None:
            verdicts["refused at construction"] += 1
        elif decide_alike(AGENT_LOOP, mutant.definition, bounds_of(AGENT_LOOP, LIMITS)):
            equivalent.append(mutant)
        elif is_reported(mutant.definition):
            verdicts["reported"] += 1
        else:
            survivors.append(mutant.name)
    assert survivors == []
    assert verdicts["reported"] > 1_000
    assert {kind_of(mutant) for mutant in equivalent} <= set(WHY_EQUIVALENT)
    assert listed(equivalent) == LIST.read_text("utf-8"), "python -m tests.verify.test_mutants writes the list again"


def listed(equivalent: list[Mutant]) -> str:
    """The mutants that decide exactly as the table does, by the reason why."""
    lines = ["# Mutants of the shipped table that decide as it does", ""]
    lines += ["Proved case by case: the same effects asked for, the same rows fired, whatever the counters are.", ""]
    for kind, why in WHY_EQUIVALENT.items():
        lines += [f"## {why}", "", *(f"- {mutant.name}" for mutant in equivalent if kind_of(mutant) == kind), ""]
    return "\n".join(lines)


if __name__ == "__main__":
    limits = bounds_of(AGENT_LOOP, LIMITS)
    found = [m for m in mutants(AGENT_LOOP) if m.definition and decide_alike(AGENT_LOOP, m.definition, limits)]
    LIST.write_text(listed(found), "utf-8")
