"""The rule about workloads as a plain function: pass, fail, missing, empty, exempt, many."""

import copy
from typing import Any

import pytest

from components.core.rollout import ReplicaRange
from components.inference.triton_manifest import build_deployment
from stacks.policies.rules_workloads import pod_spec, workload_violations
from tests.unit.components.inference.models import plan

DEPLOYMENT = "kubernetes:apps/v1:Deployment"
IMAGE = "registry.example.com/triton@sha256:" + "0" * 64


def pod() -> dict[str, Any]:
    """The pod of a server as the platform renders it."""
    spec: dict[str, Any] = copy.deepcopy(build_deployment(plan(replicas=ReplicaRange.of(1)), IMAGE)["spec"]["template"]["spec"])
    return spec


def violations(spec: dict[str, Any]) -> list[str]:
    return list(workload_violations(spec))


def changed(path: tuple[str | int, ...], value: Any) -> dict[str, Any]:
    """The pod with one value changed; None removes it."""
    spec = pod()
    node: Any = spec
    for key in path[:-1]:
        node = node[key]
    if value is None:
        del node[path[-1]]
    else:
        node[path[-1]] = value
    return spec


CONTAINER = ("containers", 0)
SECURITY = (*CONTAINER, "securityContext")


def test_a_server_of_the_platform_passes() -> None:
    assert violations(pod()) == []


@pytest.mark.parametrize(
    "image", [IMAGE, "triton:1.2.3", "localhost/inference-platform/triton:6d7b7120d0f5", "registry:5000/triton:v1", "triton:latest-2024"]
)
def test_images_that_are_named_exactly_pass(image: str) -> None:
    assert violations(changed((*CONTAINER, "image"), image)) == []


@pytest.mark.parametrize("image", ["triton", "triton:latest", "registry:5000/triton", "registry:5000/triton:latest", "triton@sha256:123", ""])
def test_images_that_mean_another_one_tomorrow_fail(image: str) -> None:
    [violation] = violations(changed((*CONTAINER, "image"), image))
    assert repr(image) in violation
    assert "'triton'" in violation


@pytest.mark.parametrize(
    ("path", "value", "named"),
    [
        (("automountServiceAccountToken",), True, "automountServiceAccountToken: false"),
        (("hostNetwork",), True, "hostNetwork"),
        (("hostPID",), True, "hostPID"),
        (("volumes",), [{"name": "disk", "hostPath": {"path": "/"}}], "'disk' is a folder of the node"),
        ((*SECURITY, "runAsNonRoot"), False, "runAsNonRoot: true"),
        ((*SECURITY, "seccompProfile"), {"type": "Unconfined"}, "seccompProfile.type"),
        ((*SECURITY, "allowPrivilegeEscalation"), True, "allowPrivilegeEscalation: false"),
        ((*SECURITY, "privileged"), True, "may gain privileges"),
        ((*SECURITY, "readOnlyRootFilesystem"), False, "readOnlyRootFilesystem: true"),
        ((*SECURITY, "capabilities"), {"drop": ["ALL"], "add": ["SYS_ADMIN"]}, "capabilities.drop: [ALL]"),
        ((*SECURITY, "capabilities"), {"drop": ["NET_RAW"]}, "capabilities.drop: [ALL]"),
    ],
)
def test_what_opens_a_pod_fails_with_the_way_out(path: tuple[str | int, ...], value: Any, named: str) -> None:
    [violation] = violations(changed(path, value))
    assert named in violation


@pytest.mark.parametrize(
    ("path", "named"),
    [
        (("automountServiceAccountToken",), "automountServiceAccountToken"),
        (("securityContext", "runAsNonRoot"), "runAsNonRoot"),
        (("securityContext", "seccompProfile"), "seccompProfile"),
        ((*SECURITY, "allowPrivilegeEscalation"), "allowPrivilegeEscalation"),
        ((*SECURITY, "readOnlyRootFilesystem"), "readOnlyRootFilesystem"),
        ((*SECURITY, "capabilities"), "capabilities"),
        ((*CONTAINER, "resources", "limits", "memory"), "limits.memory"),
        ((*CONTAINER, "resources", "requests", "cpu"), "requests.cpu"),
        ((*CONTAINER, "resources"), "requests.cpu, requests.memory, limits.memory"),
    ],
)
def test_what_is_left_out_fails_since_kubernetes_fills_it_in(path: tuple[str | int, ...], named: str) -> None:
    [violation] = violations(changed(path, None))
    assert named in violation


def test_a_container_that_says_otherwise_than_its_pod_is_believed() -> None:
    spec = changed(("securityContext", "runAsNonRoot"), None)
    spec["containers"][0]["securityContext"]["runAsNonRoot"] = True
    assert violations(spec) == []


@pytest.mark.parametrize("spec", [{}, {"containers": []}, {"containers": None}])
def test_a_pod_without_containers_is_no_pod(spec: dict[str, Any]) -> None:
    assert "has no container" in violations(spec)


def test_every_container_is_looked_at_also_those_that_run_first() -> None:
    spec = pod()
    spec["initContainers"] = [{"name": "fetch", "image": "fetch"}]
    spec["containers"].append({"name": "second"})
    found = violations(spec)
    assert {text.split(":")[0] for text in found} == {"container 'fetch'", "container 'second'"}
    assert sum("means another one tomorrow" in text for text in found) == 1


def test_an_image_that_is_not_known_yet_is_no_fault() -> None:
    assert violations(changed((*CONTAINER, "image"), {"unknown": True})) == []


@pytest.mark.parametrize(
    ("token", "props", "expected"),
    [
        (DEPLOYMENT, {"spec": {"template": {"spec": {"a": 1}}}}, {"a": 1}),
        ("kubernetes:batch/v1:Job", {"spec": {"template": {"spec": {"a": 1}}}}, {"a": 1}),
        ("kubernetes:batch/v1:CronJob", {"spec": {"jobTemplate": {"spec": {"template": {"spec": {"a": 1}}}}}}, {"a": 1}),
        ("kubernetes:core/v1:Pod", {"spec": {"a": 1}}, {"a": 1}),
        (DEPLOYMENT, {}, {}),
        (DEPLOYMENT, {"spec": {"template": None}}, {}),
        (DEPLOYMENT, {"metadata": {"namespace": "kube-system"}, "spec": {}}, None),
        (DEPLOYMENT, {"metadata": {"namespace": "istio-system"}, "spec": {}}, None),
        ("kubernetes:core/v1:Service", {"spec": {}}, None),
        ("kubernetes:example.org/v1:Deployment", {"spec": {}}, None),
        ("inference:inference:TritonServer", {}, None),
        ("", {}, None),
    ],
)
def test_only_pods_of_kubernetes_own_workloads_are_looked_at(token: str, props: dict[str, Any], expected: dict[str, Any] | None) -> None:
    assert pod_spec(token, props) == expected
