"""config.pbtxt, typed: what the stack says about serving a model, rendered through Triton's own protobuf, and the way back."""

from serving.model_config.backends import Backend, ImageVariant, backend_of
from serving.model_config.batching import BatchingSpec
from serving.model_config.instances import InstancesSpec
from serving.model_config.read import parse_config
from serving.model_config.render import render_config
from serving.model_config.spec import ServingSpec
from serving.model_manifest import Format, ModelManifest, ModelVersionSpec, SignatureSpec, TensorSpec, load_manifest, model_manifest, model_names

__all__ = [
    "Backend",
    "BatchingSpec",
    "Format",
    "ImageVariant",
    "InstancesSpec",
    "ModelManifest",
    "ModelVersionSpec",
    "ServingSpec",
    "SignatureSpec",
    "TensorSpec",
    "backend_of",
    "load_manifest",
    "model_manifest",
    "model_names",
    "parse_config",
    "render_config",
]
