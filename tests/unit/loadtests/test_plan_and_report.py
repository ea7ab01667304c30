"""Schedules, percentiles, the binomial band and the guard of addresses."""

import statistics
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadtests.address import own_address
from loadtests.errors import LoadError, TargetError
from loadtests.plan import Arrivals, Plan
from loadtests.report import Report
from loadtests.samples import Answer, Sample
from loadtests.statistics import binomial_band, percentile


def report_of(latencies_ms: list[float], plan: Plan) -> Report:
    samples = tuple(Sample("t", "http", at, at, at + ms / 1_000, Answer(200, "1")) for at, ms in zip(plan.offsets(), latencies_ms, strict=True))
    return Report(plan=plan, samples=samples, marks=(), window=(0.0, plan.duration_seconds))


@pytest.mark.parametrize("order", [lambda values: values, lambda values: values[::-1], lambda values: sorted(values, key=hash)])
def test_percentiles_are_exact_and_do_not_depend_on_the_order(order: Callable[[list[float]], list[float]]) -> None:
    """locustio/locust#331: 990 answers of 100 ms and 20 of 504 ms have a 99th percentile of 504 ms, not 500."""
    report = report_of(order([100.0] * 990 + [504.0] * 20), Plan(rate_rps=1_010, duration_seconds=1))
    assert report.latency_ms(99) == pytest.approx(504)
    assert report.latency_ms(50) == pytest.approx(100)


@given(st.lists(st.floats(0, 1e6), min_size=1), st.floats(0.1, 100))
def test_a_percentile_is_one_of_the_values_and_covers_its_share(values: list[float], percent: float) -> None:
    result = percentile(values, percent)
    assert result in values
    assert sum(value <= result for value in values) >= len(values) * percent / 100 - 1e-9


def test_no_percentile_of_nothing() -> None:
    with pytest.raises(ValueError, match="nothing"):
        percentile([], 99)


def test_the_binomial_band_is_exact_at_the_ends_and_four_deviations_wide_between() -> None:
    assert binomial_band(10_000, 0.0) == (0, 0)
    assert binomial_band(10_000, 1.0) == (10_000, 10_000)
    assert binomial_band(10_000, 0.1) == pytest.approx((880, 1_120))
    with pytest.raises(ValueError, match="share"):
        binomial_band(10, 1.1)


def test_constant_arrivals_are_evenly_spaced() -> None:
    assert list(Plan(rate_rps=4, duration_seconds=1).offsets()) == [0, 0.25, 0.5, 0.75]


def test_poisson_arrivals_repeat_with_the_seed_and_have_exponential_gaps() -> None:
    plan = Plan(rate_rps=100, duration_seconds=100, arrivals=Arrivals.POISSON, seed=7)
    offsets = list(plan.offsets())
    assert offsets == list(plan.offsets()) == sorted(offsets)
    assert offsets != list(Plan(rate_rps=100, duration_seconds=100, arrivals=Arrivals.POISSON, seed=8).offsets())
    gaps = [later - earlier for earlier, later in pairwise(offsets)]
    assert statistics.mean(gaps) == pytest.approx(0.01, rel=0.05)
    assert statistics.stdev(gaps) == pytest.approx(0.01, rel=0.05)


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"rate_rps": 0}, "rate_rps"),
        ({"rate_rps": float("nan")}, "rate_rps"),
        ({"rate_rps": 10_000}, "rate_rps"),
        ({"duration_seconds": -1}, "duration_seconds"),
        ({"duration_seconds": 7_200}, "duration_seconds"),
        ({"rate_rps": 5_000, "duration_seconds": 3_600}, "more than 2000000 requests"),
        ({"timeout_seconds": 0}, "timeout_seconds"),
        ({"max_in_flight": 0}, "max_in_flight"),
        ({"lag_limit_seconds": float("nan")}, "lag_limit_seconds"),
    ],
)
def test_a_plan_without_bounds_is_refused(change: dict[str, Any], key: str) -> None:
    with pytest.raises(LoadError, match=key):
        Plan(**{"rate_rps": 10, "duration_seconds": 10, **change})


def test_an_empty_report_is_invalid() -> None:
    report = Report(plan=Plan(rate_rps=1, duration_seconds=1), samples=(), marks=(), window=(0.0, 0.0))
    with pytest.raises(LoadError, match="no request was planned"):
        report.raise_if_invalid()


@pytest.mark.parametrize(
    ("host", "own"), [("127.0.0.1", ()), ("::1", ()), ("127.8.9.1", ()), ("10.1.2.3", ("10.1.2.3",)), ("fd00::1", ("fd00:0::1",))]
)
def test_own_addresses_are_accepted(host: str, own: tuple[str, ...]) -> None:
    assert own_address(host, 80, own=own).port == 80


@pytest.mark.parametrize(
    ("host", "own"),
    [
        ("localhost", ()),
        ("example.org", ("10.1.2.3",)),
        ("10.1.2.4", ("10.1.2.3",)),
        ("8.8.8.8", ("8.8.8.8",)),
        ("0.0.0.0", ("0.0.0.0",)),  # noqa: S104
        ("2001:4860:4860::8888", ()),
        ("", ()),
    ],
)
def test_foreign_addresses_are_refused(host: str, own: tuple[str, ...]) -> None:
    with pytest.raises(TargetError, match="target"):
        own_address(host, 80, own=own)


@pytest.mark.parametrize("port", [0, -1, 65_536])
def test_ports_out_of_range_are_refused(port: int) -> None:
    with pytest.raises(TargetError, match="port"):
        own_address("127.0.0.1", port)
