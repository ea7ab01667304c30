"""The GPU simulator."""

import pulumi
import pulumi_kubernetes
import pytest
from pydantic import ValidationError

from components.core.slots import max_slots, slot_request
from components.devices.simulated_gpus import SimulatedGpus, SimulatedGpusArgs
from components.devices.simulated_gpus_manifest import build_simulator
from components.devices.spec import SimulatedGpusSpec
from tests.engine import run

SPEC = SimulatedGpusSpec.model_validate({"count": 4, "memoryMib": 16_384})


def pod():
    return build_simulator(SPEC, "simulator:1")["spec"]["template"]["spec"]


def test_the_simulator_offers_what_the_stack_says():
    assert pod()["containers"][0]["args"] == ["--count", "4", "--memory-mib", "16384", "--numa-nodes", "1", "--resource", "nvidia.com/gpu"]


def test_each_nodes_cards_have_ids_of_their_own():
    assert pod()["containers"][0]["env"] == [{"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}]


def test_it_may_write_into_the_kubelets_folder_and_nowhere_else():
    [volume] = pod()["volumes"]
    assert volume["hostPath"] == {"path": "/var/lib/kubelet/device-plugins", "type": "Directory"}
    security = pod()["containers"][0]["securityContext"]
    assert security["readOnlyRootFilesystem"] is True
    assert security["capabilities"] == {"drop": ["ALL"]}
    assert "privileged" not in security


def test_it_runs_on_every_node_whatever_its_taints():
    assert pod()["tolerations"] == [{"operator": "Exists"}]


def test_its_nodes_are_a_pool_to_everyone_else():
    pool = SPEC.node_pool(nodes=2)
    assert max_slots(pool) == 8
    assert slot_request(pool, 4) == {"nvidia.com/gpu": "4"}


@pytest.mark.parametrize(
    "values", [{}, {"count": 0}, {"count": 17}, {"count": "4"}, {"count": 4, "memory": 1}, {"count": 4, "memoryMib": 0}, {"count": 2, "numaNodes": 3}]
)
def test_a_simulator_that_cannot_be_is_refused(values):
    with pytest.raises(ValidationError):
        SimulatedGpusSpec.model_validate(values)


def test_the_daemon_set_is_on_the_explicit_provider_and_under_its_component():
    def build():
        provider = pulumi_kubernetes.Provider("cluster", context="local")
        SimulatedGpus("gpus", SimulatedGpusArgs(spec=SPEC, image="simulator:1"), pulumi.ResourceOptions(providers=[provider]))

    recording = run(build)
    daemon_set = recording.one("DaemonSet", "gpu-simulator")
    assert daemon_set.inputs["metadata"]["namespace"] == "kube-system"
    assert daemon_set.parent == recording.one("SimulatedGpus").urn
    assert daemon_set.provider_urn == recording.one("kubernetes").urn
    assert recording.outputs[daemon_set.parent] == {"resourceName": "nvidia.com/gpu"}
