"""What contracts over the past of a run remember, and how they see that something went wrong."""

from __future__ import annotations

from collections.abc import Hashable

from fsm_agent.machine import Row
from fsm_agent.verify.contracts import Never, Once
from fsm_agent.verify.system import Situation


class OnceObserver:
    """Counts what is done about the last outcome of an effect."""

    initial: Hashable = "nothing due"
    faults = frozenset(("not done", "done twice", "done without cause"))

    def __init__(self, contract: Once) -> None:
        self.contract = contract

    def after_outcome(self, seen: Hashable, situation: Situation, effect: str, outcome: str) -> Hashable:  # noqa: ARG002
        wanted = self.contract.outcomes
        if seen in self.faults or effect != self.contract.effect or (wanted and outcome not in wanted):
            return seen
        return "not done" if seen == "due" else "due"

    def after_row(self, seen: Hashable, situation: Situation, row: Row) -> Hashable:  # noqa: ARG002
        done = sum(action in self.contract.actions for action in row.do)
        if seen in self.faults:
            return seen
        if seen == "due":
            if done == 0:
                return "not done" if row.reason is not None else "due"
            return "done" if done == 1 else "done twice"
        if done:
            return "done twice" if seen == "done" else "done without cause"
        return seen


class NeverObserver:
    """Remembers that the cause was there, and sees what must not follow."""

    initial: Hashable = "free"
    faults = frozenset(("broken",))

    def __init__(self, contract: Never) -> None:
        self.contract = contract

    def after_outcome(self, seen: Hashable, situation: Situation, effect: str, outcome: str) -> Hashable:  # noqa: ARG002
        if seen == "bound" and effect in self.contract.what:
            return "broken"
        return "bound" if seen == "free" and self.contract.after == (effect, outcome) else seen

    def after_row(self, seen: Hashable, situation: Situation, row: Row) -> Hashable:  # noqa: ARG002
        if seen == "bound":
            if row.trigger in self.contract.what:
                return "broken"
            return "free" if row.trigger in self.contract.until else seen
        return "bound" if seen == "free" and row.trigger == self.contract.after else seen
