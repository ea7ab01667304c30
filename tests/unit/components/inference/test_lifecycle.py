"""Probes, drain, shared memory: the arithmetic, at full scale."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from components.core.rollout import CPU_SURGE, ReplicaRange, Surge
from components.errors import ManifestError
from components.inference.lifecycle import await_timeout, build_probes, plan_drain
from components.inference.pod_manifest import SHM_PATH, build_arguments, build_pod
from components.inference.spec import NO_FOOTPRINT
from components.inference.triton_manifest import build_deployment
from tests.unit.components.inference.models import loaded, plan, server


def container(of):
    return build_pod(of, "image")["containers"][0]


@given(load=st.integers(1, 7200))
def test_the_startup_probe_covers_every_declared_load(load):
    """triton-inference-server/server#7014."""
    startup = build_probes(load, "/ready")["startupProbe"]
    assert startup["failureThreshold"] * startup["periodSeconds"] >= load + 30


def test_only_readiness_looks_at_readiness():
    """triton-inference-server/server#7014, #5940."""
    paths = {name: probe["httpGet"]["path"] for name, probe in container(plan()).items() if name.endswith("Probe")}
    assert paths == {
        "startupProbe": "/v2/health/live",
        "livenessProbe": "/v2/health/live",
        "readinessProbe": "/v2/models/magika_files/versions/1/ready",
    }


def test_a_broken_model_leaves_an_unready_server_and_nothing_is_loaded_into_a_serving_pod():
    """triton-inference-server/server#3786."""
    arguments = build_arguments(plan())
    assert {"--exit-on-error=false", "--strict-readiness=true", "--model-control-mode=explicit", "--load-model=magika_files"} <= set(arguments)


def test_the_stack_may_set_its_own_load_time():
    assert [plan(values).load for values in ({}, {"modelLoadTimeoutSeconds": 300})] == [40, 300]


def test_every_request_in_flight_may_end_and_the_proxy_outlives_the_server():
    """triton-inference-server/server#6939, #6230, #1927, with maxRequestSeconds 60."""
    planned = plan({"maxRequestSeconds": 60})
    template = build_deployment(planned, "image")["spec"]["template"]
    arguments = dict(argument.split("=", 1) for argument in build_arguments(planned) if "=" in argument)
    pre_stop = container(planned)["lifecycle"]["preStop"]["sleep"]["seconds"]
    exit_timeout = int(arguments["--exit-timeout-secs"])
    sidecar = template["metadata"]["annotations"]["proxy.istio.io/config"]
    assert pre_stop >= 5
    assert exit_timeout >= 60
    assert template["spec"]["terminationGracePeriodSeconds"] >= pre_stop + exit_timeout + 5
    assert int(sidecar.removeprefix("terminationDrainDuration: ").removesuffix("s")) >= pre_stop + exit_timeout + 5


@given(request=st.integers(1, 3600), pre_stop=st.integers(5, 300))
def test_a_drain_ends_in_order_whatever_the_request_time(request, pre_stop):
    """Pre-stop, server, sidecar, SIGKILL."""
    drain = plan_drain(server(maxRequestSeconds=request, preStopSeconds=pre_stop))
    assert 5 <= drain.pre_stop < drain.pre_stop + drain.exit_timeout < drain.sidecar < drain.grace_period
    assert drain.exit_timeout >= request


def test_a_grace_period_that_cuts_requests_is_refused():
    """A maxRequestSeconds that breaks the invariant."""
    with pytest.raises(ManifestError, match="terminationGracePeriodSeconds 60 kills pods before a request of maxRequestSeconds 60") as refused:
        plan({"maxRequestSeconds": 60, "terminationGracePeriodSeconds": 60})
    assert "at least 75" in refused.value.hint
    assert plan({"maxRequestSeconds": 60, "terminationGracePeriodSeconds": 75}).drain.grace_period == 75


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"preStopSeconds": 4}, "greater than or equal to 5"),
        ({"maxRequestSeconds": 0}, "greater than or equal to 1"),
        ({"sharedMemoryMib": -64}, "greater than or equal to 1"),
        ({"sharedMemoryMibPerInstance": -1}, "greater than or equal to 1"),
        ({"sharedMemoryMib": 1024, "memoryMib": 1024}, "sharedMemoryMib 1024 leaves nothing of memoryMib 1024"),
        ({"cpuRequest": 3, "cpuLimit": 2}, "cpuRequest 3 is above cpuLimit 2"),
        ({"gpusPerReplica": 1}, "needs nodePool"),
        ({"nodePool": "a100"}, "set gpusPerReplica to at least 1"),
        ({"migProfile": "1g.10gb"}, "needs nodePool"),
        ({"replicas": -1}, "greater than or equal to 0"),
        ({"replicas": "2"}, "valid integer"),
        ({"replica": 2}, "Extra inputs are not permitted"),
    ],
)
def test_a_server_that_cannot_be_is_refused_with_the_reason(values, reason):
    with pytest.raises(ValidationError, match=reason):
        server(**values)


def test_twelve_python_instances_of_64_mib_get_768_mib_and_headroom():
    """triton-inference-server/server#4869, #3678, #5868."""
    planned = plan({"sharedMemoryMibPerInstance": 64, "memoryMib": 4096}, instances=12)
    [shm] = [volume for volume in build_pod(planned, "image")["volumes"] if volume["name"] == "shm"]
    assert shm == {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "832Mi"}}
    assert {"name": "shm", "mountPath": SHM_PATH} in container(planned)["volumeMounts"]
    assert f"--backend-config=python,shm-default-byte-size={64 * 1024 * 1024}" in build_arguments(planned)


def test_the_memory_limit_holds_shared_memory_and_models():
    """Shared memory is charged to the container."""
    with pytest.raises(ManifestError, match=r"memoryMib 2367 is too small: 1536 for models .* [+] 832 for shared memory [+] ") as refused:
        plan({"sharedMemoryMibPerInstance": 64, "memoryMib": 2367}, instances=12)
    assert "at least 2760" in refused.value.hint


def test_models_without_python_and_without_need_get_no_shared_memory():
    """No volume, no mount, no setting of the Python backend."""
    planned = plan(python_backend=None)
    assert [volume["name"] for volume in build_pod(planned, "image")["volumes"]] == ["tmp", "model-config"]
    assert SHM_PATH not in [mount["mountPath"] for mount in container(planned)["volumeMounts"]]
    assert not [argument for argument in build_arguments(planned) if "shm" in argument]


def test_a_declared_need_is_met_without_python_and_refused_when_python_needs_more():
    """Declared need."""
    assert plan({"sharedMemoryMib": 256}, python_backend=None).shm_mib == 256
    with pytest.raises(ManifestError, match="sharedMemoryMib 64 is too small for 2 Python instances, which need 96 MiB"):
        plan({"sharedMemoryMib": 64})


def test_a_models_own_need_counts_when_it_is_the_larger():
    assert plan(shared_memory_mib=100).shm_mib == 2 * 100 + 64


def test_an_ensemble_needs_what_its_steps_need_together():
    """Load time and memory add up; every Python instance of a server starts with the same shared memory, which is the largest need."""
    steps = (
        loaded("decode", instances=1, memory_mib=100, shared_memory_mib=32),
        loaded("text", instances=3, memory_mib=50, python_backend="onnxruntime"),
    )
    ensemble = vars(NO_FOOTPRINT)
    planned = plan({"memoryMib": 786}, steps=steps, **ensemble)
    assert planned.load == 2 * 40
    assert planned.shm_mib == 4 * 32 + 64
    settings = [argument for argument in build_arguments(planned) if "backend-config" in argument]
    assert settings == [f"--backend-config={name},shm-default-byte-size={32 * 1024 * 1024}" for name in ("onnxruntime", "python")]
    with pytest.raises(ManifestError, match=r"memoryMib 785 is too small: 250 for models .* [+] 192 for shared memory [+] "):
        plan({"memoryMib": 785}, steps=steps, **ensemble)


@given(memory=st.integers(128, 16_384), per_instance=st.integers(1, 512), instances=st.integers(1, 64))
def test_what_is_accepted_fits_into_the_container(memory, per_instance, instances):
    """At every size: the limit holds shared memory and models, and what is refused does not fit beside the requests."""
    values = {"memoryMib": memory, "sharedMemoryMibPerInstance": per_instance}
    try:
        size = plan(values, instances=instances, memory_mib=50).shm_mib
    except ManifestError:
        size = None
    needed = instances * (max(per_instance, 2) + 50) + 64
    assert (size is not None) == (needed + 64 + 2 * (128 + 3 * instances) <= memory)
    assert size is None or size >= instances * per_instance


def test_the_wait_covers_node_load_and_every_batch():
    """pulumi/pulumi-kubernetes#605, #712."""
    planned = plan({"modelLoadTimeoutSeconds": 900, "nodeProvisioningSeconds": 600}, replicas=2)
    assert planned.progress_deadline >= 600 + 900
    assert planned.await_timeout == 2 * planned.progress_deadline


@given(replicas=st.integers(0, 100), surge=st.integers(1, 10))
def test_a_larger_surge_never_waits_longer(replicas, surge):
    one = await_timeout(100, ReplicaRange.of(replicas), CPU_SURGE)
    assert 100 <= await_timeout(100, ReplicaRange.of(replicas), Surge(surge, 0)) <= one
