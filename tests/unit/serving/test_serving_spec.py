"""What a stack may say about serving: Triton's rules, and what it accepts although it cannot have been meant."""

import json
import re

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from components.errors import ManifestError
from serving.model_check import CheckSpec, sole_document
from serving.model_config import (
    InstancesSpec,
    ServingSpec,
    SignatureSpec,
    TensorSpec,
    model_manifest,
    parse_config,
    read_config,
    render_config,
    warmup_files,
)
from serving.model_config.warmup import MAX_CHECK_BYTES
from serving.model_manifest import ControlSpec
from tests.unit.serving.serving_values import CONTROLS, SERVING
from tools.paths import REPO


def serving_of(**values):
    return ServingSpec.model_validate_json(json.dumps(values))


def manifest(model_format="onnx", dims=(-1, 3), datatype="FP32", controls=(), **update):
    tensor = TensorSpec(name="x", datatype=datatype, dims=dims)
    signature = SignatureSpec(inputs=(tensor,), outputs=(tensor,), controls=controls)
    return model_manifest("magika").model_copy(update={"format": model_format, "signature": signature, "check": None, **update})


def refusal(published, variant="cpu", **values):
    with pytest.raises(ManifestError) as refused:
        render_config(published, 1, serving_of(**values), variant)
    assert refused.value.hint
    return refused.value


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"batching": {"maxBatchSize": 8, "preferredSizes": [16]}}, "16 is above maxBatchSize 8 and can never be reached"),
        ({"batching": {"maxBatchSize": 8, "preserveOrdering": True, "priorities": {"levels": 2}}}, "preserveOrdering: contradicts priorities"),
        (
            {"batching": {"maxBatchSize": 8, "preserveOrdering": True, "queue": {"timeoutMicroseconds": 9, "timeoutAction": "delay"}}},
            "contradicts timeoutAction delay",
        ),
        ({"batching": {"maxBatchSize": 8, "dynamic": False, "preferredSizes": [4]}}, "dynamic: false means that there is none"),
        ({"batching": {"dynamic": False}}, "dynamic: says how batches are made"),
        ({"batching": {"maxBatchSize": 8, "priorities": {"levels": 2, "queues": [{"level": 1}, {"level": 1}]}}}, "a level has one queue"),
        ({"batching": {"maxBatchSize": 8, "priorities": {"levels": 0}}}, "greater than or equal to 1"),
        ({"batching": {"maxBatchSize": 8, "queue": {"timeoutAction": "delay"}}}, "needs a time-out, and there is none"),
        (
            {"batching": {"maxBatchSize": 8, "maxQueueDelayMicroseconds": 100, "queue": {"timeoutMicroseconds": 100}}},
            "requests would time out while they wait for a batch to fill",
        ),
        (
            {
                "batching": {
                    "maxBatchSize": 8,
                    "maxQueueDelayMicroseconds": 9,
                    "priorities": {"levels": 2, "queues": [{"level": 2, "timeoutMicroseconds": 5}]},
                }
            },
            "priorities.queues: timeoutMicroseconds 5 is not above",
        ),
        ({"sequence": {"strategy": "oldest"}}, "maxCandidateSequences"),
        ({"sequence": {"strategy": "direct", "preferredSizes": [2]}}, "preferredSizes"),
        ({"sequence": {"strategy": "oldest", "maxCandidateSequences": 1, "preferredSizes": [2]}}, "2 is above maxBatchSize 0"),
        ({"sequence": {"strategy": "direct"}, "batching": {"maxBatchSize": 4, "preferredSizes": [2]}}, "has the sequence batcher instead"),
        ({"sequence": {"strategy": "direct"}, "batching": {"maxBatchSize": 4, "dynamic": False}}, "has the sequence batcher instead"),
        ({"instances": {"kind": "gpu", "gpus": [1, 1]}}, "each is named once"),
        ({"instances": {"kind": "gpu", "gpus": [16]}}, "less than or equal to 15"),
        ({"instances": {"count": 0}}, "greater than or equal to 1"),
        ({"rateLimiter": {"resources": [{"name": "R", "count": 1}, {"name": "r", "count": 1}]}}, "a resource is listed once"),
        ({"rateLimiter": {"resources": [{"name": "a:b", "count": 1}]}}, "pattern"),
        ({"warmup": [{"inputs": [{"name": "x", "dims": [-1]}]}]}, "greater than or equal to 1"),
        ({"warmup": [{"inputs": [{"name": "x", "dims": [1]}, {"name": "x", "dims": [1]}]}]}, "an input is listed once"),
        ({"optimization": {"graphLevel": 3}}, "-1, 1 or 2"),
        ({"optimization": {"workspaceMib": 1}}, "accelerator tensorrt, and accelerator is None"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_key(values, reason):
    with pytest.raises(ValidationError) as refused:
        serving_of(**values)
    assert reason in str(refused.value)


ACCELERATED = {"optimization": {"accelerator": "tensorrt"}, "instances": {"kind": "gpu"}}


@pytest.mark.parametrize(
    ("published", "variant", "values", "key", "reason"),
    [
        (
            manifest(),
            "cpu",
            {"optimization": {"accelerator": "openvino"}},
            "optimization.accelerator",
            "onnxruntime of an image of variant cpu has no accelerator",
        ),
        (manifest(), "gpu", {"optimization": {"accelerator": "auto-mixed-precision"}}, "optimization.accelerator", "it has: tensorrt, openvino"),
        (manifest(), "gpu", {"optimization": {"accelerator": "tensorrt"}}, "optimization.accelerator", "tensorrt runs on GPUs"),
        (manifest(), "gpu", {"optimization": {"accelerator": "openvino"}, "instances": {"kind": "gpu"}}, "optimization.accelerator", "runs on CPUs"),
        (manifest("torchscript"), "gpu", ACCELERATED, "optimization.accelerator", "backend pytorch has no accelerator tensorrt, it has: none"),
        (manifest("python"), "cpu", {"optimization": {"graphLevel": 1}}, "optimization.graphLevel", "only onnxruntime and tensorflow have"),
        (manifest(), "gpu", {"optimization": {"inputPinnedMemory": True}}, "optimization.inputPinnedMemory", "no instance is on a GPU"),
        (manifest(), "gpu", {"optimization": {"cudaGraphs": True}, "instances": {"kind": "gpu"}}, "optimization.cudaGraphs", "only backend tensorrt"),
        (manifest(), "gpu", {"instances": {"kind": "gpu", "profiles": [0]}}, "instances.profiles", "this is onnx"),
        (manifest(), "cpu", {"instances": {"kind": "gpu"}}, "instances.kind", "would hold GPUs and compute on CPUs"),
        (manifest(), "cpu", {"instances": {"further": [{"kind": "gpu"}]}}, "instances.further.0.kind", "would hold GPUs and compute on CPUs"),
        (manifest("tensorrt"), "gpu", {}, "instances.kind", "a TensorRT plan runs on GPUs"),
        (manifest(decoupled=True), "cpu", {"responseCache": True}, "responseCache", "is decoupled"),
        (manifest(controls=(ControlSpec(name="S", kind="start", datatype="INT32"),)), "cpu", {}, "sequence", "has the control inputs S"),
        (
            manifest(controls=(ControlSpec(name="S", kind="start", datatype="INT32"),)),
            "cpu",
            {"sequence": {"strategy": "direct"}, "warmup": [{"inputs": [{"name": "x", "dims": [1, 3]}]}]},
            "warmup",
            "nobody fills the control inputs S",
        ),
        (manifest(dims=(1, 3, 512, 512)), "cpu", {"batching": {"maxBatchSize": 8}}, "batching.maxBatchSize", "variable first axis"),
        (manifest(), "cpu", {"warmup": [{}]}, "warmup.0.inputs", "has no check sample"),
        (
            manifest(),
            "cpu",
            {"warmup": [{"batchSize": 2, "inputs": [{"name": "x", "dims": [1, 3]}]}]},
            "warmup.0.batchSize",
            "above batching.maxBatchSize 0",
        ),
        (manifest(), "cpu", {"warmup": [{"inputs": [{"name": "z", "dims": [3]}]}]}, "warmup.0.inputs", "are not those of the model: x"),
        (
            manifest(),
            "cpu",
            {"warmup": [{"inputs": [{"name": "x", "dims": [3]}]}]},
            "warmup.0.inputs",
            "has dims [3], and a row of the model's has [-1, 3]",
        ),
    ],
)
def test_what_the_published_model_or_its_backend_cannot_do_is_refused_by_key(published, variant, values, key, reason):
    error = refusal(published, variant, **values)
    assert ".".join(map(str, error.keys)) == key
    assert reason in error.message


@pytest.mark.parametrize(
    ("model_format", "values"),
    [
        ("onnx", {"optimization": {"accelerator": "tensorrt", "precision": "fp16", "workspaceMib": 1024}, "instances": {"kind": "gpu"}}),
        ("onnx", {"optimization": {"accelerator": "openvino", "graphLevel": 1}}),
        ("savedmodel", {"optimization": {"accelerator": "auto-mixed-precision"}, "instances": {"kind": "gpu"}}),
        ("tensorrt", {"optimization": {"cudaGraphs": True}, "instances": {"kind": "gpu", "profiles": [0, 1]}}),
    ],
)
def test_what_a_backend_of_the_gpu_image_can_do_is_rendered(model_format, values):
    config = parse_config(render_config(manifest(model_format), 1, serving_of(**values), "gpu"))
    assert config.HasField("optimization")


def test_half_precision_by_tensorrt_reaches_triton_as_its_backend_reads_it():
    values = {"optimization": {"accelerator": "tensorrt", "precision": "fp16", "workspaceMib": 1024}, "instances": {"kind": "gpu"}}
    [accelerator] = parse_config(
        render_config(manifest(), 1, serving_of(**values), "gpu")
    ).optimization.execution_accelerators.gpu_execution_accelerator
    assert accelerator.name == "tensorrt"
    assert dict(accelerator.parameters) == {"precision_mode": "FP16", "max_workspace_size_bytes": str(1024**3)}


def test_a_signature_without_batching_keeps_its_axes_and_takes_no_batcher():
    """triton-inference-server/server#6368: a queue limit lives in the batcher."""
    config = parse_config(render_config(manifest(dims=(-1, 3, 224, 224)), 1, serving_of(), "cpu"))
    assert (config.max_batch_size, list(config.input[0].dims)) == (0, [-1, 3, 224, 224])
    assert config.WhichOneof("scheduling_choice") is None
    with pytest.raises(ValidationError, match="queue: is a setting of the batcher, and maxBatchSize 0 means that there is none"):
        serving_of(batching={"queue": {"maxSize": 8}})


def test_the_check_sample_is_written_as_triton_reads_texts():
    [(name, content)] = warmup_files(model_manifest("magika"), serving_of(warmup=[{}]).warmup).items()
    text = sole_document(model_manifest("magika").check_inputs)
    assert name == "check"
    assert content == len(text).to_bytes(4, "little") + text
    assert warmup_files(model_manifest("magika"), ()) == {}


def test_a_check_sample_that_no_config_map_holds_is_refused():
    check = CheckSpec(inputs={"x": "a" * (MAX_CHECK_BYTES + 1)}, output="x", expected="a")
    assert "has more than" in refusal(manifest(dims=(-1, 1), datatype="BYTES", check=check), warmup=[{}]).message


def test_a_check_sample_of_numbers_warms_up_with_its_own_shape():
    check = CheckSpec(inputs={"x": [[1, 2, 3], [4, 5, 6]]}, output="x", expected=[[1, 2, 3], [4, 5, 6]])
    [sample] = parse_config(render_config(manifest(check=check), 1, serving_of(warmup=[{}]), "cpu")).model_warmup
    assert (list(sample.inputs["x"].dims), sample.inputs["x"].input_data_file) == ([2, 3], "check")
    assert warmup_files(manifest(check=check), serving_of(warmup=[{}]).warmup) == {"check": np.arange(1, 7, dtype="<f4").tobytes()}
    assert "has 2 rows, and a request of a warm-up has one" in refusal(manifest(check=check), batching={"maxBatchSize": 4}, warmup=[{}]).message


def test_every_resource_of_a_rate_limiter_is_told_to_the_server():
    """Once one is told, Triton counts the others as none and loads no model that needs them."""
    limiter = serving_of(rateLimiter={"resources": [{"name": "R1", "count": 2, "available": 6}, {"name": "R2", "count": 3}]}).rate_limiter
    assert limiter is not None
    assert limiter.server_arguments() == ("--rate-limit=execution_count", "--rate-limit-resource=R1:6", "--rate-limit-resource=R2:3")


@given(st.integers(1, 8), st.integers(1, 8), st.integers(1, 8))
def test_instances_are_counted_once_per_pod_and_once_per_card(first, second, gpus):
    instances = InstancesSpec.model_validate_json(
        json.dumps({"kind": "gpu", "count": first, "further": [{"kind": "gpu", "count": second, "gpus": [0]}, {"count": 3}]})
    )
    assert instances.per_pod(cpu_cores=2, gpus=gpus) == first * gpus + second + 3
    assert instances.per_card(gpus) == first + second


FORMATS = st.sampled_from(["python", "onnx", "torchscript", "savedmodel", "tensorrt"])
DIMS = st.lists(st.sampled_from([-1, 1, 3]), min_size=1, max_size=3).map(tuple)


@given(SERVING, FORMATS, st.sampled_from(["cpu", "gpu"]), DIMS, st.sampled_from(["BYTES", "FP32"]), st.booleans(), st.integers(0, 4))
@settings(max_examples=100)
def test_any_wish_about_any_model_is_a_config_or_is_refused_with_a_way_out(values, model_format, variant, dims, datatype, decoupled, controls):  # noqa: PLR0913, PLR0917  as many things meet
    published = manifest(model_format, dims, datatype, CONTROLS[:controls], decoupled=decoupled)
    try:
        text = render_config(published, 1, serving_of(**values), variant)
    except ValidationError:
        return
    except ManifestError as error:
        if not error.hint:
            raise
        return
    read = read_config(text)
    assert (read.format, read.facts.signature, read.unexpressed) == (model_format, published.signature, ())


def test_the_example_of_the_readme_is_one():
    text = (REPO / "serving" / "README.md").read_text(encoding="utf-8")
    [block] = [block for block in re.findall(r"(?:^ {4}.*\n)+", text, re.MULTILINE) if "priorities:" in block]
    batching = serving_of(**yaml.safe_load(block)).batching
    assert batching.priorities is not None
    assert (batching.priorities.default, [queue.level for queue in batching.priorities.queues]) == (1, [2])


@pytest.mark.parametrize(
    ("control", "reason"),
    [
        ({"name": "S", "kind": "start", "datatype": "UINT64"}, "one of the datatypes INT32, FP32, BOOL"),
        ({"name": "C", "kind": "corrid", "datatype": "FP32"}, "one of the datatypes UINT64"),
        ({"name": "S", "kind": "start", "datatype": "BOOL", "values": [0, 2]}, "values of datatype BOOL are 0 and 1"),
        ({"name": "C", "kind": "corrid", "datatype": "INT32", "values": [1, 0]}, "drop values"),
    ],
)
def test_a_control_input_that_triton_cannot_fill_is_refused(control, reason):
    with pytest.raises(ValidationError, match=reason):
        ControlSpec.model_validate_json(json.dumps(control))


def test_tensors_and_kinds_of_controls_are_listed_once():
    tensor = TensorSpec(name="x", datatype="FP32", dims=(1,))
    start = ControlSpec(name="S", kind="start", datatype="INT32")
    with pytest.raises(ValidationError, match="a tensor is listed once"):
        SignatureSpec(inputs=(tensor,), outputs=(tensor, tensor))
    with pytest.raises(ValidationError, match="a tensor is listed once"):
        SignatureSpec(inputs=(tensor,), outputs=(tensor,), controls=(start.model_copy(update={"name": "x"}),))
    with pytest.raises(ValidationError, match="a kind is listed once"):
        SignatureSpec(inputs=(tensor,), outputs=(tensor,), controls=(start, start.model_copy(update={"name": "T"})))
