"""What the figures of a report depend on in this repository, as one key: a report with another key is about other code."""

import hashlib
from functools import cache
from importlib.metadata import version
from pathlib import Path

from serving.model_manifest import MODELS_DIR, ModelManifest

PACKAGES = ("numpy", "onnx", "onnxruntime")
HERE = Path(__file__).resolve().parent
# Not how a report is drawn, and not the adapters of other models.
SHARED_CODE = ("corpus.py", "examples.py", "intervals.py", "measure.py", "pipeline.py", "recipes.py", "runtimes.py", "variants.py", "workshop.py")
TRANSFORM = HERE.parent / "image" / "transform.py"


def packages() -> dict[str, str]:
    """Versions of the packages that make and run the variants."""
    return {name: version(name) for name in PACKAGES}


def inputs_key(manifest: ModelManifest) -> str:
    """Changes with the pipeline's code, the model's code and files, the bounds and recipes of its versions, and the packages."""
    digest = hashlib.sha256(_code(manifest.name))
    for each in manifest.versions:
        digest.update(f"{each.version} {each.quality}\n".encode())
        digest.update("".join(f"{file.name} {file.sha256} {file.transformation} {file.derived_sha256}\n" for file in each.files).encode())
    digest.update(repr(sorted(packages().items())).encode())
    return digest.hexdigest()[:16]


@cache
def _code(model: str) -> bytes:
    """Read once per process, before anything is measured: what runs is what was imported then, whatever is edited meanwhile."""
    return _read(TRANSFORM, *(HERE / name for name in SHARED_CODE)) + model_code(model)


@cache
def model_code(model: str) -> bytes:
    """What surrounds the model's network: its adapter, and the code of its version directories."""
    return _read(*HERE.glob(f"{model}.py"), *sorted((MODELS_DIR / model).glob("*.py")))


def _read(*paths: Path) -> bytes:
    return b"".join(path.name.encode() + b"\0" + path.read_bytes() for path in paths)
