"""config.pbtxt: the batch axis is counted once, and nothing is coerced (triton-inference-server/server#1338, #1889, #7056)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from components.errors import ManifestError
from serving.model_config import (
    BatchingSpec,
    InstancesSpec,
    ModelManifest,
    QueuePolicySpec,
    ServingSpec,
    SignatureSpec,
    TensorSpec,
    model_manifest,
    parse_config,
    render_config,
)


def manifest_with(dims: tuple[int, ...]) -> ModelManifest:
    """The magika manifest with an image tensor in place of its own."""
    tensor = TensorSpec(name="image", datatype="FP32", dims=dims)
    return model_manifest("magika").model_copy(update={"signature": SignatureSpec(inputs=(tensor,), outputs=(tensor,))})


def config_of(dims: tuple[int, ...], batching: BatchingSpec):
    return parse_config(render_config(manifest_with(dims), 1, ServingSpec(batching=batching), "cpu"))


def test_with_batching_the_batch_axis_is_left_out_of_dims():
    config = config_of((-1, 3, 224, 224), BatchingSpec(max_batch_size=8))
    assert config.max_batch_size == 8
    assert list(config.input[0].dims) == [3, 224, 224]
    assert list(config.output[0].dims) == [3, 224, 224]


def test_batching_on_a_fixed_first_axis_is_refused_with_the_tensor_and_a_way_out():
    with pytest.raises(ManifestError, match=r"'image' has shape \[1, 3, 512, 512\]") as error:
        config_of((1, 3, 512, 512), BatchingSpec(max_batch_size=8))
    assert "maxBatchSize: 0" in error.value.hint


def test_batching_on_a_tensor_of_one_axis_is_refused_because_triton_wants_at_least_one_dimension():
    with pytest.raises(ManifestError, match="no axis is left"):
        config_of((-1,), BatchingSpec(max_batch_size=2))


def test_without_batching_dims_keep_every_axis_and_there_is_no_batcher():
    config = config_of((-1, 3, 224, 224), BatchingSpec())
    assert config.max_batch_size == 0
    assert list(config.input[0].dims) == [-1, 3, 224, 224]
    assert not config.HasField("dynamic_batching")


@pytest.mark.parametrize("setting", [{"preferredSizes": [4]}, {"maxQueueDelayMicroseconds": 1}, {"queue": {"maxSize": 10}}])
def test_a_setting_of_the_batcher_without_a_batcher_is_refused_by_name(setting):
    with pytest.raises(ValidationError, match=next(iter(setting))):
        BatchingSpec.model_validate({"maxBatchSize": 0, **setting})


@pytest.mark.parametrize(
    ("sizes", "reason"), [([16], "never be reached"), ([4, 2], "ascend"), ([4, 4], "ascend"), ([0], "greater than or equal to 1"), (["4"], "integer")]
)
def test_preferred_sizes_that_cannot_be_meant_are_refused_and_not_coerced(sizes, reason):
    with pytest.raises(ValidationError, match=reason):
        BatchingSpec.model_validate({"maxBatchSize": 8, "preferredSizes": sizes})


@pytest.mark.parametrize("value", ["8", True, 8.0, -1, None])
def test_a_batch_size_that_is_no_count_is_refused(value):
    with pytest.raises(ValidationError):
        BatchingSpec.model_validate({"maxBatchSize": value})


def test_every_batcher_setting_reaches_triton():
    batching = BatchingSpec(max_batch_size=8, preferred_sizes=(4, 8), max_queue_delay_microseconds=500, queue=QueuePolicySpec(max_size=64))
    dynamic = config_of((-1, 2), batching).dynamic_batching
    assert list(dynamic.preferred_batch_size) == [4, 8]
    assert dynamic.max_queue_delay_microseconds == 500
    assert dynamic.default_queue_policy.max_queue_size == 64


def test_an_unset_queue_limit_is_left_out():
    assert not config_of((-1, 2), BatchingSpec(max_batch_size=8)).dynamic_batching.HasField("default_queue_policy")


@pytest.mark.parametrize("version", [1, 2])
def test_exactly_the_asked_version_is_loaded(version):
    config = parse_config(render_config(model_manifest("magika"), version, ServingSpec(), "cpu"))
    assert config.version_policy.WhichOneof("policy_choice") == "specific"
    assert list(config.version_policy.specific.versions) == [version]


def test_an_unpublished_version_is_refused_with_the_published_ones():
    with pytest.raises(ManifestError, match="no version 9") as error:
        render_config(model_manifest("magika"), 9, ServingSpec(), "cpu")
    assert "1, 2" in error.value.hint


def test_instances_and_their_kind_reach_triton():
    config = parse_config(render_config(model_manifest("magika"), 1, ServingSpec(instances=InstancesSpec(count=3, kind="gpu")), "gpu"))
    (group,) = config.instance_group
    assert (group.count, group.kind) == (3, group.KIND_GPU)


@given(st.integers(0, 64), st.integers(1, 8), st.sampled_from(["cpu", "gpu"]))
def test_the_same_input_gives_the_same_bytes_and_they_parse_back(size, count, kind):
    def text() -> str:
        serving = ServingSpec(batching=BatchingSpec(max_batch_size=size), instances=InstancesSpec(count=count, kind=kind))
        return render_config(model_manifest("magika"), 1, serving, "gpu")

    assert text() == text()
    assert parse_config(text()).max_batch_size == size


@pytest.mark.parametrize(
    ("model_format", "variant", "backend", "platform"),
    [
        ("python", "cpu", "python", ""),
        ("onnx", "cpu", "onnxruntime", ""),
        ("python", "gpu", "python", ""),
        ("onnx", "gpu", "onnxruntime", ""),
        ("torchscript", "gpu", "pytorch", ""),
        ("savedmodel", "gpu", "tensorflow", "tensorflow_savedmodel"),
        ("tensorrt", "gpu", "tensorrt", ""),
    ],
)
def test_the_backend_follows_from_format_and_image(model_format, variant, backend, platform):
    manifest = model_manifest("magika").model_copy(update={"format": model_format})
    instances = InstancesSpec(kind="gpu" if model_format == "tensorrt" else "cpu")
    config = parse_config(render_config(manifest, 1, ServingSpec(instances=instances), variant))
    assert (config.backend, config.platform) == (backend, platform)


@pytest.mark.parametrize("model_format", ["torchscript", "savedmodel", "tensorrt"])
def test_a_format_the_image_cannot_serve_is_refused_with_those_it_can(model_format):
    manifest = model_manifest("magika").model_copy(update={"format": model_format})
    with pytest.raises(ManifestError, match=f"format {model_format}.*variant cpu.*onnx, python") as error:
        render_config(manifest, 1, ServingSpec(), "cpu")
    assert "images.variant: gpu" in error.value.hint
