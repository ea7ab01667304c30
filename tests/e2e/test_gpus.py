"""Simulated GPUs are resources of a real kubelet."""

import json
from collections.abc import Iterator

import pytest

from components.core.slots import GPU_RESOURCE
from tests.e2e.kube import Kube, Manifest
from tests.e2e.namespaces import namespace
from tests.e2e.platform import Platform
from tests.e2e.waits import wait_for

pytestmark = pytest.mark.e2e

SIMULATOR = {"app.kubernetes.io/name": "gpu-simulator"}
SIMULATOR_NAMESPACE = "kube-system"
CONTROL_PORT = 9410
KUBELET_SECONDS = 30


def allocatable(kube: Kube) -> list[int]:
    return [int(node["status"]["allocatable"].get(GPU_RESOURCE, "0")) for node in kube.find("nodes")]


@pytest.fixture
def count(platform: Platform) -> int:
    return int(platform.config()["cluster"]["simulatedGpus"]["count"])


@pytest.fixture
def own_namespace(platform: Platform) -> Iterator[str]:
    with namespace(platform.kube, "gpus") as name:
        yield name


def pod_with_gpus(name: str, where: str, image: str, gpus: int) -> Manifest:
    """A pod that asks for GPUs and ends at once."""
    container = {
        "name": "main",
        "image": image,
        "command": ["python3", "-c", "import os; print(sorted(name for name in os.environ if 'VISIBLE' in name))"],
        "resources": {"limits": {GPU_RESOURCE: str(gpus), "cpu": "100m", "memory": "64Mi"}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": where},
        "spec": {"restartPolicy": "Never", "automountServiceAccountToken": False, "containers": [container]},
    }


def test_a_node_offers_as_many_gpus_as_the_stack_file_says(platform: Platform, count: int) -> None:
    assert set(allocatable(platform.kube)) == {count}


def test_a_pod_that_asks_for_a_gpu_gets_one_and_one_that_asks_for_too_many_waits(platform: Platform, count: int, own_namespace: str) -> None:
    kube = platform.kube
    kube.create(pod_with_gpus(f"gpus-{gpus}", own_namespace, platform.images["triton"], gpus) for gpus in (1, count + 1))
    phases = wait_for(
        "the pod with a GPU ends",
        lambda: {pod["metadata"]["name"]: pod["status"].get("phase") for pod in kube.find("pods", own_namespace)},
        lambda seen: seen["gpus-1"] in {"Succeeded", "Failed"},
        seconds=60,
    )
    assert phases == {"gpus-1": "Succeeded", f"gpus-{count + 1}": "Pending"}


def test_an_unhealthy_gpu_is_no_longer_offered(platform: Platform, count: int) -> None:
    kube = platform.kube
    [simulator] = kube.ready_pods(SIMULATOR_NAMESPACE, SIMULATOR)

    def control(method: str, path: str, body: str | None = None) -> str:
        return kube.pod_call(method, simulator, CONTROL_PORT, path, body)

    assert len(json.loads(control("GET", "devices"))) == count
    control("PUT", "devices/0/health", "Unhealthy")
    try:
        wait_for("one GPU less is offered", lambda: allocatable(kube), lambda seen: seen == [count - 1], seconds=KUBELET_SECONDS)
    finally:
        control("PUT", "devices/0/health", "Healthy")
    wait_for("all GPUs are offered again", lambda: allocatable(kube), lambda seen: seen == [count], seconds=KUBELET_SECONDS)
