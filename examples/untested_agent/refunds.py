"""A support agent that refunds orders. Nobody has tested it, and three things are wrong with it: docs/testing.md."""

import asyncio
from dataclasses import dataclass
from typing import Any, Literal

from fsm_agent import AgentMachine, tool
from fsm_agent.tools.gate import Allow, Deny

OrderId = Literal["A1", "B2"]


@dataclass
class Order:
    paid: float
    refunded: float = 0.0
    locked: bool = False


class Bank:
    """Where the money comes from. Every transfer takes a moment."""

    def __init__(self) -> None:
        self.transfers: list[float] = []

    async def transfer(self, amount: float) -> None:
        await asyncio.sleep(0.5)
        self.transfers.append(amount)


class Desk:
    """The orders, and the tools that the agent has for them."""

    def __init__(self, bank: Bank) -> None:
        self.bank = bank
        self.orders: dict[str, Order] = {"A1": Order(paid=80.0), "B2": Order(paid=250.0)}

    def tools(self) -> list[Any]:
        return [tool(self.look_up), tool(concurrency_safe=True)(self.refund), tool(self.change_address)]

    async def look_up(self, order: OrderId) -> dict[str, float]:
        """Tell what was paid for an order, and what was refunded."""
        known = self.orders[order]
        return {"paid": known.paid, "refunded": known.refunded}

    async def refund(self, order: OrderId, amount: float) -> str:
        """Pay an amount back to the customer."""
        known = self.orders[order]
        if known.refunded + amount > known.paid:
            raise ValueError(f"Only {known.paid - known.refunded:.2f} are left of this order.")
        await self.bank.transfer(amount)
        known.refunded += amount
        return f"{amount:.2f} refunded."

    async def change_address(self, order: OrderId, street: str) -> str:
        """Send the order to another address."""
        known = self.orders[order]
        if known.locked:
            raise ValueError("Somebody else works on this order.")
        known.locked = True
        await asyncio.sleep(0.5)  # the carrier confirms the new address
        known.locked = False
        return f"The parcel goes to {street}."

    async def may_run(self, call: Any, *_: Any) -> Allow | Deny:
        """Refunds above 100 need a person."""
        if call.name == "refund" and call.input["amount"] > 100:
            return Deny("A refund of more than 100 needs a supervisor.")
        return Allow()


def make_agent(desk: Desk, **options: Any) -> AgentMachine:
    """The agent, on a desk."""
    return AgentMachine(
        "claude-sonnet-5-5",
        system="You help customers of a shop. Refund what they are owed.",
        tools=desk.tools(),
        can_use_tool=desk.may_run,
        **options,
    )
