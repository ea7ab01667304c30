"""config.pbtxt, typed: what the stack says about serving a model, rendered through Triton's own protobuf, and the way back."""

from serving.model_config.backends import Backend, ImageVariant, backend_of
from serving.model_config.batching import BatchingSpec, PrioritiesSpec, QueuePolicySpec
from serving.model_config.ensemble import ensemble_faults, part_serving, server_models
from serving.model_config.fit import serving_faults
from serving.model_config.instances import InstancesSpec, RateLimiterSpec
from serving.model_config.optimization import OptimizationSpec
from serving.model_config.read import ReadConfig, parse_config, read_config
from serving.model_config.render import ModelFacts, build_config, config_message, config_text, render_config
from serving.model_config.sequence import DirectSequenceSpec, OldestSequenceSpec, SequenceSpec
from serving.model_config.spec import ServingSpec
from serving.model_config.warmup import WarmupSampleSpec, warmup_files
from serving.model_manifest import Format, ModelManifest, ModelVersionSpec, SignatureSpec, TensorSpec, load_manifest, model_manifest, model_names

__all__ = [
    "Backend",
    "BatchingSpec",
    "DirectSequenceSpec",
    "Format",
    "ImageVariant",
    "InstancesSpec",
    "ModelFacts",
    "ModelManifest",
    "ModelVersionSpec",
    "OldestSequenceSpec",
    "OptimizationSpec",
    "PrioritiesSpec",
    "QueuePolicySpec",
    "RateLimiterSpec",
    "ReadConfig",
    "SequenceSpec",
    "ServingSpec",
    "SignatureSpec",
    "TensorSpec",
    "WarmupSampleSpec",
    "backend_of",
    "build_config",
    "config_message",
    "config_text",
    "ensemble_faults",
    "load_manifest",
    "model_manifest",
    "model_names",
    "parse_config",
    "part_serving",
    "read_config",
    "render_config",
    "server_models",
    "serving_faults",
    "warmup_files",
]
