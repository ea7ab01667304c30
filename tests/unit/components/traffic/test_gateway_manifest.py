"""The gateway chart's values and the Gateway object."""

import json
import re

import pytest

from components.core.envoy import subset_cluster
from components.core.model_identity import ModelIdentity
from components.traffic.gateway_manifest import build_gateway, build_gateway_values, build_namespace, gateway_port
from components.traffic.spec import GatewaySpec

IDENTITY = ModelIdentity(name="magika", triton_name="magika", namespace="inference")
NODE_PORT = {"type": "NodePort", "nodePort": 30080}
LOAD_BALANCER = {"type": "LoadBalancer", "annotations": {"example.com/scheme": "internal"}}


def gateway(service=NODE_PORT, **values):
    return GatewaySpec.model_validate({"domain": "inference.test", "service": service, **values})


def annotations(p99_values_ms=(200,)):
    return build_gateway_values(gateway(), p99_values_ms, 30)["podAnnotations"]


@pytest.mark.parametrize(
    "statistic",
    ["upstream_rq_time", "upstream_rq_2xx", "upstream_rq_5xx", "grpc.0", "grpc.14", "grpc.success", "grpc.failure", "upstream_cx_connect_fail"],
)
@pytest.mark.parametrize("port", [8000, 8001])
def test_latency_answers_and_grpc_status_of_every_version_are_exposed(statistic, port):
    """Envoy matches the whole name, in which Istio ends the cluster's by a semicolon."""
    (pattern,) = json.loads(annotations()["proxy.istio.io/config"])["proxyStatsMatcher"]["inclusionRegexps"]
    assert re.fullmatch(pattern, f"cluster.{subset_cluster(IDENTITY, 2, port)};.{statistic}")


@pytest.mark.parametrize(
    "name",
    [
        # Same series as the classes once Envoy has made labels of both, so a sum would count requests twice.
        "cluster.outbound|8000|v1|magika.inference.svc.cluster.local;.upstream_rq_200",
        "cluster.outbound|8000|v1|magika.inference.svc.cluster.local;.upstream_cx_tx_bytes_total",
        "cluster.outbound|443||kubernetes.default.svc.cluster.local;.upstream_rq_time",
    ],
)
def test_statistics_nobody_reads_are_not_kept(name):
    (pattern,) = json.loads(annotations()["proxy.istio.io/config"])["proxyStatsMatcher"]["inclusionRegexps"]
    assert not re.fullmatch(pattern, name)


def test_every_latency_objective_is_an_edge_of_the_histogram_buckets():
    (edges,) = json.loads(annotations([200, 37.5])["sidecar.istio.io/statsHistogramBuckets"]).values()
    assert {200, 37.5} <= set(edges)
    assert edges == sorted(set(edges))
    assert all(edge > 0 for edge in edges)


def test_a_node_port_service_has_exactly_the_port_the_stack_names():
    service = build_gateway_values(gateway(), [200], 30)["service"]
    assert service["type"] == "NodePort"
    assert [port.get("nodePort") for port in service["ports"]] == [30080]
    assert gateway_port(gateway()) == 30080


@pytest.mark.parametrize("service", [LOAD_BALANCER, {"type": "ClusterIP"}])
def test_other_services_name_no_node_port(service):
    values = build_gateway_values(gateway(service), [200], 30)["service"]
    assert values["type"] == service["type"]
    assert all("nodePort" not in port for port in values["ports"])
    assert values["annotations"] == service.get("annotations", {})
    assert gateway_port(gateway(service)) == 80


@pytest.mark.parametrize(("replicas", "budget"), [(1, {}), (2, {"maxUnavailable": 1})])
def test_a_lone_gateway_pod_has_no_disruption_budget_that_would_block_every_drain(replicas, budget):
    values = build_gateway_values(gateway(replicas=replicas), [200], 30)
    assert (values["replicaCount"], values["podDisruptionBudget"]) == (replicas, budget)


def test_a_rolling_update_of_the_gateway_takes_no_pod_away_first():
    assert build_gateway_values(gateway(), [200], 30)["strategy"]["rollingUpdate"]["maxUnavailable"] == 0


def test_the_gateway_object_selects_the_charts_pods_and_serves_the_domain_to_the_models_namespace_only():
    spec = build_gateway(gateway(), "inference")["spec"]
    # The chart labels its pods istio: <release name>.
    assert spec["selector"] == {"istio": "inference-gateway"}
    (server,) = spec["servers"]
    assert server["hosts"] == ["inference/*.inference.test"]
    assert server["port"] == {"number": 80, "name": "http", "protocol": "HTTP"}


def test_the_gateways_namespace_enforces_restricted_pod_security():
    assert build_namespace("x")["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"


@pytest.mark.parametrize("longest", [1, 30, 3600])
def test_a_stopping_gateway_finishes_the_longest_request(longest):
    """triton-inference-server/server#6939, for the proxy that all requests pass."""
    values = build_gateway_values(gateway(), [200], longest)
    drain = int(json.loads(values["podAnnotations"]["proxy.istio.io/config"])["terminationDrainDuration"].removesuffix("s"))
    assert longest < drain < values["terminationGracePeriodSeconds"]
