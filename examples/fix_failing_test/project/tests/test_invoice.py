import unittest
from datetime import date

from billing.invoice import Subscription, invoice


class InvoiceTest(unittest.TestCase):
    def test_a_whole_month_costs_the_monthly_price(self) -> None:
        subscription = Subscription("Standard", 3000, started=date(2025, 1, 1))
        self.assertEqual(invoice([subscription], 2026, 4).total_cents, 3000)

    def test_who_joins_on_the_16th_of_a_month_of_30_days_pays_half(self) -> None:
        subscription = Subscription("Standard", 3000, started=date(2026, 4, 16))
        self.assertEqual(invoice([subscription], 2026, 4).total_cents, 1500)

    def test_nothing_is_charged_before_the_start_or_after_the_end(self) -> None:
        over = Subscription("Basic", 900, started=date(2025, 1, 1), ended=date(2026, 3, 31))
        future = Subscription("Basic", 900, started=date(2026, 5, 1))
        self.assertEqual(invoice([over, future], 2026, 4).lines, ())

    def test_the_printed_invoice_lists_each_plan_and_the_total(self) -> None:
        lines = str(invoice([Subscription("Basic", 900, date(2025, 1, 1))], 2026, 4)).splitlines()
        self.assertEqual(lines[0].split(), ["Basic", "01.04.", "-", "30.04.2026", "9.00"])
        self.assertEqual(lines[1].split(), ["Total", "9.00"])
