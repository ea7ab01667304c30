"""The staged repository: what is published comes out of the wheel unchanged, or the build stops."""

import hashlib
import json
import zipfile

import pytest

from components.errors import ManifestError
from serving.model_config import parse_config
from serving.model_manifest import MODELS_DIR, model_manifest
from serving.model_sources import WheelSourceSpec
from serving.repository.sources import write_source
from serving.repository.stage import stage_repository


def member(file):
    assert isinstance(file.source, WheelSourceSpec)
    return file.source.member


@pytest.fixture
def wheel(tmp_path):
    """A wheel with small files at the members that the returned manifest names."""
    manifest = model_manifest("magika")
    path = tmp_path / "model.whl"
    taken = [file for version in manifest.versions for file in version.files if file.source.kind == "wheel"]
    content = {member(file): f"content of {file.name}".encode() for file in taken}
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in content.items():
            archive.writestr(name, data)

    def pinned(file):
        if file not in taken:
            return file
        data = content[member(file)]
        return file.model_copy(update={"sha256": hashlib.sha256(data).hexdigest(), "size_bytes": len(data)})

    versions = tuple(version.model_copy(update={"files": tuple(map(pinned, version.files))}) for version in manifest.versions)
    return path, manifest.model_copy(update={"versions": versions})


def test_each_version_directory_holds_its_files_and_the_models_code(wheel, tmp_path):
    path, manifest = wheel
    stage_repository([manifest], lambda _: path, tmp_path / "out")
    code = {source.name for source in (MODELS_DIR / "magika").glob("*.py")}
    for version in manifest.versions:
        directory = tmp_path / "out" / "models" / "magika" / str(version.version)
        assert {file.name for file in directory.iterdir()} == code | {file.name for file in version.files}
        assert (directory / "model.onnx").read_text() == "content of model.onnx"


def test_only_the_quantised_version_is_to_be_transformed(wheel, tmp_path):
    path, manifest = wheel
    stage_repository([manifest], lambda _: path, tmp_path / "out")
    listing = json.loads((tmp_path / "out" / "transformations.json").read_text())
    [derived] = [file for file in manifest.version(2).files if file.derived_sha256]
    assert listing == [{"path": "magika/2/model.onnx", "transformation": "quantise-static-int8", "sha256": derived.derived_sha256}]


def test_the_default_config_loads_the_first_version_and_every_version_is_asked(wheel, tmp_path):
    path, manifest = wheel
    stage_repository([manifest], lambda _: path, tmp_path / "out")
    default = parse_config((tmp_path / "out" / "models" / "magika" / "config.pbtxt").read_text())
    assert list(default.version_policy.specific.versions) == [1]
    for version in (1, 2):
        folder = tmp_path / "out" / "checks" / f"magika-{version}"
        assert list(parse_config((folder / "models" / "magika" / "config.pbtxt").read_text()).version_policy.specific.versions) == [version]
        check = json.loads((folder / "check.json").read_text())
        assert (check["load"], check["version"], check["expected"]["name"]) == ({"magika": version}, version, "label")
        assert (folder / "request").read_bytes()[4:].startswith(b"#!/usr/bin/env python3")
        assert (folder / "expected").read_bytes() == b"\6\0\0\0python"


def test_a_version_that_nothing_asks_stops_the_build(wheel, tmp_path):
    path, manifest = wheel
    with pytest.raises(ManifestError, match=r"nothing asks these model versions.*: magika 1, magika 2"):
        stage_repository([manifest.model_copy(update={"check": None})], lambda _: path, tmp_path / "out")


def test_a_file_with_another_hash_stops_the_build_and_both_hashes_are_named(wheel, tmp_path):
    path, manifest = wheel
    file = manifest.versions[0].files[0].model_copy(update={"sha256": "0" * 64})
    with pytest.raises(ManifestError, match=r"model.onnx has SHA-256 [0-9a-f]{64}, but model.yaml says 0{64} for model.onnx"):
        write_source(manifest, file, lambda _: path, tmp_path / "file")


def test_a_size_that_is_not_the_files_stops_the_build(wheel, tmp_path):
    path, manifest = wheel
    file = manifest.versions[0].files[0].model_copy(update={"size_bytes": 3})
    with pytest.raises(ManifestError, match=r"has 21 bytes, but model.yaml says 3 for model.onnx"):
        write_source(manifest, file, lambda _: path, tmp_path / "file")


@pytest.mark.parametrize("damage", ["missing member", "truncated", "absent", "damaged member"])
def test_a_wheel_that_cannot_be_read_stops_the_build(wheel, tmp_path, damage):
    path, manifest = wheel
    file = manifest.versions[0].files[0]
    if damage == "missing member":
        file = file.model_copy(update={"source": WheelSourceSpec(kind="wheel", member="no/such/member")})
    elif damage == "truncated":
        path.write_bytes(path.read_bytes()[:100])
    elif damage == "damaged member":
        path.write_bytes(path.read_bytes().replace(b"content of model", b"CONTENT of model"))
    else:
        path.unlink()
    with pytest.raises(ManifestError, match="cannot be read"):
        write_source(manifest, file, lambda _: path, tmp_path / "file")
