"""Istio's objects of a model: a VirtualService, and a DestinationRule fragment per version.

The DestinationRule is in fragments because Istio merges the rules of one host by adding up their subsets, each with its own traffic policy
(istio/istio pilot/pkg/model/destination_rule.go, mergeDestinationRule): a version brings its subset along and takes it away, and the object of
the other version is not touched. Only policies inside a subset survive the merge of several rules whole; of top-level ones the first wins.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from components import labels
from components.core.model_identity import ModelIdentity, version_label
from components.errors import ManifestError
from components.traffic.durations import duration
from components.traffic.front_routes import build_front_routes
from components.traffic.request_limits import too_large
from components.traffic.spec import RoutingSpec
from serving.contract import GRPC_PORT, GRPC_SERVICE, HTTP_PORT, LIVE_PATH, READY_PATH, VERSION_HEADER

API_VERSION = "networking.istio.io/v1"
# Istio's word for every proxy in the mesh. Bound from the start: it does nothing while no caller has a proxy, and a caller that gets one obeys
# the weights at once instead of passing them by.
MESH = "mesh"

# Of the gRPC service the inference, health and metadata methods are served. What changes the server stays unreachable: Repository*,
# SystemSharedMemory*, CudaSharedMemory*, TraceSetting, LogSettings.
GRPC_METHOD_GROUPS = ("Model", "Server")
# The same over HTTP: these of /v2/models/<model>[/versions/<n>]/..., and nothing of repository, shared memory, trace, logging.
HTTP_MODEL_VERBS = ("ready", "infer", "generate", "generate_stream", "config", "stats")

# A length in bytes below MAX_JSON_BYTES, as a header's value.
MAX_JSON_DIGITS = 5
MAX_JSON_BYTES = 10**MAX_JSON_DIGITS
SMALL = {"regex": f"[0-9]{{1,{MAX_JSON_DIGITS}}}"}
LONG_JSON = f"JSON is limited to {MAX_JSON_BYTES - 1} bytes of known length: send tensors as binary data, with Inference-Header-Content-Length"


@dataclass(frozen=True, kw_only=True)
class Route:
    """What the route of a model needs to know. `gateway` is <namespace>/<name>; `weights` are in percent per subset, checked.

    `front_timeout_seconds` is the longest request of the model's HTTP front; None: it has no front.
    """

    identity: ModelIdentity
    domain: str
    gateway: str
    weights: Mapping[str, int]
    routing: RoutingSpec
    front_timeout_seconds: float | None = None


def external_host(identity: ModelIdentity, routing: RoutingSpec, domain: str) -> str:
    """The name callers outside use; raises ManifestError for an override that the gateway does not serve."""
    host = routing.host or f"{identity.name}.{domain}"
    if not host.endswith(f".{domain}"):
        raise ManifestError(
            f"models.{identity.name}.routing.host {host!r} is not under the gateway's domain {domain!r}, so no request would arrive",
            hint=f"end it in .{domain}, change gateway.domain, or drop it for {identity.name}.{domain}",
        )
    return host


def build_virtual_service(route: Route) -> dict[str, Any]:
    """The routes of a model: gRPC and HTTP, with the same weights; a path that is not listed is answered 404.

    A request that names a version goes to that version whatever the weights: another one's server could only say that it does not have it.
    """
    identity = route.identity
    grpc = [{"uri": {"prefix": f"/{GRPC_SERVICE}/{group}"}} for group in GRPC_METHOD_GROUPS]
    http = [
        _model_path(identity, "(/versions/[0-9]+)?"),
        *({"uri": {"exact": path}} for path in (LIVE_PATH, READY_PATH, "/v2")),
    ]
    fronts = [] if route.front_timeout_seconds is None else build_front_routes(identity, route.front_timeout_seconds, _retries(route.routing))
    return {
        "apiVersion": API_VERSION,
        "kind": "VirtualService",
        "metadata": {"name": identity.name, "namespace": identity.namespace, "labels": labels.model(identity.name)},
        "spec": {
            "hosts": [external_host(identity, route.routing, route.domain), identity.host],
            "gateways": [route.gateway, MESH],
            "http": [
                *_pinned_grpc(route, grpc),
                _http_route(route, "grpc", grpc, GRPC_PORT),
                *fronts,
                *_refusals(route.routing),
                *_pinned_http(route),
                _http_route(route, "http", http, HTTP_PORT),
            ],
        },
    }


def build_destination_rule(identity: ModelIdentity, version: int, routing: RoutingSpec, connections: int) -> dict[str, Any]:
    """The fragment of one version: subset v<n>, the pods labelled so, and how to connect to them.

    `connections` is what a proxy may have open to them per protocol.
    """
    subset = version_label(version)
    return {
        "apiVersion": API_VERSION,
        "kind": "DestinationRule",
        "metadata": {"name": identity.deployment(version), "namespace": identity.namespace, "labels": labels.model(identity.name)},
        "spec": {
            "host": identity.host,
            "subsets": [{"name": subset, "labels": {labels.VERSION: subset}, "trafficPolicy": _traffic_policy(routing, connections)}],
        },
    }


def build_front_rule(identity: ModelIdentity, routing: RoutingSpec) -> dict[str, Any]:
    """How to connect to the pods of the model's HTTP front."""
    return {
        "apiVersion": API_VERSION,
        "kind": "DestinationRule",
        "metadata": {"name": identity.front, "namespace": identity.namespace, "labels": labels.front(identity.name)},
        "spec": {"host": identity.front_host, "trafficPolicy": _traffic_policy(routing)},
    }


def _model_path(identity: ModelIdentity, versions: str) -> dict[str, Any]:
    """Match of the model's own paths over HTTP, with what of `versions` (a regular expression) stands in them."""
    model_path = f"/v2/models/{identity.triton_name.replace('.', '[.]')}"
    return {"uri": {"regex": f"{model_path}{versions}(/({'|'.join(HTTP_MODEL_VERBS)}))?"}}


def _pinned_grpc(route: Route, grpc: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Over gRPC the version stands in the message, which no proxy reads, so a header says it too."""
    return [
        _http_route(
            route, f"grpc-{subset}", [{**match, "headers": {VERSION_HEADER: {"exact": _number(subset)}}} for match in grpc], GRPC_PORT, subset
        )
        for subset in route.weights
    ]


def _pinned_http(route: Route) -> list[dict[str, Any]]:
    return [
        _http_route(route, f"http-{subset}", [_model_path(route.identity, f"/versions/{_number(subset)}")], HTTP_PORT, subset)
        for subset in route.weights
    ]


def _number(subset: str) -> str:
    return subset.removeprefix("v")


def _http_route(route: Route, name: str, match: list[dict[str, Any]], port: int, only: str | None = None) -> dict[str, Any]:
    """To all versions by their weights, or to one of them alone."""
    destinations = [
        {"destination": {"host": route.identity.host, "subset": subset, "port": {"number": port}}, "weight": weight}
        for subset, weight in (route.weights if only is None else {only: 100}).items()
    ]
    return {
        "name": name,
        "match": match,
        "route": destinations,
        "timeout": duration(route.routing.timeout_seconds),
        "retries": _retries(route.routing),
    }


def _refusals(routing: RoutingSpec) -> list[dict[str, Any]]:
    """What ends a server (Triton 2.51, by SIGSEGV or for want of memory) and therefore never reaches one.

    A form of 4 MB, which is what curl sends unless told otherwise. JSON nested so deep that reading it overflows the stack (the servers have one for
    MAX_JSON_BYTES): be it the whole body, the part that Inference-Header-Content-Length counts (`generate` does not heed that header), or what a
    compressed body grows to. A body of unknown length counts as long.
    """
    short_body = {"content-length": SMALL}
    forms = [{"headers": {"content-type": {"regex": "(?i)application/x-www-form-urlencoded.*"}}}]
    compressed = [{"headers": {"content-encoding": {"regex": "(?i).*(gzip|deflate).*"}}}]
    long_json = [
        {"method": {"exact": "POST"}, "uri": {"prefix": "/v2/"}, "withoutHeaders": {**short_body, "inference-header-content-length": SMALL}},
        {"method": {"exact": "POST"}, "uri": {"regex": ".*/generate(_stream)?"}, "withoutHeaders": short_body},
    ]
    return [
        _refuse("no-forms", forms, HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "send Content-Type: application/octet-stream or application/json"),
        _refuse("no-compression", compressed, HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "send the body uncompressed"),
        _refuse("no-large-request", *too_large(routing.requests)),
        _refuse("no-long-json", long_json, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, LONG_JSON),
    ]


def _refuse(name: str, match: list[dict[str, Any]], status: HTTPStatus, way_out: str) -> dict[str, Any]:
    return {"name": name, "match": match, "directResponse": {"status": status.value, "body": {"string": f"{way_out}\n"}}}


def _retries(routing: RoutingSpec) -> dict[str, Any]:
    """Always a block: without one Istio retries twice, also when a server has answered 503 (istio/istio pilot/.../route/retry/retry.go)."""
    retries = routing.retries
    if retries.attempts == 0:
        # Istio refuses conditions beside 0 attempts.
        return {"attempts": 0}
    per_try = retries.per_try_timeout_seconds
    return {
        "attempts": retries.attempts,
        "retryOn": ",".join(retries.on),
        "retryIgnorePreviousHosts": True,
        **({} if per_try is None else {"perTryTimeout": duration(per_try)}),
    }


def _traffic_policy(routing: RoutingSpec, connections: int | None = None) -> dict[str, Any]:
    """With `connections`: one request per connection, gRPC too, so that the connections bound what is under way; what finds none waits at the proxy, its body unread."""
    return {
        # Fewest requests in flight first: inference times differ, so equal turns would queue behind slow ones.
        "loadBalancer": {"simple": "LEAST_REQUEST"},
        "connectionPool": {
            "tcp": {
                "connectTimeout": duration(routing.connect_timeout_ms / 1000),
                **({} if connections is None else {"maxConnections": connections}),
            },
            # Triton never closes an idle connection, so the proxy is the one that does, and no request is sent into a closing one.
            # Whatever the mesh prefers, Triton's HTTP server speaks HTTP/1.1 only.
            "http": {"idleTimeout": "60s", "h2UpgradePolicy": "DO_NOT_UPGRADE", **({} if connections is None else {"maxConcurrentStreams": 1})},
        },
        "outlierDetection": _outlier_detection(),
    }


def _outlier_detection() -> dict[str, Any]:
    """Take a pod out that cannot be reached, until Kubernetes has noticed too; never for what it answers.

    A killed pod has no requests in flight, so LEAST_REQUEST prefers it and even retries find it again: after three failed connections it is out.
    Answers do not count: a model answers 5xx to a bad request, and Envoy would take a pod out after five unless told 0 (Istio passes 0 as "not
    enforced": cluster_traffic_policy.go, applyOutlierDetection). Half of the pods at most: a lone pod stays in, since without it nothing is left.
    """
    return {
        "splitExternalLocalOriginErrors": True,
        "consecutiveLocalOriginFailures": 3,
        "consecutive5xxErrors": 0,
        "consecutiveGatewayErrors": 0,
        "interval": "1s",
        "baseEjectionTime": "5s",
        "maxEjectionPercent": 50,
    }
