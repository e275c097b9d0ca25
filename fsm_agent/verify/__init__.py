"""The proof: what a declared machine can and cannot do. `check(definition)` gives a `Report`.

It knows the declaration and nothing of what runs it.
"""

from fsm_agent.verify.agent_loop import AGENT_LOOP_CONTRACTS
from fsm_agent.verify.bounds import Bound
from fsm_agent.verify.bounds_given import LimitsError
from fsm_agent.verify.certificate import Certificate, Peel
from fsm_agent.verify.checker import check
from fsm_agent.verify.conditions import AllOf, Fact
from fsm_agent.verify.conformance import Divergence, conform, records
from fsm_agent.verify.contracts import (
    Always,
    Answers,
    Contract,
    Counts,
    Enters,
    Fires,
    Firing,
    Never,
    Once,
    Performs,
    amended,
)
from fsm_agent.verify.coverage import UndecidedPairError, transition_pairs
from fsm_agent.verify.obligations import Verdict
from fsm_agent.verify.refine import Refinement, refine
from fsm_agent.verify.report import Cycle, DeadRow, Hole, Report, UnprovedError
from fsm_agent.verify.witness import Lasso, Step, Witness, WitnessError, replay

__all__ = [
    "AGENT_LOOP_CONTRACTS",
    "AllOf",
    "Always",
    "Answers",
    "Bound",
    "Certificate",
    "Contract",
    "Counts",
    "Cycle",
    "DeadRow",
    "Divergence",
    "Enters",
    "Fact",
    "Fires",
    "Firing",
    "Hole",
    "Lasso",
    "LimitsError",
    "Never",
    "Once",
    "Peel",
    "Performs",
    "Refinement",
    "Report",
    "Step",
    "UndecidedPairError",
    "UnprovedError",
    "Verdict",
    "Witness",
    "WitnessError",
    "amended",
    "check",
    "conform",
    "records",
    "refine",
    "replay",
    "transition_pairs",
]
