"""The whole suite for the agent beside it: what must always hold. `pytest examples/untested_agent` finds three bugs."""

from hypothesis import strategies as st
from refunds import Bank, Desk, make_agent  # type: ignore[import-not-found]

from fsm_agent import AgentMachine
from fsm_agent.testing import AgentStateMachine, invariant, precondition


class RefundAgent(AgentStateMachine):
    """Any behaviour of the model and the user, on a desk with a bank of its own."""

    inputs = {  # noqa: RUF012 - a setting of the class
        "refund": st.fixed_dictionaries({"order": st.just("A1"), "amount": st.sampled_from([5.0, 50.0, 80.0, -5.0])})
    }

    def agent(self) -> AgentMachine:
        self.desk = Desk(Bank())
        agent: AgentMachine = make_agent(self.desk)
        return agent


class TestMoney(RefundAgent):
    @invariant()
    def no_order_is_refunded_above_what_was_paid(self) -> None:
        for name, order in self.desk.orders.items():
            assert order.refunded <= order.paid, f"{order.refunded:g} of {order.paid:g} were refunded for {name}"


class TestCustomers(RefundAgent):
    @invariant()
    def a_customer_is_never_charged(self) -> None:
        assert all(amount >= 0 for amount in self.desk.bank.transfers), self.desk.bank.transfers


class TestLocks(RefundAgent):
    @precondition(lambda self: self.over)
    @invariant()
    def no_order_stays_locked(self) -> None:
        assert not any(order.locked for order in self.desk.orders.values()), "an order stays locked"
