"""Objects of a Triton server: what they say and what they leave out."""

import subprocess
from uuid import UUID

import pytest

from components.core.node_pool import GpuNodePoolSpec
from components.core.rollout import Demand, ReplicaRange
from components.errors import ManifestError
from components.inference.placement import PoolUse
from components.inference.plan import plan_versions
from components.inference.pod_manifest import SHM_PATH
from components.inference.ports import SERVICE_PORTS, check_port_names
from components.inference.triton_manifest import build_config_map, build_deployment, build_disruption_budget, build_service
from tests.unit.components.inference.models import IDENTITY, PBTXT, loaded, plan, server, version

GPU = {"gpusPerReplica": 1, "nodePool": "gpus"}


def gpu_pool(*, max_nodes=1, cards=4, others=(), **changes):
    values = {"accelerator": "a100", "cardsPerNode": cards, "cardMemoryMib": 81_920, "minNodes": 0, "maxNodes": max_nodes, **changes}
    return PoolUse(name="gpus", spec=GpuNodePoolSpec.model_validate(values), others=others)


def deployment(*args, **kwargs):
    return build_deployment(plan(*args, **kwargs), "image")["spec"]


def pod(*args, **kwargs):
    return deployment(*args, **kwargs)["template"]["spec"]


def test_a_scaler_owns_the_replicas_so_the_key_is_absent():
    """pulumi/pulumi-kubernetes#2491, #2542."""
    assert "replicas" not in deployment(replicas=ReplicaRange.scaled(4, 20))


@pytest.mark.parametrize("replicas", [0, 3])
def test_fixed_replicas_are_written_zero_too(replicas):
    assert deployment(replicas=replicas)["replicas"] == replicas


def test_nothing_forces_a_conflict():
    """pulumi/pulumi-kubernetes#2491."""
    assert "patchForce" not in str(build_deployment(plan(replicas=ReplicaRange.scaled(4, 20)), "image"))


@pytest.mark.parametrize(("replicas", "skipped"), [(ReplicaRange.scaled(0, 5), True), (0, True), (ReplicaRange.scaled(2, 5), False), (1, False)])
def test_nobody_waits_for_a_server_that_is_meant_to_be_at_zero(replicas, skipped):
    """pulumi/pulumi-kubernetes#605, #712."""
    annotations = build_deployment(plan(replicas=replicas), "image")["metadata"].get("annotations", {})
    assert annotations == ({"pulumi.com/skipAwait": "true"} if skipped else {})


def test_changed_configuration_makes_a_new_config_map_and_new_pods():
    """pulumi/pulumi#2167."""
    old, new = plan(pbtxt="delay: 100\n"), plan(pbtxt="delay: 500\n")
    assert build_config_map(old)["metadata"]["name"] != build_config_map(new)["metadata"]["name"]
    templates = [build_deployment(of, "image")["spec"]["template"] for of in (old, new)]
    assert templates[0] != templates[1]


def test_the_configuration_lies_over_the_models_directory():
    planned = plan()
    config = build_config_map(planned)
    assert config["data"] == {"magika_files.pbtxt": PBTXT}
    assert config["immutable"] is True
    spec = build_deployment(planned, "image")["spec"]["template"]["spec"]
    [mount] = [mount for mount in spec["containers"][0]["volumeMounts"] if mount["name"] == "model-config"]
    assert mount == {"name": "model-config", "mountPath": "/models/magika_files/config.pbtxt", "subPath": "magika_files.pbtxt", "readOnly": True}
    assert {"name": "model-config", "configMap": {"name": config["metadata"]["name"]}} in spec["volumes"]


def test_an_ensembles_server_loads_its_steps_each_under_the_config_of_this_deployment():
    """The image holds more models than a server serves; no other is loaded, and every text rolls the pods."""
    planned = plan(steps=(loaded("magika_decode", "decode: 1"),))
    changed = plan(steps=(loaded("magika_decode", "decode: 2"),))
    config, spec = build_config_map(planned), pod(steps=(loaded("magika_decode", "decode: 1"),))
    assert config["data"] == {"magika_files.pbtxt": PBTXT, "magika_decode.pbtxt": "decode: 1"}
    assert config["metadata"]["name"] != build_config_map(changed)["metadata"]["name"]
    [container] = spec["containers"]
    mounts = {mount["mountPath"]: mount["subPath"] for mount in container["volumeMounts"] if mount["name"] == "model-config"}
    assert mounts == {"/models/magika_files/config.pbtxt": "magika_files.pbtxt", "/models/magika_decode/config.pbtxt": "magika_decode.pbtxt"}
    assert [argument for argument in container["args"] if "load-model" in argument] == ["--load-model=magika_files", "--load-model=magika_decode"]


@pytest.mark.parametrize(
    ("cards", "replicas", "expected"),
    [(4, 4, {"maxSurge": 0, "maxUnavailable": 1}), (6, 4, {"maxSurge": 2, "maxUnavailable": 0}), (1, 1, {"maxSurge": 0, "maxUnavailable": 1})],
)
def test_the_rolling_update_fits_the_free_slots(cards, replicas, expected):
    """defilantech/LLMKube#192, ai-runway/airunway#400."""
    assert deployment(GPU, pool=gpu_pool(cards=cards), replicas=replicas)["strategy"]["rollingUpdate"] == expected


def test_slots_of_canary_and_other_models_are_taken():
    """Stable and canary of one pool are counted together, a scaled one at its maximum."""
    canary = version(2, replicas=ReplicaRange.scaled(0, 2))
    full = deployment(GPU, pool=gpu_pool(cards=6), replicas=4, siblings=(canary,))
    beside = deployment(GPU, pool=gpu_pool(cards=6, others=(Demand(2, 1),)), replicas=4)
    assert full["strategy"] == beside["strategy"] == {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}


def test_without_gpus_an_update_never_takes_a_pod_away():
    """The variant on CPUs."""
    assert deployment()["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}


def test_slots_are_counted_after_sharing():
    """1 card with 8 slots and 4 replicas leave 4."""
    shared = gpu_pool(cards=1, sharing={"mode": "time-slicing", "replicas": 8})
    assert deployment(GPU, pool=shared, replicas=4)["strategy"]["rollingUpdate"]["maxSurge"] == 4


def test_a_gpu_server_asks_for_its_slots_and_tolerates_its_pool():
    taints = [{"key": "nvidia.com/gpu", "value": "present"}]
    spec = pod(GPU, pool=gpu_pool(taints=taints, labels={"pool": "gpus"}))
    resources = spec["containers"][0]["resources"]
    assert resources["requests"]["nvidia.com/gpu"] == resources["limits"]["nvidia.com/gpu"] == "1"
    assert spec["nodeSelector"] == {"pool": "gpus"}
    assert spec["tolerations"] == [{"key": "nvidia.com/gpu", "operator": "Equal", "value": "present", "effect": "NoSchedule"}]


def test_a_cpu_server_asks_for_no_slots_and_tolerates_nothing():
    spec = pod()
    assert spec["containers"][0]["resources"] == {"requests": {"cpu": "500m", "memory": "1024Mi"}, "limits": {"cpu": "2", "memory": "1024Mi"}}
    assert not {"nodeSelector", "tolerations"} & spec.keys()


def test_two_slots_of_a_shared_pool_are_refused_naming_model_and_pool():
    """NVIDIA/gpu-operator#386."""
    with pytest.raises(ManifestError, match="model 'magika' on node pool 'gpus': 2 slots per replica"):
        plan({**GPU, "gpusPerReplica": 2}, pool=gpu_pool(sharing={"mode": "time-slicing", "replicas": 4}))


def test_a_pool_that_is_not_there_is_named():
    with pytest.raises(ManifestError, match="node pool 'gpus' does not exist"):
        plan(GPU)


@pytest.mark.parametrize("numbers", [(), (1, 1)])
def test_versions_are_named_and_distinct(numbers):
    with pytest.raises(ManifestError, match="versions"):
        plan_versions(IDENTITY, server(), None, tuple(version(number) for number in numbers))


def test_selectors_never_change_with_what_they_select():
    spec = deployment()
    assert spec["selector"] == {"matchLabels": {"app.kubernetes.io/name": "magika-v1"}}
    labels = spec["template"]["metadata"]["labels"]
    service = build_service(IDENTITY, awaited=True)["spec"]["selector"]
    budget = build_disruption_budget(plan())["spec"]["selector"]["matchLabels"]
    assert service == {"inference-platform/model": "magika"}
    assert budget == {"inference-platform/model": "magika", "version": "v1"}
    assert (spec["selector"]["matchLabels"] | service | budget).items() <= labels.items()


def test_ports_say_their_protocol():
    """ray-project/kuberay#2347, istio/istio#7117, #16364, #27621."""
    ports = build_service(IDENTITY, awaited=True)["spec"]["ports"]
    assert [(port["name"], port["port"], port["appProtocol"]) for port in ports] == [
        ("http-infer", 8000, "http"),
        ("grpc-infer", 8001, "grpc"),
        ("http-metrics", 8002, "http"),
    ]
    names = {port["name"] for port in pod()["containers"][0]["ports"]}
    assert {port["targetPort"] for port in ports} == names


@pytest.mark.parametrize(
    ("port", "reason"),
    [
        ({"name": "triton-grpc", "port": 8001}, "'triton-grpc' \\(8001\\) does not begin with a protocol"),
        ({"name": "httpforecast", "port": 8000}, "does not begin with a protocol"),
        ({"port": 8000}, "does not begin with a protocol"),
        ({"name": "grpc-infer", "port": 8001, "appProtocol": "http"}, "says grpc, but its appProtocol says http"),
        ({"name": "http2-infer", "port": 8001, "appProtocol": "http"}, "says http2, but its appProtocol says http"),
    ],
)
def test_a_port_that_istio_would_take_for_tcp_is_refused(port, reason):
    """ray-project/kuberay#2347."""
    with pytest.raises(ManifestError, match=reason):
        check_port_names([*SERVICE_PORTS, port])


def test_pods_meet_the_restricted_standard():
    spec = pod()
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["runAsUser"] == 65532
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert spec["automountServiceAccountToken"] is False
    [container] = spec["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert not [volume for volume in spec["volumes"] if "hostPath" in volume]


def test_a_server_starts_with_a_stack_for_deep_json_and_without_the_shared_memory_of_the_one_before(tmp_path):
    """The volume outlives the container, and a killed server removes none of its regions; the third start would find it full."""
    left = [tmp_path / f"triton_{backend}_backend_shm_region_1" for backend in ("python", "onnxruntime")]
    other = tmp_path / "other"
    for file in (*left, other):
        file.touch()
    (tmp_path / "tritonserver").write_text('#!/bin/sh\nshift 2\necho $$ $(ulimit -s) "$@"\n')
    (tmp_path / "tritonserver").chmod(0o755)
    shell, option, script, name = pod()["containers"][0]["command"]
    started = subprocess.Popen(
        [shell, option, script.replace(SHM_PATH, str(tmp_path)), name, "--one", "two words"],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        stdout=subprocess.PIPE,
        text=True,
    )
    said, _ = started.communicate(timeout=10)
    assert said.split(maxsplit=1) == [str(started.pid), "65536 --one two words\n"], "the server takes the shell's place and gets every argument"
    assert [file.exists() for file in (*left, other)] == [False, False, True]


def test_what_changes_a_server_is_closed_with_a_value_of_this_start_alone(tmp_path):
    """Whoever may read the pod, its log or its metrics does not learn it."""
    (tmp_path / "tritonserver").write_text('#!/bin/sh\necho "$1"; echo "$2"\n')
    (tmp_path / "tritonserver").chmod(0o755)
    starts = []
    for _ in range(2):
        command = [part.replace(SHM_PATH, str(tmp_path)) for part in pod()["containers"][0]["command"]]
        said = subprocess.run(command, env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, capture_output=True, text=True, check=True, timeout=10).stdout
        http, grpc = said.splitlines()
        only, key = http.removeprefix("--http-restricted-api=").split("=")
        assert only == "model-repository,shared-memory,trace,logging:inference-platform-admin"
        assert grpc == f"--grpc-restricted-protocol={only}={key}"
        starts.append(UUID(key))
    assert starts[0] != starts[1]
    assert "restricted" not in str(pod()["containers"][0]["args"])
