"""What we render for Istio is what Istio's own definitions allow."""

import copy

import pytest

from components.core.model_identity import ModelIdentity
from components.core.requests import RequestLimits
from components.traffic.gateway_manifest import build_gateway
from components.traffic.istio_manifest import Route, build_destination_rule, build_front_rule, build_virtual_service
from components.traffic.request_limits import build_request_limits
from components.traffic.spec import GatewaySpec, RoutingSpec

IDENTITY = ModelIdentity(name="magika", triton_name="magika", namespace="inference")
ROUTINGS = {
    "default": {},
    "every key": {
        "timeoutSeconds": 90.5,
        "connectTimeoutMs": 1000,
        "idempotent": True,
        "host": "files.inference.test",
        "retries": {"attempts": 3, "perTryTimeoutSeconds": 0.25, "on": ["5xx", "503", "reset", "unavailable"]},
    },
    "no retries": {"retries": {"attempts": 0}},
}


def virtual_service(weights, routing=None, front_timeout_seconds=None):
    route = Route(
        identity=IDENTITY,
        domain="inference.test",
        gateway="gateway/gateway",
        weights=weights,
        routing=routing or RoutingSpec(),
        front_timeout_seconds=front_timeout_seconds,
    )
    return build_virtual_service(route)


@pytest.mark.parametrize("routing", ROUTINGS.values(), ids=ROUTINGS)
@pytest.mark.parametrize("weights", [{"v1": 100}, {"v1": 90, "v2": 10}, {"v1": 100, "v2": 0}, {"v1": 0, "v2": 100}])
def test_virtual_services_are_allowed(check_istio, weights, routing):
    check_istio(virtual_service(weights, RoutingSpec.model_validate(routing)))


@pytest.mark.parametrize("routing", ROUTINGS.values(), ids=ROUTINGS)
def test_destination_rules_are_allowed(check_istio, routing):
    check_istio(build_destination_rule(IDENTITY, 2, RoutingSpec.model_validate(routing), connections=32))


def test_request_limits_are_allowed(check_istio):
    check_istio(build_request_limits("limits", "gateway", {"istio": "gateway"}, 80, {"magika.inference.test": RequestLimits()}))


def test_the_routes_and_the_rule_of_a_front_are_allowed(check_istio):
    check_istio(virtual_service({"v1": 90, "v2": 10}, front_timeout_seconds=0.5))
    check_istio(build_front_rule(IDENTITY, RoutingSpec()))


def test_the_gateway_is_allowed(check_istio):
    spec = GatewaySpec.model_validate({"domain": "inference.test", "service": {"type": "ClusterIP"}})
    check_istio(build_gateway(spec, "inference"))


@pytest.mark.parametrize(
    ("path", "value", "fault"),
    [
        (("http", 0, "route", 0, "wieght"), 10, "wieght"),
        (("http", 0, "route", 0, "weight"), "10", "weight"),
        (("http", 0, "match", 0, "uri"), {"prefix": "/a", "regex": "/b"}, "uri"),
        (("http", 0, "retries", "attempt"), 2, "attempt"),
        (("hosts",), "magika", "hosts"),
    ],
)
def test_the_check_itself_finds_misspelt_keys_and_wrong_types(check_istio, path, value, fault):
    manifest = copy.deepcopy(virtual_service({"v1": 90, "v2": 10}))
    node = manifest["spec"]
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = value
    with pytest.raises(AssertionError, match=fault):
        check_istio(manifest)


def test_the_check_itself_refuses_a_version_that_istio_does_not_serve(check_istio):
    with pytest.raises(AssertionError, match="no definition serves"):
        check_istio(virtual_service({"v1": 100}) | {"apiVersion": "networking.istio.io/v9"})
