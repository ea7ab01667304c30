"""model.yaml: closed, and every fault is told with file, key and reason."""

import pytest
import yaml

from components.errors import ManifestError
from serving.model_manifest import MODELS_DIR, load_manifest, model_manifest, model_names


def edited(tmp_path, **changes):
    content = yaml.safe_load((MODELS_DIR / "magika" / "model.yaml").read_text())
    path = tmp_path / "model.yaml"
    path.write_text(yaml.safe_dump({**content, **changes}))
    return path


def test_every_model_is_found_under_its_own_name():
    assert model_names()
    for name in model_names():
        assert model_manifest(name).name == name


def test_magika_has_a_version_as_shipped_and_one_quantised():
    first, second = model_manifest("magika").versions
    assert {file.transformation for file in first.files} == {"none"}
    assert {file.transformation for file in second.files} == {"none", "quantise-static-int8"}
    assert (first.derived, second.derived) == (False, True)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"colour": "red"}, "colour"),
        ({"format": "tensorflow"}, "format"),
        ({"loadBudgetSeconds": "30"}, "loadBudgetSeconds"),
        ({"signature": {"inputs": [], "outputs": []}}, "signature.inputs"),
        ({"signature": {"inputs": [{"name": "x", "datatype": "FP32", "dims": [0]}], "outputs": []}}, "size 0"),
        ({"versions": []}, "versions"),
        ({"loadBudgetSeconds": 0}, "model.yaml: loadBudgetSeconds 0: 0 for an ensemble"),
        ({"format": "x", "loadBudgetSeconds": -1}, "format = 'x': .*; loadBudgetSeconds = -1: "),
    ],
)
def test_a_fault_is_told_with_file_and_key(tmp_path, change, reason):
    path = edited(tmp_path, **change)
    with pytest.raises(ManifestError, match=reason) as error:
        load_manifest(path)
    assert str(path) in error.value.message


def test_a_version_published_twice_is_refused(tmp_path):
    version = yaml.safe_load((MODELS_DIR / "magika" / "model.yaml").read_text())["versions"][0]
    with pytest.raises(ManifestError, match="published once"):
        load_manifest(edited(tmp_path, versions=[version, version]))


@pytest.mark.parametrize(
    ("number", "change", "reason"),
    [
        (1, {"quality": None}, "version 2: a version with a quantised network states its `quality`"),
        (0, {"quality": {"reference": 1, "minimumAgreement": 0.9}}, "version 1: .* and no other does"),
        (1, {"quality": {"reference": 2, "minimumAgreement": 0.9}}, "reference 2 is no version with original files"),
        (1, {"quality": {"reference": 3, "minimumAgreement": 0.9}}, "reference 3 is no version"),
        (1, {"quality": {"reference": 1, "minimumAgreement": 1.0}}, "minimumAgreement"),
        (1, {"quality": {"reference": 1, "minimumAgreement": 0}}, "minimumAgreement"),
    ],
)
def test_a_derived_version_states_what_it_must_keep_of_which_original(tmp_path, number, change, reason):
    versions = yaml.safe_load((MODELS_DIR / "magika" / "model.yaml").read_text())["versions"]
    versions[number] |= change
    with pytest.raises(ManifestError, match=reason):
        load_manifest(edited(tmp_path, versions=versions))


@pytest.mark.parametrize("left_out", ["transformation", "derivedSha256"])
def test_a_derived_file_names_its_transformation_and_its_hash(tmp_path, left_out):
    versions = yaml.safe_load((MODELS_DIR / "magika" / "model.yaml").read_text())["versions"]
    del versions[1]["files"][0][left_out]
    with pytest.raises(ManifestError, match="belong together"):
        load_manifest(edited(tmp_path, versions=versions))


def test_code_is_a_file_of_this_repository(tmp_path):
    """Its text must be known when a stack is planned, which downloads nothing."""
    versions = yaml.safe_load((MODELS_DIR / "magika" / "model.yaml").read_text())["versions"]
    versions[0]["files"][1]["name"] = "extra.py"
    with pytest.raises(ManifestError, match=r"'extra.py': code has a source of kind file"):
        load_manifest(edited(tmp_path, versions=versions))


def test_a_missing_model_is_told_with_those_there_are():
    with pytest.raises(ManifestError, match="does not exist") as error:
        model_manifest("nonesuch")
    assert "magika" in error.value.hint


def test_text_that_is_no_yaml_is_told_as_such(tmp_path):
    path = tmp_path / "model.yaml"
    path.write_text("name: [")
    with pytest.raises(ManifestError, match="cannot be read as YAML"):
        load_manifest(path)


FILE = {"source": {"kind": "file", "path": "x"}, "sha256": "0" * 64, "sizeBytes": 1}


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("model.onnx", "there is 'model.onnx' already"),
        ("Model.ONNX", "there is 'model.onnx' already, and not every volume tells upper case from lower"),
        ("model.onnx/part", "'model.onnx' is a file, and cannot be a folder too"),
        ("checksums.json", "no names of files"),
        ("model.onnx.partial", "no names of files"),
        ("model.derived", "no names of files"),
        ("x" * 201, "no names of files"),
    ],
)
def test_a_file_that_would_take_anothers_place_is_refused(tmp_path, name, reason):
    versions = yaml.safe_load((MODELS_DIR / "magika" / "model.yaml").read_text())["versions"]
    versions[0]["files"].append({**FILE, "name": name})
    with pytest.raises(ManifestError, match=reason):
        load_manifest(edited(tmp_path, versions=versions))


@pytest.mark.parametrize("path", ["../../../etc/passwd", "a/../../b", "/etc/passwd", "./x", "a//b", "~/x"])
def test_no_source_leads_out_of_the_models_folder(tmp_path, path):
    versions = yaml.safe_load((MODELS_DIR / "magika" / "model.yaml").read_text())["versions"]
    versions[0]["files"].append({**FILE, "name": "x", "source": {"kind": "file", "path": path}})
    with pytest.raises(ManifestError, match=r"source\.file\.path"):
        load_manifest(edited(tmp_path, versions=versions))


@pytest.mark.parametrize(
    ("key", "value"),
    [("version", 10**30), ("memoryMib", 10**30), ("memoryMibPerRow", 10**30), ("waitingMibPerRow", 10**30), ("gpuMemoryMib", 10**30)],
)
def test_a_number_that_nothing_can_hold_is_refused_with_its_key(tmp_path, key, value):
    versions = yaml.safe_load((MODELS_DIR / "magika" / "model.yaml").read_text())["versions"]
    versions[0][key] = value
    with pytest.raises(ManifestError, match=rf"versions\.0\.{key} = 1.*: Input should be less than"):
        load_manifest(edited(tmp_path, versions=versions))


@pytest.mark.parametrize("content", [b"\xff\xfe\x00n", b"licence: caf\xe9"])
def test_text_of_another_encoding_is_told_as_such(tmp_path, content):
    path = tmp_path / "model.yaml"
    path.write_bytes(content)
    with pytest.raises(ManifestError, match="cannot be read: 'utf-8' codec"):
        load_manifest(path)


def test_a_folder_of_another_name_than_its_model_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("serving.model_manifest.MODELS_DIR", tmp_path)
    (tmp_path / "alias").symlink_to(MODELS_DIR / "magika")
    with pytest.raises(ManifestError, match="name: is 'magika', and the folder 'alias'"):
        model_manifest("alias")


def test_a_fault_shows_no_more_of_a_value_than_can_be_read(tmp_path):
    with pytest.raises(ManifestError) as error:
        load_manifest(edited(tmp_path, format="x" * 100_000))
    assert len(error.value.message) < 1000
