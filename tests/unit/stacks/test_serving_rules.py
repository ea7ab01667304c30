"""What a stack says about serving fits the server, the pool, the routes and the published model; every refusal names the key to change."""

import re
from typing import Any

import pytest

from serving.model_config import ModelManifest, model_manifest
from stacks.models import served_versions
from tests.documents import built, changed
from tests.unit.stacks.test_loader import loaded, refusal
from tools.paths import REPO

POOL = {"accelerator": "v100", "cardsPerNode": 2, "cardMemoryMib": 16_384, "minNodes": 0, "maxNodes": 4}


@pytest.fixture
def gpu_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """The classifier as if it had been published with 3 GiB of GPU memory per instance."""

    def published(name: str) -> ModelManifest:
        manifest = model_manifest(name)
        versions = tuple(version.model_copy(update={"gpu_memory_mib": 3072}) for version in manifest.versions)
        return manifest.model_copy(update={"versions": versions})

    monkeypatch.setattr("stacks.models.model_manifest", published)


def on_gpus(instances: dict[str, Any], *, gpus: int = 1, pool: dict[str, Any] | None = None, **server: Any) -> dict[str, Any]:
    """The local stack with magika on a pool of GPUs and without its canary."""
    config = changed("models.magika.instances", {"kind": "gpu", **instances})
    config["inference-platform:nodePools"] = {"gpus": POOL | (pool or {})}
    model = config["inference-platform:models"]["magika"]
    model.pop("canary", None)
    model["server"] = {"gpusPerReplica": gpus, "nodePool": "gpus", "memoryMib": 8192, **server}
    return config


def changed_model(**values: Any) -> dict[str, Any]:
    """The local stack with these keys of magika."""
    config = changed("models.magika.version", 1)
    config["inference-platform:models"]["magika"].update(values)
    return config


def test_instances_for_gpus_need_gpus() -> None:
    text = refusal(changed("models.magika.instances", {"kind": "gpu"}))
    assert 'models.magika.instances.kind = "gpu": needs GPUs, and server.gpusPerReplica is 0' in text


@pytest.mark.usefixtures("gpu_model")
def test_instances_for_gpus_are_counted_for_each_gpu() -> None:
    """triton-inference-server/server#4869: 2 instances on each of 2 GPUs share one container's memory."""
    model = loaded(on_gpus({"count": 2}, gpus=2)).models["magika"]
    [version] = served_versions("magika", model, "cpu")
    assert version.models[0].footprint.instances == 4


@pytest.mark.usefixtures("gpu_model")
@pytest.mark.parametrize(
    ("instances", "gpus"),
    [({"count": 2, "gpus": [0, 1]}, 2), ({"count": 4}, 1), ({"count": 1, "gpus": [0], "further": [{"kind": "gpu", "count": 3, "gpus": [1]}]}, 2)],
)
def test_instances_that_fit_their_cards_are_accepted(instances: dict[str, Any], gpus: int) -> None:
    loaded(on_gpus(instances, gpus=gpus))


@pytest.mark.usefixtures("gpu_model")
@pytest.mark.parametrize(
    ("instances", "pool", "server", "needed", "usable"),
    [
        ({"count": 5}, {}, {}, 15_424, 13_107),
        ({"count": 4}, {}, {"cudaMemoryPoolMib": 1024}, 13_312, 13_107),
        ({"count": 4, "gpus": [0], "further": [{"kind": "gpu", "gpus": [0]}]}, {}, {}, 15_424, 13_107),
        ({"count": 2}, {"sharing": {"mode": "mps", "replicas": 4}}, {}, 6208, 3276),
        ({"count": 2}, {"sharing": {"mode": "time-slicing", "replicas": 4}}, {}, 6208, 3276),
        (
            {"count": 2},
            {
                "accelerator": "a100",
                "cardMemoryMib": 40_960,
                "sharing": {"mode": "mig", "strategy": "single", "profiles": [{"profile": "1g.5gb", "count": 7}]},
            },
            {},
            6208,
            4096,
        ),
    ],
)
def test_instances_over_four_fifths_of_their_slot_are_refused(
    instances: dict[str, Any], pool: dict[str, Any], server: dict[str, Any], needed: int, usable: int
) -> None:
    text = refusal(on_gpus(instances, pool=pool, **server))
    assert "models.magika.instances.count" in text
    assert f"take {needed} MiB of GPU memory, and 80 % of a slot of node pool 'gpus'" in text
    assert f"are {usable} MiB" in text


def test_a_model_whose_need_of_gpu_memory_nobody_knows_is_not_put_on_gpus() -> None:
    text = refusal(on_gpus({"count": 1}))
    assert "its model.yaml does not say how much GPU memory one takes" in text
    assert "gpuMemoryMib" in text


@pytest.mark.usefixtures("gpu_model")
def test_a_gpu_that_the_pod_does_not_have_is_refused() -> None:
    text = refusal(on_gpus({"gpus": [0, 2]}, gpus=2))
    assert "models.magika.instances.gpus: GPU 2 is none of the pod's" in text


@pytest.mark.parametrize("key", ["pinnedMemoryMib", "cudaMemoryPoolMib"])
def test_buffers_for_gpus_need_gpus(key: str) -> None:
    assert f"{key} 64 is for GPUs, and gpusPerReplica is 0" in refusal(changed("models.magika.server", {key: 64}))


def test_either_half_of_the_response_cache_alone_is_refused() -> None:
    assert "models.magika.responseCache = true: needs server.responseCacheMib" in refusal(changed_model(responseCache=True))
    text = refusal(changed("models.magika.server", {"responseCacheMib": 16}))
    assert "models.magika.server.responseCacheMib = 16: reserves memory for a cache that the model does not use" in text
    loaded(changed_model(responseCache=True, server={"responseCacheMib": 16}))


def test_the_response_cache_counts_as_memory_of_the_container() -> None:
    text = refusal(changed_model(responseCache=True, server={"responseCacheMib": 1024, "memoryMib": 1024}))
    assert "1024 for response cache and pinned memory" in text


def test_sequences_are_not_spread_over_pods_and_versions() -> None:
    values = {"batching": {}, "sequence": {"strategy": "direct"}, "server": {"replicas": 2}}
    text = refusal(changed_model(**values))
    assert "models.magika.server.replicas = 2: contradicts sequence" in text
    assert "models.magika.canary: contradicts sequence" in text
    loaded(changed_model(**{**values, "sequence": {"strategy": "direct", "streamed": True}}))


def test_waiting_for_a_batch_does_not_use_up_the_latency_objective() -> None:
    text = refusal(changed("models.magika.batching", {"maxBatchSize": 8, "maxQueueDelayMicroseconds": 200_000}))
    assert "models.magika.batching.maxQueueDelayMicroseconds = 200000: lets a request wait 200 ms for a batch, and slo.p99Ms is 200" in text


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"batching": {"priorities": {"levels": 2}}}, "models.magika.batching.priorities: is a setting of the batcher, and maxBatchSize 0 means"),
        (
            {"batching": {"maxBatchSize": 8, "priorities": {"levels": 2, "default": 3}}},
            "models.magika.batching.priorities.default = 3: level 3 does not exist: there are 2, from 1 (the highest) to 2",
        ),
        (
            {"batching": {"maxBatchSize": 8, "priorities": {"levels": 2, "queues": [{"level": 3}]}}},
            "models.magika.batching.priorities.queues: level 3 does not exist",
        ),
        (
            {"batching": {"maxBatchSize": 8, "priorities": {"levels": 2}}, "sequence": {"strategy": "direct"}},
            "models.magika.batching.priorities: is a setting of the dynamic batcher, and a model with sequence has the sequence batcher instead",
        ),
        ({"responseCache": True, "sequence": {"strategy": "direct"}}, "models.magika.responseCache = true: cannot be used with sequence"),
        ({"warmup": [{"batchSize": 32}]}, "models.magika.warmup[0].batchSize = 32: 32 is above batching.maxBatchSize 16"),
        ({"optimization": {"cudaGraphs": True}}, "models.magika.optimization.cudaGraphs = true: only backend tensorrt has CUDA graphs"),
        ({"optimization": {"precision": "fp16"}}, 'models.magika.optimization.precision = "fp16": is a setting of accelerator tensorrt'),
        ({"instances": {"gpus": [0]}}, "models.magika.instances.gpus: [0] is for copies on GPUs, and kind is cpu"),
        ({"sequence": {"strategy": "newest"}}, "models.magika.sequence.strategy = "),
        ({"batching": "troughput"}, "models.magika.batching = \"troughput\": 'troughput' is no profile"),
        ({"batching": {"maxBatchSise": 8}}, "models.magika.batching.maxBatchSise: unknown key"),
        ({"sequence": {"strategy": "direct", "streemed": True}}, "models.magika.sequence.streemed: unknown key"),
        (
            {"rateLimiter": {"resources": [{"name": "cores", "count": 4, "available": 2}]}},
            "models.magika.rateLimiter.resources: cores: available 2 is below count 4, so that no copy could ever run",
        ),
    ],
)
def test_a_misfit_is_told_with_its_key_and_a_way_out(values: dict[str, Any], text: str) -> None:
    lines = refusal(changed_model(**values)).splitlines()
    [at] = [index for index, line in enumerate(lines) if text in line]
    assert lines[at + 1].strip().startswith("-> ")


def test_batching_by_its_profile_is_the_documented_one() -> None:
    batching = loaded(changed("models.magika.batching", "throughput")).models["magika"].batching
    assert (batching.max_batch_size, batching.preferred_sizes, batching.max_queue_delay_microseconds) == (32, (4, 8, 16), 50_000)


@pytest.mark.parametrize(("limit", "count"), [(0.5, 1), (2, 1), (4, 2), (7.5, 3), (16, 8)])
def test_half_of_the_cores_run_the_model_when_nobody_says(limit: float, count: int) -> None:
    model = loaded(changed("models.magika.server", {"cpuRequest": 0.1, "cpuLimit": limit, "memoryMib": 8192})).models["magika"]
    [version, _] = served_versions("magika", model, "cpu")
    assert version.models[0].footprint.instances == count
    assert f"count: {count}" in version.models[0].config_pbtxt


@pytest.mark.parametrize(
    ("batching", "count", "warned"),
    [
        ({"priorities": {"levels": 2}}, 1, True),
        ({"queue": {"maxSize": 100}}, 1, True),
        ({"queue": {"allowTimeoutOverride": True}}, 1, True),
        ({"priorities": {"levels": 2}}, 2, False),
        ({"preferredSizes": [4]}, 1, False),
        ({}, 1, False),
    ],
)
def test_a_batcher_that_may_pause_between_bursts_is_warned_of_when_planned(batching: dict[str, Any], count: int, warned: bool) -> None:
    config = changed_model(batching={"maxBatchSize": 16, **batching}, instances={"count": count}, server={"memoryMib": 4096}, canary=None)
    model = loaded(config).models["magika"]
    [version] = served_versions("magika", model, "cpu")
    warnings = [line for line in built(config).warnings if "500 ms" in line]
    assert warnings == [f"magika-v1: {warning}" for warning in version.models[0].warnings]
    assert bool(warnings) is warned
    assert all("set models.magika.instances.count: 2" in line for line in warnings)


def test_the_warning_names_each_step_of_an_ensemble_that_may_pause() -> None:
    batching = {"maxBatchSize": 4, "priorities": {"levels": 2}}
    config = changed(
        "models.ocr", {"version": 1, "slo": {"p99Ms": 500}, "batching": batching, "instances": {"count": 1}, "server": {"memoryMib": 4096}}
    )
    model = loaded(config).models["ocr"]
    version = served_versions("ocr", model, "cpu")[0]
    assert {loaded_model.name for loaded_model in version.models if loaded_model.warnings} == {each.name for each in version.models} - {"ocr"}
    assert all("models.ocr.instances.count" in warning for each in version.models for warning in each.warnings)


def with_ocr(batch: int | None = None) -> dict[str, Any]:
    """The local stack with ocr as the README of serving adds it, or with another largest batch."""
    model: dict[str, Any] = {}
    for path, value in re.findall(
        r"^    pulumi config set --path models\.ocr\.(\S+) (\d+)$", (REPO / "serving" / "README.md").read_text(), re.MULTILINE
    ):
        *parents, key = path.split(".")
        place = model
        for parent in parents:
            place = place.setdefault(parent, {})
        place[key] = int(value)
    if batch is not None:
        model["batching"]["maxBatchSize"] = batch
    config = changed("models.magika.version", 1)
    config["inference-platform:models"]["ocr"] = model
    return config


def test_the_readmes_second_model_fits_its_server_and_not_with_a_larger_batch() -> None:
    assert loaded(with_ocr()).models["ocr"].batching.max_batch_size == 4
    text = refusal(with_ocr(16))
    assert "models.ocr.server.memoryMib = 1280" in text
    assert "1568 for rows at work (memoryMibPerRow of model.yaml x batching.maxBatchSize)" in text


def test_a_model_whose_rows_weigh_something_needs_a_largest_batch() -> None:
    assert "models.ocr.batching.maxBatchSize = 0: model 'ocr': batching.maxBatchSize 0 lets a request have any number of rows" in refusal(with_ocr(0))
