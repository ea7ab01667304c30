"""The hash that stands for a version: it changes with what is pinned, and with nothing else."""

import hashlib
from typing import Any

import pytest

from components.errors import ManifestError
from serving.artefact import artefact_sha256, code_sha256
from serving.model_manifest import MODELS_DIR, ModelManifest, model_manifest, model_names
from serving.registry.artefact import record_of_manifest
from tests.registries import MODEL


def manifest(**version: Any) -> ModelManifest:
    """MODEL with these keys of its first version changed."""
    known = model_manifest(MODEL)
    first, *others = known.versions
    return known.model_copy(update={"versions": (first.model_copy(update=version), *others)})


FILES = model_manifest(MODEL).version(1).files


def test_of_plain_files_it_is_the_hash_of_what_sha256sum_prints_sorted() -> None:
    code = {path.name: code_sha256(path.read_bytes()) for path in MODELS_DIR.joinpath(MODEL).glob("*.py")}
    listing = "".join(sorted(f"{sha256}  {name}\n" for name, sha256 in {**code, **{file.name: file.sha256 for file in FILES}}.items()))
    assert artefact_sha256(manifest(), 1) == hashlib.sha256(listing.encode()).hexdigest()


@pytest.mark.parametrize(
    "changed",
    [
        FILES[1:],
        (FILES[0].model_copy(update={"sha256": "0" * 64}), *FILES[1:]),
        (FILES[0].model_copy(update={"name": "other.onnx"}), *FILES[1:]),
        (),
    ],
)
def test_other_files_are_another_artefact(changed: tuple[Any, ...]) -> None:
    assert artefact_sha256(manifest(files=changed), 1) != artefact_sha256(manifest(), 1)


@pytest.mark.parametrize("version", [{"files": tuple(reversed(FILES))}, {"description": "other"}, {"memory_mib": 1}, {"requires": {"triton": ">=1"}}])
def test_what_a_version_needs_and_is_called_is_no_part_of_it(version: dict[str, Any]) -> None:
    assert artefact_sha256(manifest(**version), 1) == artefact_sha256(manifest(), 1)


def test_every_published_version_has_an_artefact_of_its_own_and_a_record() -> None:
    versions = [(name, number) for name in model_names() for number in model_manifest(name).version_numbers]
    records = [record_of_manifest(model_manifest(name), number) for name, number in versions]
    assert len({record.artefact_sha256 for record in records}) == len(versions)
    assert {"://" in record.source for record in records} == {True}


def test_a_version_that_was_never_published_has_none() -> None:
    with pytest.raises(ManifestError, match="has no version 9"):
        artefact_sha256(manifest(), 9)
