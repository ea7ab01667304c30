"""The server's own buffers, its GPUs' memory, and what its models are warmed up with."""

from base64 import b64decode
from dataclasses import replace

import pytest

from components.errors import ManifestError
from components.inference.plan import plan_versions
from components.inference.pod_manifest import build_arguments, build_pod
from components.inference.spec import ModelVersion
from components.inference.triton_manifest import build_config_map
from tests.unit.components.inference.models import IDENTITY, loaded, plan, server, version
from tests.unit.components.inference.test_triton_manifest import GPU, gpu_pool


def flags(values, **footprint):
    return [argument for argument in build_arguments(plan(values, **footprint)) if "cache" in argument or "memory" in argument]


def test_a_server_without_wishes_leaves_the_buffers_to_triton():
    assert flags({}) == []


def test_sizes_are_given_in_bytes_and_the_pool_for_each_gpu():
    pool = gpu_pool(cards=2)
    values = {**GPU, "gpusPerReplica": 2, "responseCacheMib": 1, "pinnedMemoryMib": 2, "cudaMemoryPoolMib": 3, "memoryMib": 4096}
    assert flags(values, pool=pool) == [
        "--cache-config=local,size=1048576",
        "--pinned-memory-pool-byte-size=2097152",
        "--cuda-memory-pool-byte-size=0:3145728",
        "--cuda-memory-pool-byte-size=1:3145728",
    ]


def test_what_the_configs_need_of_the_server_is_told_to_it():
    limited = ModelVersion(version=1, models=version().models, replicas=version().replicas, server_arguments=("--rate-limit=execution_count",))
    [planned] = plan_versions(IDENTITY, server(), None, (limited,))
    assert "--rate-limit=execution_count" in build_arguments(planned)


@pytest.mark.parametrize(("instances", "memory", "pool_mib"), [(16, 4092, None), (15, 4096, 4096), (1, 65_536, 0), (1, 65_472, None)])
def test_instances_up_to_four_fifths_of_a_card_are_planned(instances, memory, pool_mib):
    """A card of 80 GiB, of which Triton's own pool takes 64 MiB when nobody says otherwise."""
    values = GPU | ({} if pool_mib is None else {"cudaMemoryPoolMib": pool_mib})
    plan(values, pool=gpu_pool(), instances_per_gpu=instances, gpu_memory_mib=memory)
    with pytest.raises(ManifestError, match="80 % of a slot of node pool"):
        plan(values, pool=gpu_pool(), instances_per_gpu=instances, gpu_memory_mib=memory + 1)


def test_the_steps_of_an_ensemble_share_the_card():
    step = loaded("step", instances_per_gpu=4, gpu_memory_mib=4096)
    values = GPU | {"cudaMemoryPoolMib": 0, "memoryMib": 4096}
    plan(values, pool=gpu_pool(), steps=(step,), instances_per_gpu=12, gpu_memory_mib=4096)
    with pytest.raises(ManifestError, match=r"17 instances per GPU and 0 MiB for server.cudaMemoryPoolMib take 69632 MiB"):
        plan(values, pool=gpu_pool(), steps=(step,), instances_per_gpu=13, gpu_memory_mib=4096)


def test_files_for_warming_up_lie_beside_the_config_and_are_mounted_where_triton_looks():
    content = b"\x02\0\0\0\xff\xfe"
    model = replace(loaded(pbtxt="a"), warmup_files={"check": content})
    [planned] = plan_versions(IDENTITY, server(), None, (ModelVersion(version=1, models=(model,), replicas=version().replicas),))
    config = build_config_map(planned)
    [(key, data)] = config["binaryData"].items()
    assert b64decode(data) == content
    mounts = build_pod(planned, "image")["containers"][0]["volumeMounts"]
    [mount] = [mount for mount in mounts if mount.get("subPath") == key]
    assert mount["mountPath"] == "/models/magika_files/warmup/check"
    plain = plan(pbtxt="a")
    assert "binaryData" not in build_config_map(plain)
    # Another sample is another object, so that the pods roll.
    assert config["metadata"]["name"] != build_config_map(plain)["metadata"]["name"]


@pytest.mark.parametrize(("said", "counted"), [({}, 256), ({"pinnedMemoryMib": 0}, 0), ({"pinnedMemoryMib": 512}, 512)])
def test_pinned_memory_of_a_gpu_server_is_counted_also_when_nobody_sets_it(said, counted):
    """Triton takes 256 MiB by itself."""
    least = 128 + 2 * 16 + 64 + 2 * 128 + (128 + 3 * 2) * 2 - 128 + counted + 64
    plan(GPU | said | {"memoryMib": least}, pool=gpu_pool())
    with pytest.raises(
        ManifestError, match=rf"memoryMib {least - 1} is too small" + (f": .*{counted} for .*server.pinnedMemoryMib" if counted else "")
    ):
        plan(GPU | said | {"memoryMib": least - 1}, pool=gpu_pool())


def test_a_server_on_cpus_has_no_pinned_memory():
    assert (server().pinned_pool_mib, server().cuda_pool_mib) == (0, 0)
