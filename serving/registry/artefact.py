"""What model.yaml says about a version, as a record; and the hash by which registry and stack know that they mean the same artefact."""

import hashlib
import json

from serving.model_manifest import ModelManifest, ModelVersionSpec, SourceFileSpec
from serving.model_steps import StepSpec
from serving.registry.record import VersionRecord


def artefact_sha256(manifest: ModelManifest, number: int) -> str:
    """SHA-256 of what model.yaml pins of a version, so that the stack needs no file to compare it. Raises ManifestError for a version that is not.

    A line `<sha256>  <name>` for each file, sorted, with the transformation behind it where there is one; for each step of an ensemble a line of JSON. Of
    a version that is code alone nothing is pinned, and its name and number stand for it: the code is compared where it is published, by checksums.json.
    """
    version = manifest.version(number)
    lines = [*sorted(map(_line, version.files)), *map(_step, version.steps)] or [f"{manifest.name} {number}\n"]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def record_of_manifest(manifest: ModelManifest, number: int, *, source: str | None = None) -> VersionRecord:
    """The record of a version as published, before any measurement. Raises ManifestError for a version that is not."""
    version = manifest.version(number)
    return VersionRecord(
        model=manifest.name,
        version=number,
        artefact_sha256=artefact_sha256(manifest, number),
        source=source or _source(manifest, version),
        framework=version.framework,
        requires=version.requires,
    )


def _line(file: SourceFileSpec) -> str:
    done = "" if file.transformation == "none" else f" {file.transformation}"
    return f"{file.sha256}  {file.name}{done}\n"


def _step(step: StepSpec) -> str:
    return json.dumps(step.model_dump(mode="json", by_alias=True), sort_keys=True) + "\n"


def _source(manifest: ModelManifest, version: ModelVersionSpec) -> str:
    """Where the first file comes from, as a URI: an MLflow server takes nothing that looks like a path of its own machine."""
    if not version.files:
        return f"repository://{manifest.name}/{version.version}"
    source = version.files[0].source
    match source.kind:
        case "wheel":
            wheel = manifest.wheel
            return f"wheel://{wheel.distribution}/{wheel.version}" if wheel else f"wheel://{manifest.name}"
        case "s3":
            return source.uri
        case "oci":
            return f"oci://{source.reference}"
        case "file":
            return f"repository://{manifest.name}/{version.version}"
