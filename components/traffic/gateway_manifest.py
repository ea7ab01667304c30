"""The ingress gateway: values of Istio's gateway chart, and the Gateway object."""

import json
from collections.abc import Sequence
from typing import Any

from components import labels
from components.core.slo import bucket_edges_ms
from components.traffic.istio_manifest import API_VERSION
from components.traffic.spec import GatewaySpec, LoadBalancerService, NodePortService
from serving.contract import GRPC_PORT, HTTP_PORT

NAME = "inference-gateway"
NAMESPACE = "inference-gateway"
# How VirtualServices name the Gateway.
REFERENCE = f"{NAMESPACE}/{NAME}"
SELECTOR = {"istio": NAME}
# Where callers inside the cluster find it; the chart names the Service after the release.
SERVICE_HOST = f"{NAME}.{NAMESPACE}.svc.cluster.local"
HTTP_SERVER_PORT = 80
# Between the longest request and the end of the drain, and between that and SIGKILL.
DRAIN_MARGIN_SECONDS = 5

# Envoy's statistics of the models' upstream clusters (cluster.outbound|<port>|<subset>|<host>;.<statistic>), of which Istio's bootstrap keeps
# none unless asked: latency, answers by class, what a retry or an ejection hides, and gRPC status, since a gRPC error is an HTTP 200.
# Classes only, no single codes: both end in the series envoy_cluster_upstream_rq and would be counted twice.
STATISTICS = (
    "upstream_rq_time",
    "upstream_rq_[1-5]xx",
    "upstream_rq_(active|timeout|retry)",
    "upstream_cx_(active|connect_fail)",
    "membership_(healthy|total)",
    "outlier_detection[.]ejections_active",
    "grpc[.]([0-9]+|success|failure|total)",
)
STATISTICS_REGEX = rf"cluster[.]outbound[|]({HTTP_PORT}|{GRPC_PORT})[|].*;[.]({'|'.join(STATISTICS)})"


def build_namespace(name: str) -> dict[str, Any]:
    """A namespace whose pods must meet the restricted pod security standard."""
    return {"name": name, "labels": {**labels.common("gateway"), **labels.RESTRICTED}}


def build_gateway_values(spec: GatewaySpec, p99_values_ms: Sequence[float], longest_request_seconds: int) -> dict[str, Any]:
    """Values of the gateway chart; the p99 objectives of all models become edges of the latency histogram's buckets.

    A gateway pod that stops finishes what is under way like a server does: Istio's default ends it after 5 s, in the middle of longer requests.
    What has no time limit, a front's batch, it cuts off when the longest request would have ended.
    """
    drain = longest_request_seconds + DRAIN_MARGIN_SECONDS
    return {
        "replicaCount": spec.replicas,
        "autoscaling": {"enabled": False},
        "podDisruptionBudget": {"maxUnavailable": 1} if spec.replicas > 1 else {},
        "strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
        # The placeholder image `auto` has no tag, so Kubernetes would fill in Always before the injector names the real one.
        "imagePullPolicy": "IfNotPresent",
        "podAnnotations": _annotations(p99_values_ms, drain),
        "terminationGracePeriodSeconds": drain + DRAIN_MARGIN_SECONDS,
        "securityContext": {
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
            "sysctls": [{"name": "net.ipv4.ip_unprivileged_port_start", "value": "0"}],
        },
        # The chart's injected probe looks every 15 s only.
        "readinessProbe": {"httpGet": {"path": "/healthz/ready", "port": 15021}, "periodSeconds": 1, "timeoutSeconds": 3, "failureThreshold": 4},
        "service": _service(spec),
    }


def build_gateway(spec: GatewaySpec, models_namespace: str) -> dict[str, Any]:
    """The Gateway: plain HTTP/1.1 and HTTP/2 on one port, for hosts of the domain, claimed by VirtualServices of the models' namespace only."""
    server = {
        "port": {"number": HTTP_SERVER_PORT, "name": "http", "protocol": "HTTP"},
        "hosts": [f"{models_namespace}/*.{spec.domain}"],
    }
    return {
        "apiVersion": API_VERSION,
        "kind": "Gateway",
        "metadata": {"name": NAME, "namespace": NAMESPACE, "labels": labels.common("gateway")},
        "spec": {"selector": SELECTOR, "servers": [server]},
    }


def gateway_port(spec: GatewaySpec) -> int:
    """The port callers use: the node port, or that of the Service."""
    return spec.service.node_port if isinstance(spec.service, NodePortService) else HTTP_SERVER_PORT


def _annotations(p99_values_ms: Sequence[float], drain_seconds: int) -> dict[str, str]:
    """Both are read when Envoy starts (istio/istio pkg/bootstrap/config.go, getStatsOptions), so a new objective restarts the gateway's pods."""
    config = {"proxyStatsMatcher": {"inclusionRegexps": [STATISTICS_REGEX]}, "terminationDrainDuration": f"{drain_seconds}s"}
    return {
        "proxy.istio.io/config": json.dumps(config, sort_keys=True),
        # By prefix of the statistic's name; "cluster" fits the name with the cluster's name in it and without.
        "sidecar.istio.io/statsHistogramBuckets": json.dumps({"cluster": bucket_edges_ms(list(p99_values_ms))}),
    }


def _service(spec: GatewaySpec) -> dict[str, Any]:
    port: dict[str, Any] = {"name": "http2", "port": HTTP_SERVER_PORT, "protocol": "TCP", "targetPort": HTTP_SERVER_PORT}
    if isinstance(spec.service, NodePortService):
        port["nodePort"] = spec.service.node_port
    annotations = spec.service.annotations if isinstance(spec.service, LoadBalancerService) else {}
    return {"type": spec.service.type, "annotations": annotations, "ports": [port]}
