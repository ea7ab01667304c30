"""Routes and subsets as Istio gets them."""

import re

import pytest

from components.core.model_identity import ModelIdentity
from components.errors import ManifestError
from components.traffic.durations import duration
from components.traffic.istio_manifest import Route, build_destination_rule, build_virtual_service
from components.traffic.spec import RoutingSpec

IDENTITY = ModelIdentity(name="magika", triton_name="magika.v_1", namespace="inference")


def virtual_service(weights=None, **routing):
    route = Route(
        identity=IDENTITY,
        domain="inference.test",
        gateway="inference-gateway/inference-gateway",
        weights=weights or {"v1": 90, "v2": 10},
        routing=RoutingSpec.model_validate(routing),
    )
    return build_virtual_service(route)


def subset_policy(**routing):
    rule = build_destination_rule(IDENTITY, 2, RoutingSpec.model_validate(routing), connections=32)
    (subset,) = rule["spec"]["subsets"]
    return subset["trafficPolicy"]


def serving_routes(weights=None, **routing):
    """The routes that lead to the servers by their weights."""
    return [route for route in virtual_service(weights, **routing)["spec"]["http"] if route["name"] in {"grpc", "http"}]


def matches(uri, path):
    """As Envoy matches: a regular expression must fit the whole path."""
    ((kind, pattern),) = uri.items()
    if kind == "regex":
        return re.fullmatch(pattern, path) is not None
    return path == pattern if kind == "exact" else path.startswith(pattern)


def port_for(path):
    """The port that the first matching route sends a path to; None where no route does."""
    for route in serving_routes():
        if any(matches(match["uri"], path) for match in route["match"]):
            (port,) = {destination["destination"]["port"]["number"] for destination in route["route"]}
            return port
    return None


@pytest.mark.parametrize("content_type", ["application/x-www-form-urlencoded", "Application/X-WWW-Form-Urlencoded; charset=utf-8"])
def test_a_form_is_refused_before_any_http_route_since_a_large_one_ends_the_server(content_type):
    names = [route["name"] for route in virtual_service()["spec"]["http"]]
    refusal = virtual_service()["spec"]["http"][names.index("no-forms")]
    (match,) = refusal["match"]
    assert re.fullmatch(match["headers"]["content-type"]["regex"], content_type)
    assert refusal["directResponse"]["status"] == 415
    assert names.index("no-forms") < names.index("http")


LONG, SHORT = "100000", "99999"
# 2 MiB and their description are what a stack that says nothing allows.
LARGEST, LARGER = "2162688", "2162689"


def answer(headers, method="POST", path="/v2/models/magika.v_1/infer"):
    """The status the gateway itself answers an HTTP request with; None when it goes to a server."""
    for route in virtual_service()["spec"]["http"]:
        if not route["name"].startswith("grpc") and any(takes(match, headers, method, path) for match in route["match"]):
            return route.get("directResponse", {}).get("status")
    return 404


def takes(match, headers, method, path):
    """As Envoy decides: every condition holds; an absent header is an empty one."""
    wanted = [re.fullmatch(rule["regex"], headers.get(name, "")) for name, rule in match.get("headers", {}).items()]
    unwanted = [re.fullmatch(rule["regex"], headers.get(name, "")) for name, rule in match.get("withoutHeaders", {}).items()]
    return (
        all(wanted)
        and not any(unwanted)
        and match.get("method", {"exact": method})["exact"] == method
        and matches(match.get("uri", {"prefix": "/"}), path)
    )


@pytest.mark.parametrize(
    "headers",
    [
        {"content-length": SHORT},
        {"content-length": LONG, "inference-header-content-length": "0"},
        {"content-length": LONG, "inference-header-content-length": SHORT},
        {"content-length": LARGEST, "inference-header-content-length": "0"},
    ],
)
def test_short_json_and_binary_bodies_up_to_the_limit_reach_a_server(headers):
    assert answer(headers) is None


@pytest.mark.parametrize(
    "headers",
    [
        {"content-length": LONG},
        {},
        {"content-length": LONG, "inference-header-content-length": LONG},
        {"content-length": LONG, "inference-header-content-length": "-1"},
        {"content-length": LONG, "inference-header-content-length": "1e9"},
    ],
)
def test_json_long_enough_to_overflow_the_servers_stack_is_refused(headers):
    assert answer(headers) == 413


@pytest.mark.parametrize("verb", ["generate", "generate_stream"])
def test_generate_reads_the_whole_body_as_json_whatever_the_header_says(verb):
    headers = {"content-length": LONG, "inference-header-content-length": "0"}
    assert answer(headers, path=f"/v2/models/magika.v_1/versions/1/{verb}") == 413


@pytest.mark.parametrize("encoding", ["gzip", "GZIP", "deflate", "identity, gzip"])
def test_a_compressed_body_is_refused_since_nothing_limits_what_it_grows_to(encoding):
    assert answer({"content-length": SHORT, "content-encoding": encoding}) == 415


@pytest.mark.parametrize("method", ["POST", "GET", "PUT", "DELETE"])
@pytest.mark.parametrize("length", [LARGER, "10000000", "99999999999999999999", "-1", "1e3", "0x10"])
def test_a_request_over_the_limit_reaches_no_server_whatever_its_method(method, length):
    """A server that has to hold it could end for want of memory."""
    assert answer({"content-length": length, "inference-header-content-length": "0"}, method=method) == 413


def test_a_post_that_does_not_say_its_length_is_refused():
    """Nothing would end it."""
    assert answer({"inference-header-content-length": "0"}) == 413


def test_what_is_under_way_is_bounded_by_connections_of_one_request_each():
    pool = subset_policy()["connectionPool"]
    assert (pool["tcp"]["maxConnections"], pool["http"]["maxConcurrentStreams"]) == (32, 1)


def test_a_question_without_a_body_is_never_long():
    assert answer({}, method="GET", path="/v2/health/ready") is None


def test_a_grpc_method_that_is_not_served_is_unknown_and_not_long():
    """404 reaches the caller as UNIMPLEMENTED; a request of gRPC never says its length."""
    assert answer({}, path="/inference.GRPCInferenceService/RepositoryIndex") == 404


@pytest.mark.parametrize("method", ["ModelInfer", "ModelStreamInfer", "ModelReady", "ModelMetadata", "ModelConfig", "ServerLive", "ServerReady"])
def test_grpc_inference_health_and_metadata_go_to_the_grpc_port(method):
    assert port_for(f"/inference.GRPCInferenceService/{method}") == 8001


@pytest.mark.parametrize(
    "path",
    [
        "/v2",
        "/v2/health/live",
        "/v2/health/ready",
        "/v2/models/magika.v_1",
        "/v2/models/magika.v_1/infer",
        "/v2/models/magika.v_1/ready",
        "/v2/models/magika.v_1/versions/2/infer",
        "/v2/models/magika.v_1/generate_stream",
    ],
)
def test_http_inference_health_and_metadata_go_to_the_http_port(path):
    assert port_for(path) == 8000


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/metrics",
        "/v2/repository/index",
        "/v2/repository/models/magika.v_1/unload",
        "/v2/systemsharedmemory/status",
        "/v2/cudasharedmemory/region/x/register",
        "/v2/trace/setting",
        "/v2/logging",
        "/v2/models/magika.v_1/trace/setting",
        "/v2/models/magika.v_1/infer/../../../repository/index",
        "/v2/models/magika.v_12/infer",
        "/v2/models/magikaxv_1/infer",
        "/v2/models/other/infer",
        "/v2/models/stats",
        "/v2/health/live/x",
        "/inference.GRPCInferenceService/RepositoryModelUnload",
        "/inference.GRPCInferenceService/RepositoryIndex",
        "/inference.GRPCInferenceService/SystemSharedMemoryRegister",
        "/inference.GRPCInferenceService/CudaSharedMemoryStatus",
        "/inference.GRPCInferenceService/TraceSetting",
        "/inference.GRPCInferenceService/LogSettings",
        "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    ],
)
def test_nothing_that_changes_the_server_or_belongs_to_another_model_is_reachable(path):
    assert port_for(path) is None


@pytest.mark.parametrize("weights", [{"v1": 90, "v2": 10}, {"v1": 100, "v2": 0}, {"v1": 0, "v2": 100}, {"v2": 100}])
def test_grpc_and_http_carry_the_same_weights_and_zero_is_written_out(weights):
    """istio/api#586."""
    for route in serving_routes(weights):
        assert {destination["destination"]["subset"]: destination["weight"] for destination in route["route"]} == weights


def test_the_route_is_bound_to_gateway_and_mesh_and_to_the_services_full_name():
    """istio/istio#7117: else callers inside the mesh pass the weights by."""
    spec = virtual_service()["spec"]
    assert spec["gateways"] == ["inference-gateway/inference-gateway", "mesh"]
    assert spec["hosts"] == ["magika.inference.test", "magika.inference.svc.cluster.local"]
    assert {d["destination"]["host"] for route in serving_routes() for d in route["route"]} == {"magika.inference.svc.cluster.local"}


def test_every_route_says_its_retries_and_a_503_is_not_among_them():
    """istio/istio#13851."""
    expected = {"attempts": 2, "retryOn": "connect-failure,refused-stream", "retryIgnorePreviousHosts": True}
    assert [route["retries"] for route in serving_routes()] == [expected, expected]


def test_no_retries_are_written_as_zero_attempts_and_nothing_beside():
    """Istio refuses conditions beside 0 attempts, and retries by default without a block."""
    assert [route["retries"] for route in serving_routes(retries={"attempts": 0})] == [{"attempts": 0}] * 2


def test_time_limits_are_rendered_and_an_absent_one_is_absent():
    (grpc, _) = serving_routes(timeoutSeconds=90)
    assert grpc["timeout"] == "90s"
    assert "perTryTimeout" not in grpc["retries"]
    (grpc, _) = serving_routes(timeoutSeconds=90, retries={"perTryTimeoutSeconds": 0.25})
    assert grpc["retries"]["perTryTimeout"] == "0.25s"


@pytest.mark.parametrize(("seconds", "text"), [(0.001, "0.001s"), (0.25, "0.25s"), (1, "1s"), (60.0, "60s"), (3600, "3600s"), (100, "100s")])
def test_durations_are_spelt_in_seconds(seconds, text):
    assert duration(seconds) == text


def test_an_external_host_of_ones_own_must_be_under_the_gateways_domain():
    assert virtual_service(host="files.api.inference.test")["spec"]["hosts"][0] == "files.api.inference.test"
    for host in ("files.example.com", "evilinference.test"):
        with pytest.raises(ManifestError, match="not under the gateway's domain"):
            virtual_service(host=host)


def test_a_fragment_names_one_subset_by_the_version_label_of_its_pods():
    rule = build_destination_rule(IDENTITY, 2, RoutingSpec(), connections=32)
    assert rule["metadata"]["name"] == "magika-v2"
    assert rule["spec"]["host"] == "magika.inference.svc.cluster.local"
    assert [(subset["name"], subset["labels"]) for subset in rule["spec"]["subsets"]] == [("v2", {"version": "v2"})]


def test_a_fragment_has_no_policy_outside_its_subset():
    """Of several fragments' top-level policies Istio keeps the first only."""
    assert set(build_destination_rule(IDENTITY, 1, RoutingSpec(), connections=32)["spec"]) == {"host", "subsets"}


def test_connecting_is_limited_to_what_the_stack_says():
    assert subset_policy(connectTimeoutMs=250)["connectionPool"]["tcp"]["connectTimeout"] == "0.25s"


def test_a_pod_is_ejected_for_failed_connections_and_never_for_its_answers():
    """Unset, Envoy ejects after five answers of 5xx, also for five bad requests of one caller."""
    outliers = subset_policy()["outlierDetection"]
    assert outliers["splitExternalLocalOriginErrors"] is True
    assert outliers["consecutiveLocalOriginFailures"] == 3
    assert (outliers["consecutive5xxErrors"], outliers["consecutiveGatewayErrors"]) == (0, 0)


def test_of_two_pods_one_may_be_ejected_and_a_lone_pod_never():
    """Envoy ejects while (ejected + 1) / pods stays at or below the limit."""
    assert subset_policy()["outlierDetection"]["maxEjectionPercent"] == 50
