"""Intervals of shares: values from the literature, and what must hold for every sample."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving.optimise.intervals import share


@pytest.mark.parametrize(
    ("hits", "count", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_the_ends_are_those_of_newcombe_1998(hits, count, low, high):
    """R. G. Newcombe, Two-sided confidence intervals for the single proportion, 1998, table I, method 3."""
    assert (round(share(hits, count).low, 4), round(share(hits, count).high, 4)) == (low, high)


@given(st.integers(1, 10**6).flatmap(lambda count: st.tuples(st.integers(0, count), st.just(count))))
def test_the_interval_holds_the_share_and_stays_between_nothing_and_all(sample):
    measured = share(*sample)
    assert 0 <= measured.low <= measured.value + 1e-12
    assert measured.value - 1e-12 <= measured.high <= 1
    assert measured.misses == measured.count - measured.hits


@given(st.integers(1, 1000), st.integers(2, 50))
def test_more_examples_of_the_same_share_say_more(hits, times):
    once, often = share(hits, 2 * hits), share(hits * times, 2 * hits * times)
    assert often.high - often.low < once.high - once.low


def test_no_disagreement_in_few_examples_is_no_proof():
    assert share(100, 100).low < 0.99 < share(400, 400).low
