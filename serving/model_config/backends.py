"""Which backend of Triton runs a format; it depends on the image, because the two kinds of serving image hold different backends."""

from dataclasses import dataclass
from typing import Literal

from components.errors import ManifestError
from serving.model_manifest import Format

ImageVariant = Literal["cpu", "gpu"]


@dataclass(frozen=True)
class Backend:
    """`backend` and `platform` as config.pbtxt names them; `platform` is set only where Triton asks for it.

    `in_python`: the backend runs models in Python processes, with which it shares memory.
    """

    name: str
    platform: str = ""
    in_python: bool = False

    @property
    def python(self) -> str | None:
        """The backend's name when it is written in Python."""
        return self.name if self.in_python else None


PYTHON = Backend("python", in_python=True)
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
# The CPU image holds one backend in C++, Python's. Its `onnxruntime` is written in Python and goes by the name of the native one, so that the
# same config.pbtxt serves a model in both images.
CPU: dict[Format, Backend] = {"python": PYTHON, "onnx": Backend("onnxruntime", in_python=True), "ensemble": ENSEMBLE}


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
