"""config.pbtxt, typed: what the stack says about serving a model, rendered through Triton's own protobuf."""

from typing import Annotated, Literal, Self

from google.protobuf import text_format
from pydantic import Field, model_validator
from tritonclient.grpc import model_config_pb2 as pb

from components.core.spec import Spec
from components.errors import ManifestError
from serving.model_manifest import ModelManifest, ModelVersionSpec, SignatureSpec, TensorSpec, load_manifest, model_manifest, model_names

__all__ = [
    "BatchingSpec",
    "InstancesSpec",
    "ModelManifest",
    "ModelVersionSpec",
    "SignatureSpec",
    "TensorSpec",
    "load_manifest",
    "model_manifest",
    "model_names",
    "parse_config",
    "render_config",
]


class BatchingSpec(Spec):
    """How the server joins requests; with `maxBatchSize` 0 there is no batcher and nothing to set on it."""

    max_batch_size: Annotated[int, Field(ge=0, le=1024, description="Largest batch; 0: tensors are passed as they come.")] = 0
    preferred_sizes: Annotated[
        tuple[Annotated[int, Field(ge=1)], ...], Field(strict=False, description="Sizes worth waiting for, ascending, at most maxBatchSize.")
    ] = ()
    max_queue_delay_microseconds: Annotated[
        int | None, Field(ge=0, le=10_000_000, description="Longest time a request waits for others to join it; absent: it never waits.")
    ] = None
    max_queue_size: Annotated[int | None, Field(ge=1, description="Requests that may wait; further ones are refused. Absent: no limit.")] = None

    @model_validator(mode="after")
    def _settings_have_a_batcher(self) -> Self:
        if self.max_batch_size > 0:
            return self
        # All three live in Triton's batcher (triton-inference-server/server#6368).
        for key, is_set in (
            ("preferredSizes", bool(self.preferred_sizes)),
            ("maxQueueDelayMicroseconds", self.max_queue_delay_microseconds is not None),
            ("maxQueueSize", self.max_queue_size is not None),
        ):
            if is_set:
                raise ValueError(f"{key} is a setting of the batcher, and maxBatchSize 0 means that there is none; set maxBatchSize or drop {key}")
        return self

    @model_validator(mode="after")
    def _preferred_sizes_can_be_reached(self) -> Self:
        sizes = list(self.preferred_sizes)
        if sizes != sorted(set(sizes)):
            raise ValueError(f"preferredSizes {sizes} must ascend without repetition")
        if sizes and self.max_batch_size and sizes[-1] > self.max_batch_size:
            raise ValueError(f"preferredSizes {sizes}: {sizes[-1]} is above maxBatchSize {self.max_batch_size} and can never be reached")
        return self


class InstancesSpec(Spec):
    """Copies of a model inside one server."""

    count: Annotated[int, Field(ge=1, le=64, description="Copies per GPU (kind gpu) or per server (kind cpu).")] = 1
    kind: Literal["cpu", "gpu"] = "cpu"


def render_config(manifest: ModelManifest, triton_name: str, version: int, batching: BatchingSpec, instances: InstancesSpec) -> str:
    """Text of the config.pbtxt with which a server loads `version` and nothing else; the same input gives the same bytes.

    Raises ManifestError for an unpublished version, a name that is not the model's, and batching on a signature with a fixed first axis.
    """
    if triton_name != manifest.name:
        raise ManifestError(
            f"tritonName {triton_name!r} is not the name of the model, {manifest.name!r}, and Triton loads a model only by its directory's name",
            hint=f"set tritonName: {manifest.name}",
        )
    manifest.version(version)
    batched = batching.max_batch_size > 0
    config = pb.ModelConfig(
        name=triton_name,
        backend=manifest.backend,
        max_batch_size=batching.max_batch_size,
        version_policy=pb.ModelVersionPolicy(specific=pb.ModelVersionPolicy.Specific(versions=[version])),
        input=[
            pb.ModelInput(name=tensor.name, data_type=_data_type(tensor), dims=_dims(manifest, tensor, batched=batched))
            for tensor in manifest.signature.inputs
        ],
        output=[
            pb.ModelOutput(name=tensor.name, data_type=_data_type(tensor), dims=_dims(manifest, tensor, batched=batched))
            for tensor in manifest.signature.outputs
        ],
        instance_group=[pb.ModelInstanceGroup(count=instances.count, kind=pb.ModelInstanceGroup.Kind.Value(f"KIND_{instances.kind.upper()}"))],
        dynamic_batching=_dynamic_batching(batching) if batched else None,
    )
    return text_format.MessageToString(config)


def parse_config(text: str) -> pb.ModelConfig:
    """The protobuf message behind a config.pbtxt; `text_format.ParseError` when Triton could not read it either."""
    return text_format.Parse(text, pb.ModelConfig())


def _data_type(tensor: TensorSpec) -> int:
    return int(pb.DataType.Value("TYPE_STRING" if tensor.datatype == "BYTES" else f"TYPE_{tensor.datatype}"))


def _dims(manifest: ModelManifest, tensor: TensorSpec, *, batched: bool) -> tuple[int, ...]:
    """Triton's `dims`: with batching the first axis is the batch, which Triton adds itself (triton-inference-server/server#1338)."""
    if not batched:
        return tensor.dims
    first, *rest = tensor.dims
    if first != -1:
        raise ManifestError(
            f"model {manifest.name!r}: batching needs a variable first axis, but tensor {tensor.name!r} has shape {list(tensor.dims)}",
            hint="set batching.maxBatchSize: 0, or publish a version whose first axis is -1",
        )
    if not rest:
        raise ManifestError(
            f"model {manifest.name!r}: tensor {tensor.name!r} has shape [-1]; without the batch axis no axis is left for `dims`",
            hint="set batching.maxBatchSize: 0, or publish the tensor with shape [-1, 1]",
        )
    return tuple(rest)


def _dynamic_batching(batching: BatchingSpec) -> pb.ModelDynamicBatching:
    queue = None if batching.max_queue_size is None else pb.ModelQueuePolicy(max_queue_size=batching.max_queue_size)
    return pb.ModelDynamicBatching(
        preferred_batch_size=batching.preferred_sizes,
        max_queue_delay_microseconds=batching.max_queue_delay_microseconds or 0,
        default_queue_policy=queue,
    )
