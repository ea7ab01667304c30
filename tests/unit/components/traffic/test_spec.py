"""What a person may and may not say about traffic."""

import pytest
from pydantic import ValidationError

from components.traffic.spec import NOT_SENT, CanarySpec, GatewaySpec, RoutingSpec


def rejected(model, **values):
    with pytest.raises(ValidationError) as caught:
        model.model_validate(values)
    return str(caught.value)


@pytest.mark.parametrize("weight", [True, 99.5, "25", None, -1, 101])
def test_a_canary_weight_is_a_whole_number_of_percent_and_nothing_else(weight):
    assert "weight" in rejected(CanarySpec, version=2, weight=weight)


def test_a_canary_without_weight_is_rejected_rather_than_defaulted():
    assert "weight" in rejected(CanarySpec, version=2)


@pytest.mark.parametrize("weight", [0, 100])
def test_the_ends_of_the_range_are_weights_too(weight):
    assert CanarySpec(version=2, weight=weight).weight == weight


def test_by_default_only_requests_that_no_server_has_seen_are_retried():
    """istio/istio#13851."""
    assert RoutingSpec().retries.on == ("connect-failure", "refused-stream")
    assert set(RoutingSpec().retries.on) <= NOT_SENT


@pytest.mark.parametrize(
    "condition", ["5xx", "503", "502", "500", "504", "gateway-error", "reset", "unavailable", "cancelled", "retriable-4xx", "internal"]
)
def test_a_retry_that_could_repeat_an_inference_is_rejected_unless_the_model_is_idempotent(condition):
    """istio/istio#13851, #50506, #27340."""
    retries = {"on": ["connect-failure", condition]}
    message = rejected(RoutingSpec, retries=retries)
    assert condition in message
    assert "idempotent: true" in message
    assert RoutingSpec.model_validate({"retries": retries, "idempotent": True}).retries.on == ("connect-failure", condition)


def test_an_unknown_retry_condition_is_rejected():
    assert "conect-failure" in rejected(RoutingSpec, retries={"on": ["conect-failure"]})


def test_tries_that_do_not_fit_into_the_timeout_are_rejected_with_the_product():
    """Attempts x per-try timeout <= route timeout."""
    message = rejected(RoutingSpec, timeoutSeconds=30, retries={"attempts": 3, "perTryTimeoutSeconds": 10.5})
    assert "= 31.5 s exceeds timeoutSeconds 30" in message


@pytest.mark.parametrize(("attempts", "per_try"), [(3, 10.0), (2, 15), (0, 30), (1, 30)])
def test_tries_that_just_fit_into_the_timeout_are_accepted(attempts, per_try):
    assert RoutingSpec.model_validate({"timeoutSeconds": 30, "retries": {"attempts": attempts, "perTryTimeoutSeconds": per_try}})


def test_a_single_try_longer_than_the_timeout_is_rejected_also_without_retries():
    assert "exceeds timeoutSeconds 30" in rejected(RoutingSpec, timeoutSeconds=30, retries={"attempts": 0, "perTryTimeoutSeconds": 31})


def test_connecting_to_a_pod_may_take_a_second_at_most():
    assert RoutingSpec().connect_timeout_ms <= 1000
    assert "connectTimeoutMs" in rejected(RoutingSpec, connectTimeoutMs=1001)


@pytest.mark.parametrize(
    "service",
    [
        {"type": "NodePort"},
        {"type": "NodePort", "nodePort": 80},
        {"type": "NodePort", "nodePort": True},
        {"type": "LoadBalancer", "nodePort": 30080},
        {"type": "ClusterIP", "annotations": {}},
        {"type": "ExternalName"},
        {},
    ],
)
def test_a_gateway_service_has_the_keys_of_its_type_and_no_others(service):
    assert "service" in rejected(GatewaySpec, domain="inference.test", service=service)


@pytest.mark.parametrize(
    "domain", ["", "test", "*.inference.test", "Inference.test", "inference..test", "-a.test", "a.test.", "http://a.test", "a.test:80"]
)
def test_a_domain_is_a_plain_dns_name_with_a_dot(domain):
    assert "domain" in rejected(GatewaySpec, domain=domain, service={"type": "ClusterIP"})
