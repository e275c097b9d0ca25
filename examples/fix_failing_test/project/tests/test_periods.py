import unittest
from datetime import date

from billing.periods import Period, month


class PeriodTest(unittest.TestCase):
    def test_a_month_ends_on_its_last_day(self) -> None:
        self.assertEqual(month(2028, 2), Period(date(2028, 2, 1), date(2028, 2, 29)))

    def test_periods_that_do_not_meet_have_no_overlap(self) -> None:
        self.assertIsNone(month(2026, 3).overlap(month(2026, 5)))

    def test_an_overlap_is_the_days_in_both(self) -> None:
        stay = Period(date(2026, 3, 20), date(2026, 4, 10))
        self.assertEqual(month(2026, 4).overlap(stay), Period(date(2026, 4, 1), date(2026, 4, 10)))

    def test_a_period_cannot_end_before_it_begins(self) -> None:
        with self.assertRaises(ValueError):
            Period(date(2026, 4, 2), date(2026, 4, 1))
