"""A tool whose schema has a bit of everything."""

from __future__ import annotations

import datetime as dt
import uuid
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from fsm_agent import tool


class Size(StrEnum):
    SMALL = "small"
    LARGE = "large"


class Order(BaseModel):
    size: Size
    kind: Literal["book", "cd"] = "book"
    pieces: Annotated[int, Field(ge=1, le=9)]
    price: Annotated[float, Field(gt=0, lt=100)]
    code: Annotated[str, Field(pattern=r"^[A-Z]{2}-\d{3}$")]
    day: dt.date
    id: uuid.UUID
    note: str | None = None
    tags: Annotated[list[str], Field(min_length=1, max_length=2)]
    extras: dict[str, int] = {}
    parts: list[Order] = []


@tool
async def order_tool(order: Order, urgent: bool = False) -> str:
    """Take an order."""
    return "taken"
