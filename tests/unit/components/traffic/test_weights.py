"""istio/api#586, istio/istio#50228, #23145: weights that are missing, zero, or not 100."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.errors import ManifestError
from components.traffic.spec import CanarySpec
from components.traffic.weights import check_weights, split


def test_a_canary_of_zero_is_accepted_and_written_out():
    assert check_weights({"stable": 100, "canary": 0}, {"stable", "canary"}) == {"stable": 100, "canary": 0}


@pytest.mark.parametrize(
    ("weights", "declared", "named"),
    [
        ({"stable": 90, "canary": 20}, {"stable", "canary"}, "sum to 110, not 100"),
        ({"stable": 90}, {"stable", "canary"}, "canary is declared but has no weight"),
        ({"stable": 0, "canary": 0}, {"stable", "canary"}, "sum to 0, not 100"),
        ({"stable": 80}, {"stable"}, "sum to 80, not 100"),
        ({"stable": 99.5, "canary": 0.5}, {"stable", "canary"}, "stable is 99.5, not a whole number"),
        ({"stable": True, "canary": 99}, {"stable", "canary"}, "stable is True, not a whole number"),
        ({"stable": 100.0}, {"stable"}, "stable is 100.0, not a whole number"),
        ({"stable": "100"}, {"stable"}, "stable is '100', not a whole number"),
        ({"stable": None, "canary": 100}, {"stable", "canary"}, "stable is None, not a whole number"),
        ({"stable": float("nan"), "canary": 100}, {"stable", "canary"}, "stable is nan, not a whole number"),
        ({"stable": 110, "canary": -10}, {"stable", "canary"}, "stable is 110, outside 0 to 100"),
        ({"stable": 100, "shadow": 0}, {"stable"}, "shadow is no declared subset"),
        ({}, set(), "sum to 0, not 100"),
    ],
)
def test_any_other_kind_of_weights_is_rejected_with_the_offending_value(weights, declared, named):
    with pytest.raises(ManifestError) as caught:
        check_weights(weights, declared)
    assert named in caught.value.message
    assert caught.value.hint


@given(stable=st.integers(1, 10**6), step=st.integers(1, 1000), weight=st.integers(0, 100))
def test_a_split_names_both_versions_gives_the_canary_its_weight_and_the_stable_version_the_rest(stable, step, weight):
    weights = split(stable, CanarySpec(version=stable + step, weight=weight))
    assert list(weights) == [f"v{stable}", f"v{stable + step}"]
    assert weights[f"v{stable + step}"] == weight
    assert sum(weights.values()) == 100


def test_without_a_canary_everything_goes_to_the_stable_version():
    assert split(3, None) == {"v3": 100}


def test_a_canary_that_is_the_stable_version_is_rejected():
    with pytest.raises(ManifestError, match="canary version 3 is the stable version too"):
        split(3, CanarySpec(version=3, weight=10))


@given(
    st.dictionaries(
        st.text(min_size=1, max_size=3), st.one_of(st.integers(-5, 105), st.floats(), st.booleans(), st.none(), st.text(max_size=3)), max_size=4
    )
)
def test_what_passes_the_check_is_always_whole_percents_that_sum_to_100(weights):
    try:
        checked = check_weights(weights, weights.keys())
    except ManifestError:
        return
    assert all(type(weight) is int and 0 <= weight <= 100 for weight in checked.values())
    assert sum(checked.values()) == 100
