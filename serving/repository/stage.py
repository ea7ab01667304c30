"""Stages the model repository for the image build: every version, plus a config.pbtxt for each model.

What needs onnxruntime (a transformation) is only written down here and done inside the build, so that this runs anywhere the platform's Python does.
"""

import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from google.protobuf import text_format
from tritonclient.grpc import model_config_pb2 as pb

from serving.contract import CONFIG_FILE
from serving.model_config import ImageVariant, ServingSpec, parse_config, render_config
from serving.model_manifest import MODELS_DIR, ModelManifest, ModelVersionSpec
from serving.repository.sources import Wheels, write_source

REPOSITORY = "models"
CHECKS = "checks"
TRANSFORMATIONS = "transformations.json"


def stage_repository(manifests: Iterable[ModelManifest], wheels: Wheels, target: Path, variant: ImageVariant = "cpu") -> None:
    """Write `models/`, `checks/` and `transformations.json` into `target`; ManifestError when a source does not hold what model.yaml says."""
    manifests = list(manifests)
    transformations = write_versions(manifests, wheels, target / REPOSITORY)
    for manifest in manifests:
        default = render_config(manifest, manifest.version_numbers[0], ServingSpec(), variant)
        (target / REPOSITORY / manifest.name / CONFIG_FILE).write_text(default, encoding="utf-8")
        _stage_check(manifest, default, target / CHECKS / manifest.name)
    (target / TRANSFORMATIONS).write_text(json.dumps(transformations, indent=1), encoding="utf-8")


def write_versions(manifests: Iterable[ModelManifest], wheels: Wheels, root: Path) -> list[dict[str, str]]:
    """Write `<model>/<version>/` below `root`: the model's code and the files as their sources hold them. Returns the transformations to be done."""
    transformations = []
    for manifest in manifests:
        for version in manifest.versions:
            _write_version(manifest, version, wheels, root / manifest.name / str(version.version))
            transformations += [
                {"path": f"{manifest.name}/{version.version}/{file.name}", "transformation": file.transformation}
                for file in version.files
                if file.transformation != "none"
            ]
    return transformations


def _write_version(manifest: ModelManifest, version: ModelVersionSpec, wheels: Wheels, directory: Path) -> None:
    directory.mkdir(parents=True)
    for source in sorted((MODELS_DIR / manifest.name).glob("*.py")):
        shutil.copyfile(source, directory / source.name)
    for file in version.files:
        (directory / file.name).parent.mkdir(parents=True, exist_ok=True)
        write_source(manifest, file, wheels, directory / file.name)


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
