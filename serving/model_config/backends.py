"""Which backend of Triton runs a format; it depends on the image, because the two kinds of serving image hold different backends."""

from dataclasses import dataclass
from typing import Literal

from components.errors import ManifestError
from serving.model_manifest import Format

ImageVariant = Literal["cpu", "gpu"]


@dataclass(frozen=True)
class Backend:
    """`backend` and `platform` as config.pbtxt names them; `platform` is set only where Triton asks for it."""

    name: str
    platform: str = ""


PYTHON = Backend("python")
# An ensemble has no backend: Triton itself runs its steps.
ENSEMBLE = Backend("", "ensemble")
# NVIDIA's image. Without its platform the TensorFlow backend cannot tell a SavedModel from a frozen graph.
NATIVE: dict[Format, Backend] = {
    "python": PYTHON,
    "onnx": Backend("onnxruntime"),
    "torchscript": Backend("pytorch"),
    "savedmodel": Backend("tensorflow", "tensorflow_savedmodel"),
    "tensorrt": Backend("tensorrt"),
    "ensemble": ENSEMBLE,
}
# The CPU image holds the Python backend alone; a model.py that runs the network through onnxruntime serves ONNX there.
CPU: dict[Format, Backend] = {"python": PYTHON, "onnx": PYTHON, "ensemble": ENSEMBLE}


def backend_of(model: str, model_format: Format, variant: ImageVariant) -> Backend:
    """The backend that serves `model_format` in an image of `variant`; ManifestError names the model and the formats the image can serve."""
    known = NATIVE if variant == "gpu" else CPU
    if model_format not in known:
        raise ManifestError(
            f"model {model!r} has format {model_format}, and an image of variant {variant} has no backend for it, "
            f"only for {', '.join(sorted(known))}",
            hint="set images.variant: gpu and images.triton to an image built on NVIDIA's Triton, or publish the model as onnx",
        )
    return known[model_format]
