"""Which paths of a model's host are the front's, and where a request that names a version goes."""

import pytest

from components.core.model_identity import ModelIdentity
from components.traffic.istio_manifest import Route, build_front_rule, build_virtual_service
from components.traffic.spec import RoutingSpec
from tests.unit.components.traffic.test_istio_manifest import matches

IDENTITY = ModelIdentity(name="magika", triton_name="magika", namespace="inference")
GRPC_INFER = "/inference.GRPCInferenceService/ModelInfer"


def routes(front_timeout_seconds=30.0, weights=None):
    route = Route(
        identity=IDENTITY,
        domain="inference.test",
        gateway="inference-gateway/inference-gateway",
        weights=weights or {"v1": 90, "v2": 10},
        routing=RoutingSpec(),
        front_timeout_seconds=front_timeout_seconds,
    )
    return build_virtual_service(route)["spec"]["http"]


def taken_by(path, headers=None, content_type="multipart/form-data; boundary=x", **route):
    """Name of the route that takes a request, as Envoy decides: the first whose conditions on path and headers hold."""
    for entry in routes(**route):
        for match in entry["match"]:
            wanted = {"content-type": content_type, **(headers or {})}
            named = {name: wanted.get(name, "") for name in match.get("headers", {})}
            fits = all(
                named[name] == rule["exact"] if "exact" in rule else matches({"regex": rule["regex"]}, named[name])
                for name, rule in match.get("headers", {}).items()
            )
            if fits and "uri" in match and "withoutHeaders" not in match and matches(match["uri"], path):
                return entry["name"]
            if fits and "uri" not in match:
                return entry["name"]
    return None


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/predict", "front"),
        ("/v1/models/magika/predict", "front"),
        ("/docs", "front"),
        ("/openapi.json", "front"),
        ("/v1/models/magika/batch", "front-batch"),
        ("/v2/models/magika/infer", "http"),
        (GRPC_INFER, "grpc"),
        ("/metrics", None),
        ("/health/ready", None),
        ("/v1/models/other/predict", None),
        ("/predict/x", None),
    ],
)
def test_predictions_and_documents_are_the_fronts_and_the_rest_is_not(path, name):
    assert taken_by(path) == name


@pytest.mark.parametrize("path", ["/predict", "/v1/models/magika/batch"])
def test_without_a_front_its_paths_lead_nowhere(path):
    assert taken_by(path, front_timeout_seconds=None) is None


@pytest.mark.parametrize("content_type", ["application/x-www-form-urlencoded", "application/json"])
def test_what_is_refused_before_triton_is_taken_by_the_front(content_type):
    """`curl --data-binary @file` says it is a form; the front takes it for the file it is."""
    assert taken_by("/predict", content_type=content_type) == "front"


def test_a_batch_has_no_time_limit_and_a_prediction_a_little_more_than_its_own():
    limits = {entry["name"]: entry.get("timeout") for entry in routes(30.0) if entry["name"].startswith("front")}
    assert limits == {"front": "35s", "front-batch": None}


def test_a_version_named_in_the_header_or_the_path_is_the_version_asked_whatever_the_weights():
    for weights in ({"v1": 90, "v2": 10}, {"v1": 100, "v2": 0}, {"v1": 0, "v2": 100}):
        assert taken_by(GRPC_INFER, {"x-model-version": "2"}, weights=weights) == "grpc-v2"
        assert taken_by("/v2/models/magika/versions/1/infer", weights=weights) == "http-v1"
        by_name = {entry["name"]: entry.get("route") for entry in routes(weights=weights)}
        for name in ("grpc-v2", "http-v2"):
            assert [(to["destination"]["subset"], to["weight"]) for to in by_name[name]] == [("v2", 100)]


def test_a_version_that_does_not_run_goes_by_the_weights_and_is_not_found_there():
    assert taken_by(GRPC_INFER, {"x-model-version": "3"}) == "grpc"
    assert taken_by("/v2/models/magika/versions/12/infer") == "http"


def test_a_request_that_the_front_has_begun_is_never_repeated():
    """istio/istio#13851."""
    for entry in routes():
        if entry["name"].startswith("front"):
            assert entry["retries"]["retryOn"] == "connect-failure,refused-stream"


def test_idle_connections_are_closed_by_the_proxy_before_the_front_does():
    """Closed by the server, a connection may break under a request that is just being sent (the front keeps them for 75 s)."""
    rule = build_front_rule(IDENTITY, RoutingSpec())
    assert rule["spec"]["host"] == "magika-front.inference.svc.cluster.local"
    assert rule["spec"]["trafficPolicy"]["connectionPool"]["http"]["idleTimeout"] == "60s"
