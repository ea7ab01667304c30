"""The end of a pod while requests of twenty seconds are under way on it."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from components.core.model_identity import ModelIdentity
from components.core.requests import DEFAULT_LIMITS
from components.core.rollout import ReplicaRange
from components.inference.plan import VersionPlan, plan_versions
from components.inference.spec import LoadedModel, ModelFootprint, ModelVersion, ServerSpec
from components.inference.triton_manifest import build_config_map, build_deployment, build_service, build_service_account
from components.traffic.gateway_manifest import REFERENCE
from components.traffic.istio_manifest import Route, build_destination_rule, build_virtual_service
from components.traffic.spec import RoutingSpec
from loadtests.engine import Load
from loadtests.http_target import HttpTarget
from loadtests.payloads import Document, Signature
from loadtests.plan import Plan
from serving.contract import REPOSITORY_PATH
from tests.e2e.kube import Manifest
from tests.e2e.platform import NAMESPACE, Platform
from tests.e2e.traffic import assert_no_failures, gateway
from tests.e2e.waits import wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

IDENTITY = ModelIdentity("drain", "drain", NAMESPACE)
SIGNATURE = Signature("drain", "seconds", "slept")
RPS = 50
LONG_SECONDS = 20
# One request in a hundred is long, so ten are under way at a time, and a pod holds all of them when it is alone.
DOCUMENTS = (Document(str(LONG_SECONDS).encode(), "yes"), *(Document(b"0.01", "yes"),) * 99)
INSTANCES = 14
MODEL = """
import time

import numpy
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self._sleep(pb_utils.get_input_tensor_by_name(request, "seconds").as_numpy()) for request in requests]

    def _sleep(self, seconds):
        time.sleep(float(seconds.ravel()[0]))
        return pb_utils.InferenceResponse([pb_utils.Tensor("slept", numpy.full(seconds.shape, b"yes", dtype=object))])
"""
CONFIG = f"""
name: "drain"
backend: "python"
max_batch_size: 1
input {{ name: "seconds" data_type: TYPE_STRING dims: 1 }}
output {{ name: "slept" data_type: TYPE_STRING dims: 1 }}
instance_group {{ count: {INSTANCES} kind: KIND_CPU }}
"""
# Interpreters of two pods on a machine that is busy with other things.
START_SECONDS = 120
# Until several long requests are under way.
BEFORE_SECONDS = 8


def planned() -> VersionPlan:
    """Everything about the end of a pod as the platform plans it for `maxRequestSeconds: 60`."""
    footprint = ModelFootprint(instances=INSTANCES, memory_mib=40, shared_memory_mib=0, load_budget_seconds=60, python_backend="python")
    model = LoadedModel(name=IDENTITY.triton_name, version=1, config_pbtxt=CONFIG, size_bytes=0, files_sha256="0" * 64, footprint=footprint)
    version = ModelVersion(version=1, models=(model,), replicas=ReplicaRange.of(2))
    server = ServerSpec(max_request_seconds=60, memory_mib=2048, cpu_request=0.1, shared_memory_mib_per_instance=1)
    [plan] = plan_versions(IDENTITY, server, None, (version,))
    return plan


def manifests(platform: Platform) -> list[Manifest]:
    plan, routing = planned(), RoutingSpec()
    deployment = build_deployment(plan, platform.images["triton"])
    pod = deployment["spec"]["template"]["spec"]
    mount = {"name": "source", "mountPath": f"{REPOSITORY_PATH}/{IDENTITY.triton_name}/1/model.py", "subPath": "model.py", "readOnly": True}
    pod["containers"][0]["volumeMounts"].append(mount)
    pod["volumes"].append({"name": "source", "configMap": {"name": "drain-source"}})
    domain = platform.config()["gateway"]["domain"]
    route = Route(identity=IDENTITY, domain=domain, gateway=REFERENCE, weights={"v1": 100}, routing=routing)
    return [
        typed("v1", "ConfigMap", {"metadata": {"name": "drain-source", "namespace": NAMESPACE}, "data": {"model.py": MODEL}}),
        typed("v1", "ConfigMap", build_config_map(plan)),
        typed("v1", "ServiceAccount", build_service_account(IDENTITY)),
        typed("v1", "Service", build_service(IDENTITY, awaited=False)),
        typed("apps/v1", "Deployment", deployment),
        build_destination_rule(IDENTITY, 1, routing, DEFAULT_LIMITS.connections(1)),
        build_virtual_service(route),
    ]


def typed(api_version: str, kind: str, manifest: dict[str, Any]) -> Manifest:
    return {"apiVersion": api_version, "kind": kind, **manifest}


@pytest.fixture
def target(platform: Platform) -> Iterator[HttpTarget]:
    """The model in two pods behind the gateway."""
    with platform.kube.created(manifests(platform)):
        wait_until_both_serve(platform)
        authority = f"{IDENTITY.name}.{platform.config()['gateway']['domain']}"
        yield HttpTarget(name="http", address=gateway(platform), authority=authority, signature=SIGNATURE, documents=DOCUMENTS)


def wait_until_both_serve(platform: Platform) -> list[Manifest]:
    selector = build_deployment(planned(), "")["spec"]["selector"]["matchLabels"]
    return wait_for("both pods are ready", lambda: platform.kube.ready_pods(NAMESPACE, selector), lambda pods: len(pods) == 2, seconds=START_SECONDS)


def test_no_request_fails_when_a_pod_ends_under_requests_of_twenty_seconds(platform: Platform, target: HttpTarget) -> None:
    """triton-inference-server/server#6939, #6230, #1927: 50 requests/s, one in a hundred of them 20 s long, one of two pods is deleted."""
    victim, _ = wait_until_both_serve(platform)
    plan = Plan(rate_rps=RPS, duration_seconds=120, timeout_seconds=60, lag_limit_seconds=5)
    with Load(plan, [target]) as load:
        time.sleep(BEFORE_SECONDS)
        deleted = load.mark("deleted")
        platform.kube.delete("pods", victim["metadata"]["name"], NAMESPACE, seconds=90)
        gone = load.mark("gone")
    report = load.report().raise_if_invalid()
    assert_no_failures(report)
    under_way = [sample for sample in report.samples if sample.sent < deleted < sample.done and sample.done - sample.sent > LONG_SECONDS]
    assert len(under_way) >= 2, "no long request was under way when the pod was told to end"
    # It waited for the last of its requests, and not for the whole time it may take.
    assert planned().drain.pre_stop < gone - deleted < planned().drain.grace_period - LONG_SECONDS
