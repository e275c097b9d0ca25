"""Charges of one month and the invoice that lists them."""

from dataclasses import dataclass
from datetime import date

from billing.periods import Period, month


@dataclass(frozen=True)
class Subscription:
    """A plan at a monthly price in cents; without `ended` it still runs."""

    plan: str
    monthly_cents: int
    started: date
    ended: date | None = None

    def active_in(self, period: Period) -> Period | None:
        return period.overlap(Period(self.started, self.ended or date.max))


@dataclass(frozen=True)
class Line:
    plan: str
    period: Period
    cents: int

    def __str__(self) -> str:
        span = f"{self.period.first:%d.%m.} - {self.period.last:%d.%m.%Y}"
        return f"{self.plan:<12} {span}  {self.cents / 100:>9.2f}"


def charge(subscription: Subscription, billed: Period) -> Line | None:
    """The price of the days in use: the month's price times the share of its days, rounded half up."""
    used = subscription.active_in(billed)
    if used is None:
        return None
    cents = (subscription.monthly_cents * used.days * 2 + billed.days) // (billed.days * 2)
    return Line(subscription.plan, used, cents)


@dataclass(frozen=True)
class Invoice:
    lines: tuple[Line, ...]

    @property
    def total_cents(self) -> int:
        return sum(line.cents for line in self.lines)

    def __str__(self) -> str:
        return "\n".join([*map(str, self.lines), f"{'Total':<36} {self.total_cents / 100:>9.2f}"])


def invoice(subscriptions: list[Subscription], year: int, number: int) -> Invoice:
    """The invoice of one calendar month, in the order of the subscriptions."""
    lines = (charge(subscription, month(year, number)) for subscription in subscriptions)
    return Invoice(tuple(line for line in lines if line is not None))
