"""What model.yaml says about a version, as a record."""

from serving.artefact import artefact_sha256
from serving.model_manifest import ModelManifest, ModelVersionSpec
from serving.registry.errors import RegistryError
from serving.registry.record import SOURCE_MAX, VersionRecord

SOURCE_SHOWN = 100


def record_of_manifest(manifest: ModelManifest, number: int, *, source: str | None = None) -> VersionRecord:
    """The record of a version as published, before any measurement. Raises ManifestError for a version that is not, RegistryError for a `source` that is none."""
    version = manifest.version(number)
    source = source or _source(manifest, version)
    if len(source) > SOURCE_MAX or not source.isprintable():
        raise RegistryError(
            f"source {source[:SOURCE_SHOWN]!r} of {len(source)} characters", hint=f"a URI of at most {SOURCE_MAX} printable characters"
        )
    return VersionRecord(
        model=manifest.name,
        version=number,
        artefact_sha256=artefact_sha256(manifest, number),
        source=source,
        framework=version.framework,
        requires=version.requires,
    )


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
