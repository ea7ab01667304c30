"""What the gateway tells Prometheus: latency and errors per model version, with bucket edges around the objective, and gRPC status."""

import re
from collections.abc import Iterator

import pytest

from components.core.envoy import subset_cluster
from components.core.model_identity import ModelIdentity
from loadtests.engine import Load
from serving.contract import GRPC_PORT, HTTP_PORT
from tests.e2e.platform import MODEL, NAMESPACE, Platform
from tests.e2e.traffic import assert_no_failures, counting_plan, over_grpc, over_http

pytestmark = pytest.mark.e2e

GATEWAY = "inference-gateway"
STATISTICS_PORT = 15090
IDENTITY = ModelIdentity(MODEL, MODEL, NAMESPACE)
SAMPLE = re.compile(r"^(?P<name>\w+)\{(?P<labels>.*)\} (?P<value>\S+)$")
LABEL = re.compile(r'(\w+)="([^"]*)"')


@pytest.fixture(scope="module")
def exposition(platform: Platform) -> str:
    """The gateway's statistics after traffic to both versions over both protocols."""
    with Load(counting_plan(50, 8), [over_http(platform), over_grpc(platform)]) as load:
        assert_no_failures(load.finish())
    [pod, *_] = platform.kube.ready_pods(GATEWAY, {"istio": GATEWAY})
    return platform.kube.pod_call("GET", pod, STATISTICS_PORT, "stats/prometheus")


def samples(exposition: str, name: str) -> Iterator[tuple[dict[str, str], float]]:
    for line in exposition.splitlines():
        if (match := SAMPLE.match(line)) and match["name"] == name:
            yield dict(LABEL.findall(match["labels"])), float(match["value"])


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("port", [HTTP_PORT, GRPC_PORT])
def test_latency_is_a_histogram_per_version_with_the_objective_as_an_edge(platform: Platform, exposition: str, version: int, port: int) -> None:
    cluster = subset_cluster(IDENTITY, version, port)
    buckets = {
        labels["le"]: value for labels, value in samples(exposition, "envoy_cluster_upstream_rq_time_bucket") if labels["cluster_name"] == cluster
    }
    objective = float(platform.config()["models"][MODEL]["slo"]["p99Ms"])
    assert {objective * 0.8, objective, objective * 1.25} <= {float(edge) for edge in buckets}
    assert buckets["+Inf"] > 0


@pytest.mark.parametrize("version", [1, 2])
def test_answers_are_counted_by_class_and_version(exposition: str, version: int) -> None:
    cluster = subset_cluster(IDENTITY, version, HTTP_PORT)
    classes = {
        labels["response_code_class"]: value
        for labels, value in samples(exposition, "envoy_cluster_upstream_rq")
        if labels["cluster_name"] == cluster
    }
    assert classes.get("2xx", 0) > 0, classes


def test_grpc_status_is_counted(exposition: str) -> None:
    cluster = subset_cluster(IDENTITY, 1, GRPC_PORT)
    counted = {
        line.split("{")[0] for line in exposition.splitlines() if f'cluster_name="{cluster}"' in line and line.startswith("envoy_cluster_grpc_")
    }
    assert {"envoy_cluster_grpc_0", "envoy_cluster_grpc_success", "envoy_cluster_grpc_total"} <= counted
