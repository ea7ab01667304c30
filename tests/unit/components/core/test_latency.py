"""Latency out of counters: the numbers that queries are held against."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.core.latency import CounterWindow, quantile, sum_buckets

POD_A = {25.0: 990.0, 50.0: 1000.0, math.inf: 1000.0}
POD_B = {500.0: 0.0, 1000.0: 10.0, math.inf: 10.0}
WINDOW = CounterWindow(requests=100, executions=25, inferences=200, request_us=5_000_000, queue_us=1_000_000)
EDGES = [1.0, 2.0, 5.0, 10.0, 100.0]


def test_the_p99_of_a_fleet_comes_from_summed_buckets():
    """triton-inference-server/server#7672, #8561."""
    assert quantile(sum_buckets([POD_A, POD_B]), 0.99) == pytest.approx(49.75)


def test_a_mean_of_the_pods_percentiles_is_another_number():
    """What people read off it is ten times too high."""
    alone = [quantile(pod, 0.99) for pod in (POD_A, POD_B)]
    assert sum(filter(None, alone)) / len(alone) == pytest.approx(510)


def test_durations_are_microseconds_per_request_and_batches_are_items_per_execution():
    """triton-inference-server/server#7692, #5927."""
    assert (WINDOW.mean_request_ms, WINDOW.mean_queue_ms, WINDOW.mean_batch) == (50, 10, 8)


def test_executions_would_be_the_wrong_denominator():
    assert WINDOW.request_us / 1000 / WINDOW.executions == 200


def test_a_window_without_traffic_is_zero_and_no_quantile():
    """Nothing divides by zero."""
    idle = CounterWindow(requests=0, executions=0, inferences=0, request_us=0, queue_us=0)
    assert (idle.mean_request_ms, idle.mean_queue_ms, idle.mean_batch) == (0, 0, 0)
    assert quantile({25.0: 0.0, math.inf: 0.0}, 0.99) is None
    assert quantile({}, 0.99) is None


@pytest.mark.parametrize(
    ("buckets", "ratio", "expected"),
    [
        ({10.0: 10.0}, 0.5, 5.0),
        ({10.0: 10.0}, 1.0, 10.0),
        ({10.0: 10.0}, 0.0, 0.0),
        ({10.0: 0.0, 20.0: 10.0}, 0.0, 10.0),
        ({10.0: 5.0, math.inf: 10.0}, 0.99, 10.0),
        ({math.inf: 10.0}, 0.5, None),
    ],
)
def test_edges_are_handled_as_promql_does(buckets, ratio, expected):
    assert quantile(buckets, ratio) == expected


@pytest.mark.parametrize(("buckets", "ratio", "reason"), [({1.0: 5.0, 2.0: 4.0}, 0.5, "fall"), ({1.0: 5.0}, 1.01, "outside"), ({}, -0.1, "outside")])
def test_what_is_no_histogram_or_no_ratio_is_refused(buckets, ratio, reason):
    with pytest.raises(ValueError, match=reason):
        quantile(buckets, ratio)


@given(st.lists(st.lists(st.sampled_from([0.5, 1.5, 3.0, 7.0, 50.0]), min_size=1, max_size=20), min_size=1, max_size=4), st.floats(0.01, 1))
def test_the_fleets_quantile_lies_in_the_bucket_of_the_observation_it_names(pods, ratio):
    histograms = [{edge: float(sum(value <= edge for value in values)) for edge in EDGES} for values in pods]
    everything = sorted(value for values in pods for value in values)
    named = everything[max(math.ceil(ratio * len(everything) - 1e-9), 1) - 1]
    position = next(index for index, edge in enumerate(EDGES) if edge >= named)
    found = quantile(sum_buckets(histograms), ratio)
    assert found is not None
    assert (EDGES[position - 1] if position else 0) - 1e-6 <= found <= EDGES[position] + 1e-6
