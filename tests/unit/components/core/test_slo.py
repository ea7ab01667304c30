"""Bucket edges of the latency histogram: an objective can be read off exactly."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from components.core.slo import LADDER_MS, SloSpec, bucket_edges_ms

OBJECTIVES = st.lists(st.floats(0.1, 600_000, allow_nan=False), min_size=1, max_size=8)


@given(OBJECTIVES)
def test_every_objective_is_an_edge_with_a_neighbour_on_each_side(p99_values):
    edges = bucket_edges_ms(p99_values)
    for p99 in p99_values:
        assert {round(p99 * 0.8, 3), p99, round(p99 * 1.25, 3)} <= set(edges)


@given(OBJECTIVES)
def test_edges_ascend_and_the_ladder_stays(p99_values):
    edges = bucket_edges_ms(p99_values)
    assert edges == sorted(set(edges))
    assert set(LADDER_MS) <= set(edges)


def test_the_order_of_the_models_changes_nothing():
    assert bucket_edges_ms([200, 50]) == bucket_edges_ms([50, 200])


@pytest.mark.parametrize(
    "values", [{"p99Ms": 0}, {"p99Ms": -1}, {"p99Ms": 600_001}, {"p99Ms": 1, "errorRatio": 0}, {"p99Ms": 1, "errorRatio": 1}, {"errorRatio": 0.1}]
)
def test_an_objective_that_cannot_be_is_refused(values):
    with pytest.raises(ValidationError):
        SloSpec.model_validate(values)
