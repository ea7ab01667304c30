"""config.pbtxt: manifest and stack together, through Triton's own protobuf."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from google.protobuf import text_format
from tritonclient.grpc import model_config_pb2 as pb

from components.errors import ManifestError
from serving.model_config.backends import ENSEMBLE, Backend, ImageVariant, backend_of
from serving.model_config.batching_message import dynamic_batching
from serving.model_config.datatypes import data_type
from serving.model_config.ensemble import scheduling
from serving.model_config.fit import serving_faults
from serving.model_config.instances_message import instance_groups
from serving.model_config.optimization_message import optimization
from serving.model_config.sequence_message import sequence_batching
from serving.model_config.spec import ServingSpec
from serving.model_config.warmup_message import Shapes, model_warmup
from serving.model_manifest import ModelManifest, SignatureSpec, TensorSpec
from serving.model_steps import StepSpec

# Of a ServerSpec that says nothing.
DEFAULT_CPU_CORES = 2.0


@dataclass(frozen=True, kw_only=True)
class ModelFacts:
    """What a model is, as far as config.pbtxt says it; `versions` are those it loads, none: the newest."""

    name: str
    backend: Backend
    versions: tuple[int, ...]
    signature: SignatureSpec
    decoupled: bool = False
    parameters: Mapping[str, str] = field(default_factory=dict)
    steps: tuple[StepSpec, ...] = ()
    check_shapes: Shapes = field(default_factory=dict)


def render_config(manifest: ModelManifest, version: int, serving: ServingSpec, variant: ImageVariant, *, cpu_cores: float = DEFAULT_CPU_CORES) -> str:
    """Text of the config.pbtxt with which a server of an image of `variant` loads `version` and nothing else.

    The same input gives the same bytes; `cpu_cores` of the server decide how many CPU instances there are when nobody says. Raises ManifestError
    for an unpublished version and for the first of `serving_faults`.
    """
    return config_text(build_config(manifest, version, serving, variant, cpu_cores=cpu_cores))


def build_config(
    manifest: ModelManifest, version: int, serving: ServingSpec, variant: ImageVariant, *, cpu_cores: float = DEFAULT_CPU_CORES
) -> pb.ModelConfig:
    """The message behind `render_config`; the same errors."""
    published = manifest.version(version)
    for fault in serving_faults(manifest, serving, variant):
        key = ".".join(map(str, fault.keys))
        raise ManifestError(f"{key}: {fault.reason}" if key else fault.reason, fault.way_out, fault.keys)
    facts = ModelFacts(
        name=manifest.name,
        backend=backend_of(manifest.name, manifest.format, variant),
        versions=(version,),
        signature=manifest.signature,
        decoupled=manifest.decoupled,
        parameters=manifest.parameters,
        steps=published.steps,
        check_shapes={tensor.name: tensor.shape for tensor in manifest.check_inputs} if serving.warmup else {},
    )
    return config_message(facts, serving, cpu_cores=cpu_cores)


def config_message(facts: ModelFacts, serving: ServingSpec, *, cpu_cores: float) -> pb.ModelConfig:
    """The message for a model and what a stack says about it; whether they fit together is not asked here."""
    batched = serving.batching.max_batch_size > 0
    signature = facts.signature
    config = pb.ModelConfig(
        name=facts.name,
        backend=facts.backend.name,
        platform=facts.backend.platform,
        max_batch_size=serving.batching.max_batch_size,
        input=[pb.ModelInput(name=tensor.name, data_type=data_type(tensor.datatype), dims=_dims(tensor, batched)) for tensor in signature.inputs],
        output=[pb.ModelOutput(name=tensor.name, data_type=data_type(tensor.datatype), dims=_dims(tensor, batched)) for tensor in signature.outputs],
        instance_group=[] if facts.backend == ENSEMBLE else instance_groups(serving.instances, serving.rate_limiter, cpu_cores),
        parameters={name: pb.ModelParameter(string_value=value) for name, value in facts.parameters.items()},
        model_warmup=model_warmup(signature, serving.warmup, facts.check_shapes, batched=batched),
        optimization=optimization(serving.optimization),
    )
    if facts.versions:
        config.version_policy.specific.versions.extend(facts.versions)
    if facts.backend == ENSEMBLE:
        # An ensemble has no queue of its own: requests wait for each of its steps.
        config.ensemble_scheduling.CopyFrom(scheduling(facts.steps))
    elif serving.sequence is not None:
        config.sequence_batching.CopyFrom(sequence_batching(serving.sequence, signature.controls))
    elif serving.batching.has_batcher:
        config.dynamic_batching.CopyFrom(dynamic_batching(serving.batching))
    if serving.response_cache:
        config.response_cache.enable = True
    if facts.decoupled:
        config.model_transaction_policy.decoupled = True
    return config


def config_text(message: pb.ModelConfig) -> str:
    """The text of a config.pbtxt; the order of fields and of map entries is fixed, so equal messages give equal bytes."""
    return text_format.MessageToString(message)


def _dims(tensor: TensorSpec, batched: bool) -> tuple[int, ...]:
    """Triton's `dims`: the batch axis is not among them (triton-inference-server/server#1338)."""
    return tensor.dims[1:] if batched else tensor.dims
