"""State machines with rules of their own, some of which find a bug; the shop they are tried on has it on purpose."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import Enum

from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, initialize, multiple

from fsm_agent import AgentMachine, tool
from fsm_agent.testing import AgentStateMachine, invariant, precondition, rule
from tests.loop.scenarios import MODEL

__all__ = ["Delivery", "ShopMachine", "Size", "TrialMachine"]


class Size(Enum):
    SMALL = "small"
    LARGE = "large"


@dataclass(frozen=True)
class Delivery:
    size: Size
    pieces: int
    price: Decimal = Decimal("1.50")


class Shop:
    """Sells more than it has, unless somebody has counted."""

    def __init__(self) -> None:
        self.stock = 0
        self.sold = 0

    def machine(self) -> AgentMachine:
        @tool
        async def sell(pieces: int = 1) -> str:
            """Sell."""
            self.sold += pieces
            return "sold"

        return AgentMachine(MODEL, tools=[sell])


class ShopMachine(AgentStateMachine):
    """Fails when more than was delivered is sold after a delivery was counted."""

    deliveries = Bundle("deliveries")

    def agent(self) -> AgentMachine:
        self.shop = Shop()
        self.counted: list[Delivery] = []
        return self.shop.machine()

    @initialize(stock=st.integers(0, 3))
    def open_shop(self, stock: int) -> None:
        self.shop.stock = stock

    @rule(target=deliveries, size=st.sampled_from(Size), pieces=st.integers(1, 3), both=st.booleans())
    def deliver(self, size: Size, pieces: int, both: bool) -> object:
        one = Delivery(size, pieces)
        self.shop.stock += pieces
        return multiple(one, Delivery(Size.LARGE, 0)) if both else one

    @rule(delivery=deliveries, data=st.data())
    def count(self, delivery: Delivery, data: st.DataObject) -> None:
        if data.draw(st.booleans()) and data.draw(st.integers(0, 9)) > 4:
            self.counted.append(delivery)

    @precondition(lambda self: self.waiting)
    @rule(delivery=st.builds(Delivery, st.sampled_from(Size), st.integers(1, 5)), note=st.tuples(st.text(max_size=3)))
    def send_back(self, delivery: Delivery, note: tuple[str]) -> None:
        self.shop.stock -= delivery.pieces

    @invariant()
    def nothing_is_sold_that_is_not_there(self) -> None:
        if self.counted and self.shop.sold:
            assert self.shop.sold <= self.shop.stock, f"{self.shop.sold} of {self.shop.stock} were sold"


class TrialMachine(AgentStateMachine):
    """Fails in a rule of its own: the third note is too much."""

    def agent(self) -> AgentMachine:
        self.notes: list[str] = []
        return Shop().machine()

    @rule(notes=st.lists(st.sampled_from("ab"), min_size=1, max_size=2))
    def write_down(self, notes: list[str]) -> None:
        self.notes += notes
        notes.clear()
        if len(self.notes) > 2:
            raise RuntimeError(f"too many notes: {' '.join(self.notes)}")


for each in (ShopMachine, TrialMachine):
    # Whether a failure is made small is not the question here.
    each.TestCase.settings = settings(
        each.TestCase.settings, max_examples=300, database=None, derandomize=True, phases=[Phase.generate]
    )
