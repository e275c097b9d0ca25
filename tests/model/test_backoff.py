"""Waits before a repetition: full jitter below a ceiling that doubles, and never before the time that was asked for."""

import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsm_agent.machine.limits import LoopLimits
from fsm_agent.machine.vocabulary import ResponseOutcome
from fsm_agent.model.backoff import delay
from fsm_agent.model.classify import Failure

LIMITS = LoopLimits()


def asked(seconds: float | None) -> Failure:
    return Failure(ResponseOutcome.RETRYABLE, "rate_limit_error", "slow down", retry_after=seconds)


@given(retry=st.integers(0, 10_000), seed=st.integers())
def test_a_wait_lies_below_the_ceiling(retry: int, seed: int):
    waited = delay(retry, None, LIMITS, Random(seed))
    assert waited is not None
    assert 0 <= waited <= min(LIMITS.backoff_cap, LIMITS.backoff_base * 2.0 ** min(retry, 100))


def test_a_wait_may_lie_anywhere_below_the_ceiling():
    drawn = [delay(6, None, LIMITS, Random(seed)) or 0.0 for seed in range(200)]
    assert min(drawn) < 1
    assert max(drawn) > 31
    assert 14 < sum(drawn) / len(drawn) < 18


@given(st.integers())
def test_waits_do_not_decrease_when_the_last_one_is_told(seed: int):
    random, last = Random(seed), 0.0
    for retry in range(12):
        waited = delay(retry, None, LIMITS, random, previous=last)
        assert waited is not None
        assert last <= waited <= LIMITS.backoff_cap
        last = waited


@given(seconds=st.floats(0, LIMITS.retry_after_cap), retry=st.integers(0, 20), seed=st.integers())
def test_what_the_service_asks_for_is_the_least(seconds: float, retry: int, seed: int):
    waited = delay(retry, asked(seconds), LIMITS, Random(seed))
    assert waited is not None
    assert seconds <= waited <= max(LIMITS.backoff_cap, seconds * 1.1)


def test_agents_told_the_same_do_not_come_back_at_the_same_moment():
    assert len({delay(0, asked(60), LIMITS, Random(seed)) for seed in range(20)}) == 20


@pytest.mark.parametrize("seconds", [120.5, 3_600.0, math.inf])
def test_a_wait_above_the_cap_is_refused_and_not_shortened(seconds: float):
    assert delay(0, asked(seconds), LIMITS, Random(0)) is None


def test_a_failure_that_asks_for_nothing_is_as_none():
    assert delay(3, asked(None), LIMITS, Random(5)) == delay(3, None, LIMITS, Random(5))
