"""Stages the model repository for the image build: every version, plus a config.pbtxt for each model.

What needs onnxruntime (a transformation) is only written down here and done inside the build, so that this runs anywhere the platform's Python does.
"""

import json
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from components.errors import ManifestError
from serving.artefact import code_files
from serving.contract import CONFIG_FILE
from serving.model_check import CheckSpec, check_answer
from serving.model_config import ImageVariant, ServingSpec, render_config, server_models
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
    _stage_checks(manifests, variant, target / CHECKS)
    (target / TRANSFORMATIONS).write_text(json.dumps(transformations, indent=1), encoding="utf-8")


def write_versions(manifests: Iterable[ModelManifest], wheels: Wheels, root: Path) -> list[dict[str, str]]:
    """Write `<model>/<version>/` below `root`: the model's code and the files as their sources hold them. Returns the transformations to be done."""
    transformations = []
    for manifest in manifests:
        for version in manifest.versions:
            _write_version(manifest, version, wheels, root / manifest.name / str(version.version))
            transformations += [
                {"path": f"{manifest.name}/{version.version}/{file.name}", "transformation": file.transformation, "sha256": str(file.derived_sha256)}
                for file in version.files
                if file.transformation != "none"
            ]
    return transformations


def _write_version(manifest: ModelManifest, version: ModelVersionSpec, wheels: Wheels, directory: Path) -> None:
    directory.mkdir(parents=True)
    # An ensemble runs no code of its own.
    for source in [] if version.steps else code_files(manifest):
        shutil.copyfile(source, directory / source.name)
    for file in version.files:
        (directory / file.name).parent.mkdir(parents=True, exist_ok=True)
        write_source(manifest, file, wheels, directory / file.name)


def _stage_checks(manifests: list[ModelManifest], variant: ImageVariant, target: Path) -> None:
    """Per version that is asked, what a server of it needs beside the repository: the configs of exactly its models, the request and its answer."""
    asked: set[tuple[str, int]] = set()
    known = {manifest.name: manifest for manifest in manifests}
    for manifest in manifests:
        if manifest.check is None:
            continue
        for version in manifest.version_numbers:
            models = server_models(manifest, version, known.__getitem__)
            asked |= {(model.name, number) for model, number in models}
            folder = target / f"{manifest.name}-{version}"
            for model, number in models:
                (folder / REPOSITORY / model.name).mkdir(parents=True)
                config = render_config(model, number, ServingSpec(), variant)
                (folder / REPOSITORY / model.name / CONFIG_FILE).write_text(config, encoding="utf-8")
            _write_check(manifest, manifest.check, version, models, folder)
    silent = [f"{manifest.name} {version}" for manifest in manifests for version in manifest.version_numbers if (manifest.name, version) not in asked]
    if silent:
        raise ManifestError(
            f"nothing asks these model versions, so nothing would prove that they work in the image: {', '.join(silent)}",
            hint="add `check` to model.yaml, or make the version a step of an ensemble that has one",
        )


def _write_check(manifest: ModelManifest, check: CheckSpec, version: int, models: Sequence[tuple[ModelManifest, int]], folder: Path) -> None:
    """check.json, and in `request` and `expected` the tensors as the protocol has them: in the finished image there is only Python's own library."""
    inputs, answer = manifest.check_inputs, check_answer(check, manifest.signature.outputs, MODELS_DIR / manifest.name)
    (folder / "request").write_bytes(b"".join(tensor.content for tensor in inputs))
    (folder / "expected").write_bytes(answer.content)
    content = {
        "model": manifest.name,
        "version": version,
        "load": {model.name: number for model, number in models},
        "inputs": [
            {"name": tensor.name, "datatype": tensor.datatype, "shape": tensor.shape, "parameters": {"binary_data_size": len(tensor.content)}}
            for tensor in inputs
        ],
        "expected": {"name": answer.name, "datatype": answer.datatype, "shape": answer.shape},
        "tolerance": check.tolerance,
        "ready_seconds": sum(model.load_budget_seconds for model, _ in models),
    }
    (folder / "check.json").write_text(json.dumps(content, indent=1), encoding="utf-8")
