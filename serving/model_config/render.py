"""config.pbtxt as text: manifest and stack together, through Triton's own protobuf."""

from google.protobuf import text_format
from tritonclient.grpc import model_config_pb2 as pb

from components.errors import ManifestError
from serving.model_config.backends import ImageVariant, backend_of
from serving.model_config.batching import BatchingSpec
from serving.model_config.spec import ServingSpec
from serving.model_manifest import ModelManifest, TensorSpec


def render_config(manifest: ModelManifest, version: int, serving: ServingSpec, variant: ImageVariant) -> str:
    """Text of the config.pbtxt with which a server of an image of `variant` loads `version` and nothing else.

    The same input gives the same bytes. Raises ManifestError for an unpublished version, a format the image has no backend for, and batching on a
    signature with a fixed first axis.
    """
    manifest.version(version)
    backend = backend_of(manifest.name, manifest.format, variant)
    batching, instances = serving.batching, serving.instances
    batched = batching.max_batch_size > 0
    config = pb.ModelConfig(
        name=manifest.name,
        backend=backend.name,
        platform=backend.platform,
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
