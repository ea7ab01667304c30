"""One definition of a version's content: from model.yaml before anything is built, and from what a build lists."""

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from components.errors import ManifestError
from serving.artefact import MAX_PARSED_BYTES, artefact_sha256, code_sha256, files_sha256, version_files
from serving.model_files import SourceFileSpec
from serving.model_manifest import ModelManifest, model_manifest
from serving.model_sources import LocalSourceSpec
from serving.repository.build import build_repository
from serving.repository.errors import RepositoryError
from serving.repository.expected import refuse_unexpected
from serving.repository.store import read_checksums
from serving.repository.volume import VolumeStore

CODE = b"""# About.
import os


def run(value):  # takes a value
    text = '''
# no comment

'''
    return (
        os.fspath(value),  # first

        text,
    )
"""
PLAIN = b"""import os
def run(value):
    text = '''
# no comment

'''
    return (
        os.fspath(value),
        text,
    )
"""


def plain(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def test_comments_and_blank_lines_are_no_part_of_code() -> None:
    assert code_sha256(CODE) == code_sha256(PLAIN) == plain(PLAIN)


@pytest.mark.parametrize(
    "changed",
    [
        CODE.replace(b"no comment", b"another text"),
        CODE.replace(b"(value)", b"(values)", 1),
        CODE.replace(b"\n\n'''", b"\n'''"),
        CODE + b"import sys\n",
        # What a tokeniser takes for a comment and the interpreter does not.
        CODE + b"# quiet\rimport sys\n",
    ],
)
def test_whatever_runs_is_a_part_of_it(changed: bytes) -> None:
    assert code_sha256(changed) != code_sha256(CODE)


@pytest.mark.parametrize(
    "content", [b"this is no Python # x", b"\x00", b"\xff# x", b"x = 1 # x\n" * MAX_PARSED_BYTES, b"#\n" + b"(" * 5000, b"'" * 7]
)
def test_what_is_no_code_or_too_long_to_look_at_counts_byte_for_byte(content: bytes) -> None:
    assert code_sha256(content) == plain(content)


def small(files: dict[str, bytes], **changes: str) -> ModelManifest:
    """A model whose files lie beside its model.yaml, in folder `own`."""
    listed = tuple(
        SourceFileSpec(name=name, source=LocalSourceSpec(kind="file", path=f"own/{name}"), sha256=plain(content), size_bytes=len(content)).model_copy(
            update=changes
        )
        for name, content in files.items()
    )
    magika = model_manifest("magika")
    return magika.model_copy(update={"name": "small", "versions": (magika.versions[0].model_copy(update={"files": listed}),)})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, bytes]], None]:
    for module in ("artefact", "repository.sources"):
        monkeypatch.setattr(f"serving.{module}.MODELS_DIR", tmp_path / "models")

    def write(files: dict[str, bytes]) -> None:
        for name, content in files.items():
            path = tmp_path / "models" / "small" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)

    return write


OWN = {"weights.bin": b"weights", "classes.json": b"[]"}


@pytest.mark.parametrize("own", [OWN, {**OWN, "model.py": b"import json  # its own\n"}])
def test_what_a_build_lists_is_what_model_yaml_foretold(folder: Callable[[dict[str, bytes]], None], tmp_path: Path, own: dict[str, bytes]) -> None:
    """Also where a version lists code of its own, in place of that beside model.yaml."""
    folder({"model.py": CODE, **{f"own/{name}": content for name, content in own.items()}})
    manifest = small(own)
    [ref] = build_repository([manifest], lambda _: tmp_path, tmp_path / "built")
    store = VolumeStore(tmp_path / "built")
    refuse_unexpected(store, read_checksums(store, ref), artefact_sha256(manifest, 1))
    folder({"model.py": CODE.replace(b"import os", b"import sys")})
    with pytest.raises(RepositoryError) if own == OWN else pytest.MonkeyPatch.context():
        refuse_unexpected(store, read_checksums(store, ref), artefact_sha256(manifest, 1))


def test_a_comment_beside_model_yaml_makes_no_new_version_and_code_does(folder: Callable[[dict[str, bytes]], None]) -> None:
    manifest = small(OWN)
    folder({"model.py": CODE})
    before = artefact_sha256(manifest, 1)
    folder({"model.py": PLAIN})
    assert artefact_sha256(manifest, 1) == before
    folder({"model.py": PLAIN.replace(b"text,", b"None,")})
    assert artefact_sha256(manifest, 1) != before


def test_a_derived_file_counts_as_what_it_becomes(folder: Callable[[dict[str, bytes]], None]) -> None:
    folder({"model.py": CODE})
    one, two = (small(OWN, derived_sha256=letter * 64) for letter in "ab")
    assert artefact_sha256(one, 1) != artefact_sha256(two, 1)
    assert version_files(one, 1)["weights.bin"] == "a" * 64


def test_an_ensemble_changes_with_the_artefact_of_a_step() -> None:
    ocr, read = model_manifest("ocr"), model_manifest("ocr_recognise")
    [version] = read.versions
    [file] = version.files
    changed = read.model_copy(
        update={"versions": (version.model_copy(update={"files": (file.model_copy(update={"sha256": "0" * 64}),)}),)},
    )
    found = artefact_sha256(ocr, 1, lambda name: changed if name == read.name else model_manifest(name))
    assert found != artefact_sha256(ocr, 1)
    assert version_files(ocr, 1) == {}
    assert files_sha256({}) == plain(b"")


def test_listed_code_that_is_missing_or_other_is_named(folder: Callable[[dict[str, bytes]], None]) -> None:
    manifest = small({"model.py": b"import json"})
    with pytest.raises(ManifestError, match=r"own/model\.py cannot be read"):
        artefact_sha256(manifest, 1)
    folder({"own/model.py": b"import sys"})
    with pytest.raises(ManifestError, match=r"own/model\.py has SHA-256"):
        artefact_sha256(manifest, 1)
