"""Where a stack's wishes and a published model do not fit together: Triton would refuse to load it, or do something else than was meant."""

from collections.abc import Iterator

from components.core.faults import Fault
from components.errors import ManifestError
from serving.model_config.backends import Backend, ImageVariant, backend_of
from serving.model_config.spec import ServingSpec
from serving.model_manifest import ModelManifest, TensorSpec

PUBLISH = "publish a version whose first axis is -1"


def serving_faults(manifest: ModelManifest, serving: ServingSpec, variant: ImageVariant) -> Iterator[Fault]:
    """Every misfit, with the key to change below models.<name>; keys of the model itself are named in the sentence."""
    try:
        backend = backend_of(manifest.name, manifest.format, variant)
    except ManifestError as error:
        yield Fault((), error.message, error.hint)
        return
    axis_faults = (
        [fault for tensor in manifest.signature.tensors for fault in _axis_faults(manifest, tensor)] if serving.batching.max_batch_size else []
    )
    yield from axis_faults
    yield from _sequence_faults(manifest, serving)
    yield from _instance_faults(manifest, serving, backend)
    if manifest.decoupled and serving.response_cache:
        reason = f"cannot be used: model {manifest.name!r} is decoupled, and Triton refuses to cache any number of answers"
        yield Fault(("responseCache",), reason, "drop responseCache")
    for fault in serving.optimization.faults(backend, on_gpu=serving.instances.on_gpu):
        yield Fault(("optimization", *fault.keys), fault.reason, fault.way_out)
    if not axis_faults:
        yield from _warmup_faults(manifest, serving)


def _axis_faults(manifest: ModelManifest, tensor: TensorSpec) -> Iterator[Fault]:
    """With batching the first axis is the batch, which Triton adds itself (triton-inference-server/server#1338, #1889, #7056)."""
    first, *rest = tensor.dims
    key = ("batching", "maxBatchSize")
    if first != -1:
        reason = f"model {manifest.name!r}: batching needs a variable first axis, but tensor {tensor.name!r} has shape {list(tensor.dims)}"
        yield Fault(key, reason, f"set batching.maxBatchSize: 0, or {PUBLISH}")
    elif not rest:
        reason = f"model {manifest.name!r}: tensor {tensor.name!r} has shape [-1]; without the batch axis no axis is left for `dims`"
        yield Fault(key, reason, "set batching.maxBatchSize: 0, or publish the tensor with shape [-1, 1]")


def _sequence_faults(manifest: ModelManifest, serving: ServingSpec) -> Iterator[Fault]:
    if manifest.signature.controls and serving.sequence is None:
        names = ", ".join(control.name for control in manifest.signature.controls)
        reason = f"is required: model {manifest.name!r} has the control inputs {names}, which only the sequence batcher fills"
        yield Fault(("sequence",), reason, "set sequence: {strategy: direct}")


def _instance_faults(manifest: ModelManifest, serving: ServingSpec, backend: Backend) -> Iterator[Fault]:
    for index, group in enumerate(serving.instances.groups):
        keys: tuple[str | int, ...] = ("instances",) if index == 0 else ("instances", "further", index - 1)
        if group.profiles and backend.name != "tensorrt":
            yield Fault((*keys, "profiles"), f"only a TensorRT plan has optimisation profiles, this is {manifest.format}", "drop profiles")
        if group.kind == "gpu" and manifest.format == "onnx" and backend.in_python:
            reason = "would hold GPUs and compute on CPUs: an image of variant cpu runs ONNX through onnxruntime for CPUs"
            yield Fault((*keys, "kind"), reason, "set images.variant: gpu with an image built on NVIDIA's Triton, or kind: cpu")
        if group.kind == "cpu" and backend.name == "tensorrt":
            yield Fault((*keys, "kind"), "is cpu, and a TensorRT plan runs on GPUs", "set kind: gpu")


def _warmup_faults(manifest: ModelManifest, serving: ServingSpec) -> Iterator[Fault]:
    if serving.warmup and manifest.signature.controls:
        names = ", ".join(control.name for control in manifest.signature.controls)
        yield Fault(("warmup",), f"cannot be answered: nobody fills the control inputs {names} of a warm-up request", "drop warmup")
        return
    for index, sample in enumerate(serving.warmup):
        for fault in sample.faults(manifest, serving.batching.max_batch_size):
            yield Fault(("warmup", index, *fault.keys), fault.reason, fault.way_out)
