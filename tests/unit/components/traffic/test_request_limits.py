"""Request limits: numbers as regular expressions, and the filter of the gateway."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.core.requests import MIB, RequestLimits
from components.errors import ManifestError
from components.traffic.gateway_manifest import SELECTOR
from components.traffic.request_limits import at_most, build_request_limits


@given(limit=st.integers(0, 2**31), number=st.integers(0, 2**40))
def test_the_expression_fits_exactly_the_numbers_up_to_the_limit(limit, number):
    assert (re.fullmatch(at_most(limit), str(number)) is not None) == (number <= limit)


@given(limit=st.integers(0, 2**31), near=st.integers(-2, 2))
def test_the_expression_is_exact_at_the_limit(limit, near):
    assert (re.fullmatch(at_most(limit), str(max(0, limit + near))) is not None) == (max(0, limit + near) <= limit)


@pytest.mark.parametrize("text", ["", "-1", "1e3", "0x1", " 1", "1.0", "+1"])
def test_what_is_no_number_never_fits(text):
    assert re.fullmatch(at_most(2 * MIB), text) is None


def test_each_host_has_its_own_limit_in_bytes():
    limits = {"b.test": RequestLimits(max_request_mib=3), "a.test": RequestLimits()}
    patches = build_request_limits("limits", "gateway", SELECTOR, 80, limits)["spec"]["configPatches"]
    found = {}
    for patch in patches[1:]:
        vhost = patch["match"]["routeConfiguration"]["vhost"]
        [context] = patch["patch"]["value"]["typed_per_filter_config"].values()
        found[vhost["name"]] = context["filter_context"]["maxBytes"]
    assert found == {"a.test:80": 2 * MIB + 65_536, "b.test:80": 3 * MIB + 65_536}


@given(in_flight=st.integers(1, 10_000), replicas=st.integers(1, 100))
def test_all_gateway_pods_and_both_protocols_together_keep_the_limit_also_while_the_gateway_is_updated(in_flight, replicas):
    limits, shares = RequestLimits(max_in_flight=in_flight), 2 * (replicas + 1)
    if in_flight < shares:
        with pytest.raises(ManifestError, match=f"maxInFlight {in_flight} leaves a gateway pod no request") as refused:
            limits.connections(replicas)
        assert f"at least {shares}" in refused.value.hint
    else:
        assert limits.connections(replicas) >= 1
        assert limits.connections(replicas) * shares <= in_flight
