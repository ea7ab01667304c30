"""TritonServer on the recording engine: what is registered, under whom, with which provider."""

from dataclasses import replace

import pulumi
import pulumi_kubernetes
import pytest

from components.core.rollout import ReplicaRange
from components.errors import ManifestError
from components.inference.triton import TritonServer, TritonServerArgs, VersionArgs
from tests.engine import run
from tests.unit.components.inference.models import IDENTITY, loaded, server
from tests.unit.components.inference.test_triton_manifest import GPU, gpu_pool


def versions(*replicas):
    return tuple(
        VersionArgs(version=number, models=(loaded(),), replicas=ReplicaRange.of(count), image=pulumi.Output.from_input("image:1"))
        for number, count in enumerate(replicas, 1)
    )


def recorded(*replicas, values=None, pool=None):
    def build():
        provider = pulumi_kubernetes.Provider("cluster", context="local")
        args = TritonServerArgs(identity=IDENTITY, server=server(**(values or {})), versions=versions(*replicas), pool=pool)
        TritonServer("magika", args, pulumi.ResourceOptions(providers=[provider]))

    return run(build)


def test_one_model_in_two_versions_is_one_service_and_two_deployments():
    kinds = sorted((r.type.rpartition(":")[2], r.inputs["metadata"]["name"]) for r in recorded(1, 1).kubernetes)
    config = [name for kind, name in kinds if kind == "ConfigMap"]
    assert [(kind, name) for kind, name in kinds if kind != "ConfigMap"] == [
        ("Deployment", "magika-v1"),
        ("Deployment", "magika-v2"),
        ("PodDisruptionBudget", "magika-v1"),
        ("PodDisruptionBudget", "magika-v2"),
        ("Service", "magika"),
        ("ServiceAccount", "magika"),
    ]
    assert [name.rpartition("-")[0] for name in config] == ["magika-v1-config", "magika-v2-config"]


def test_every_object_hangs_under_the_component_and_on_the_explicit_provider():
    """pulumi/pulumi-kubernetes#1853, #2357, #1565."""
    recording = recorded(1, 1)
    component = recording.one("TritonServer")
    provider = recording.one("kubernetes")
    assert {resource.parent for resource in recording.kubernetes} == {component.urn}
    assert {resource.provider_urn for resource in recording.kubernetes} == {provider.urn}


def test_an_object_without_provider_would_be_seen():
    """The recording tells a default provider from an explicit one."""
    recording = run(lambda: TritonServer("magika", TritonServerArgs(identity=IDENTITY, server=server(), versions=versions(1))))
    assert {resource.provider for resource in recording.kubernetes} == {""}


def test_no_wait_is_left_out_but_those_for_servers_at_zero():
    """pulumi/pulumi-kubernetes#605, #712."""
    skipping = {
        (resource.type.rpartition(":")[2], resource.inputs["metadata"]["name"])
        for resource in recorded(0, 1).kubernetes
        if resource.inputs["metadata"].get("annotations")
    }
    assert skipping == {("Deployment", "magika-v1")}
    assert recorded(0).one("Service").inputs["metadata"]["annotations"] == {"pulumi.com/skipAwait": "true"}


def test_the_engine_waits_as_long_as_node_and_load_may_take():
    """At least the provisioning allowance and the load."""
    recording = recorded(2, values={"modelLoadTimeoutSeconds": 900, "nodeProvisioningSeconds": 600})
    for resource in (recording.one("Deployment"), recording.one("Service")):
        assert int(resource.create_timeout.removesuffix("s")) >= 1500
        assert resource.update_timeout == resource.create_timeout


def test_a_deployment_comes_after_what_it_mounts():
    recording = recorded(1)
    assert {recording.one("ConfigMap").urn, recording.one("ServiceAccount").urn} <= set(recording.one("Deployment").dependencies)


def test_names_and_host_are_given_out():
    recording = recorded(1, 1)
    assert recording.outputs[recording.one("TritonServer").urn] == {
        "serviceName": "magika",
        "host": "magika.inference.svc.cluster.local",
        "deploymentNames": ["magika-v1", "magika-v2"],
    }


def test_an_update_with_downtime_is_announced():
    """One replica on the only slot."""
    warnings = recorded(1, values=GPU, pool=gpu_pool(cards=1)).warnings
    assert warnings == [
        "magika-v1: no slot is free at the pool's largest size and there is one replica: every update stops the model until the new pod is ready"
    ]
    assert recorded(1, values=GPU, pool=gpu_pool(cards=2)).warnings == []


def test_what_a_model_warns_of_is_said_of_its_deployment():
    def build():
        [served] = versions(1)
        warned = replace(served, models=(replace(loaded(), warnings=("one", "two")),))
        TritonServer("magika", TritonServerArgs(identity=IDENTITY, server=server(), versions=(warned,)))

    assert run(build).warnings == ["magika-v1: one", "magika-v1: two"]


def test_what_does_not_fit_fails_before_anything_is_registered():
    def build():
        with pytest.raises(ManifestError, match="does not exist"):
            TritonServer("magika", TritonServerArgs(identity=IDENTITY, server=server(**GPU), versions=versions(1)))

    assert run(build).resources == []
