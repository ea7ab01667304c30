"""Which rate is measured, and what is never taken for a figure."""

import pytest

from loadtests.address import own_address
from loadtests.errors import LoadError
from loadtests.http_target import HttpTarget
from loadtests.payloads import Signature
from loadtests.plan import Plan
from loadtests.report import Report
from loadtests.samples import Answer, ErrorKind, Sample
from tools.bench import gateway_cost
from tools.bench.gateway_cost import HELD_MEDIAN_MS, RATES_RPS, held_rate, measure
from tools.errors import ToolError


def way(name):
    return HttpTarget(name=name, address=own_address("127.0.0.1", 1), authority="", signature=Signature("m", "i", "o"), documents=())


GATEWAY, DIRECT = way("gateway"), way("direct")


def report(gateway_ms=2.0, direct_ms=1.0, *, lag=0.0, error=None):
    """A hundred requests that take turns over both ways."""
    samples = []
    for index in range(100):
        target, took = (GATEWAY, gateway_ms) if index % 2 == 0 else (DIRECT, direct_ms)
        sent = index / 100 + lag
        samples.append(Sample(target.name, target.protocol, index / 100, sent, sent + took / 1000, Answer(200, "1", error)))
    return Report(plan=Plan(rate_rps=100, duration_seconds=1), samples=tuple(samples), marks=(), window=(0.0, 1.0))


@pytest.fixture
def runs(monkeypatch):
    """Answers every run with what the function says of its rate; gives back the rates asked for."""

    def use(answer):
        asked = []

        def run(targets, rate, seconds):
            asked.append(rate)
            return answer(rate)

        monkeypatch.setattr(gateway_cost, "run", run)
        return asked

    return use


SLOW, FAILING, LATE = report(HELD_MEDIAN_MS * 2, HELD_MEDIAN_MS * 2), report(error=ErrorKind.TIMEOUT), report(lag=1.0)


@pytest.mark.parametrize("beyond", [SLOW, FAILING, LATE], ids=["queues", "fails", "late"])
def test_the_highest_rate_that_is_held_is_taken(runs, beyond):
    asked = runs(lambda rate: beyond if rate > RATES_RPS[2] else report())
    assert held_rate((GATEWAY, DIRECT)) == RATES_RPS[2]
    assert asked == list(RATES_RPS[:3])


def test_a_machine_that_holds_no_rate_is_told_so(runs):
    runs(lambda rate: FAILING)
    with pytest.raises(ToolError, match="does not hold 25 requests/s"):
        held_rate((GATEWAY, DIRECT))


def test_figures_are_ratios_and_times_of_both_ways(runs):
    runs(lambda rate: report(gateway_ms=3.0, direct_ms=1.5))
    figures = {figure.name: figure for figure in measure(GATEWAY, DIRECT, 100)}
    assert figures["gateway / direct, p50"].median == pytest.approx(2)
    assert figures["gateway, p99"].unit == "ms"
    assert figures["gateway, p99"].median == pytest.approx(3)
    assert len(figures["direct, p50"].values) == gateway_cost.ROUNDS


@pytest.mark.parametrize(("bad", "error"), [(FAILING, ToolError), (LATE, LoadError)], ids=["fails", "late"])
def test_a_run_that_fails_or_cannot_be_trusted_is_no_figure(runs, bad, error):
    runs(lambda rate: bad)
    with pytest.raises(error):
        measure(GATEWAY, DIRECT, 100)
