"""The rule about VirtualServices as a plain function: pass, fail, missing, empty, exempt, many."""

from typing import Any

import pytest

from stacks.policies.rules_traffic import is_virtual_service, virtual_service_violations


def route(*weights: Any, **extra: Any) -> dict[str, Any]:
    return {"route": [{"destination": {"host": "m"}, "weight": weight} for weight in weights], "retries": {"attempts": 0}, **extra}


def violations(*routes: dict[str, Any]) -> list[str]:
    return list(virtual_service_violations({"http": list(routes)}))


@pytest.mark.parametrize("weights", [(100,), (90, 10), (100, 0), (100.0, 0.0)])
def test_explicit_weights_that_sum_to_100_pass(weights: tuple[Any, ...]) -> None:
    assert violations(route(*weights)) == []


@pytest.mark.parametrize(
    ("weights", "named"),
    [((90, 20), "110"), ((80,), "80"), ((0, 0), "sum to 0"), ((99.5, 0.5), "99.5"), ((True, 99), "True"), ((-10, 110), "-10")],
)
def test_weights_that_do_not_add_up_fail_with_the_numbers(weights: tuple[Any, ...], named: str) -> None:
    """istio/istio#50228, kiali/kiali#2108."""
    [violation] = violations(route(*weights))
    assert named in violation
    assert "spec.http[0]" in violation


def test_a_destination_without_weight_is_named() -> None:
    """istio/api#586."""
    incomplete = route(100)
    incomplete["route"].append({"destination": {"host": "m"}})
    [violation] = violations(incomplete)
    assert "destination 1 has no weight" in violation


@pytest.mark.parametrize("retries", [None, {}, {"retryOn": "connect-failure"}])
def test_a_missing_retry_block_fails(retries: Any) -> None:
    """istio/istio#13851."""
    silent = {**route(100), "retries": retries}
    [violation] = violations(silent)
    assert "retries.attempts: 0" in violation


def test_a_route_with_no_destination_fails() -> None:
    assert violations({"route": [], "retries": {"attempts": 0}}) == ["spec.http[0]: has no destination"]


@pytest.mark.parametrize("spec", [{}, {"http": []}, {"http": None}, {"tcp": [{"route": []}]}])
def test_a_virtual_service_without_http_routes_has_nothing_to_say(spec: dict[str, Any]) -> None:
    assert list(virtual_service_violations(spec)) == []


@pytest.mark.parametrize("answer", ["redirect", "directResponse", "delegate"])
def test_routes_that_send_nothing_on_are_exempt(answer: str) -> None:
    assert violations({answer: {}}) == []


def test_every_faulty_route_is_reported_with_its_place_and_name() -> None:
    found = violations(route(50, name="grpc"), route(100), {**route(1), "retries": None})
    assert [text.split(":")[0] for text in found] == ["spec.http[0] (grpc)", "spec.http[2]", "spec.http[2]"]


@pytest.mark.parametrize(
    ("token", "expected"),
    [
        ("kubernetes:networking.istio.io/v1:VirtualService", True),
        ("kubernetes:networking.istio.io/v1beta1:VirtualService", True),
        ("kubernetes:networking.istio.io/v1:DestinationRule", False),
        ("kubernetes:example.org/v1:VirtualService", False),
        ("inference:traffic:CanaryRoute", False),
        ("", False),
    ],
)
def test_only_istios_virtual_services_are_looked_at(token: str, expected: bool) -> None:
    assert is_virtual_service(token) is expected
