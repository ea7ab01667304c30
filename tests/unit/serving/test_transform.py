"""The program of the image build that derives files: what it makes is what was judged, or the build stops."""

import json
import re
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path
from typing import get_args

import pytest

from serving.image.transform import TRANSFORMATIONS, transform
from serving.model_files import Transformation
from serving.model_manifest import MODELS_DIR, model_manifest
from serving.model_sources import LocalSourceSpec, WheelSourceSpec
from tests.unit.serving.optimise.tiny import sha256, write_network

PROGRAM = MODELS_DIR.parent / "image" / "transform.py"


@pytest.fixture
def network(tmp_path):
    (tmp_path / "model" / "2").mkdir(parents=True)
    return write_network(tmp_path / "model" / "2" / "model.onnx")


def run(network, sha):
    listing = network.parents[2] / "transformations.json"
    listing.write_text(json.dumps([{"path": "model/2/model.onnx", "transformation": "quantise-dynamic-int8", "sha256": sha}]))
    return subprocess.run([sys.executable, PROGRAM, listing, network.parents[2]], capture_output=True, text=True, check=False)


def test_a_file_of_another_hash_stops_the_build_and_leaves_the_original(network):
    before = sha256(network)
    done = run(network, "0" * 64)
    assert done.returncode == 1
    assert re.search(r"error: .*model\.onnx with SHA-256 [0-9a-f]{64}, but model\.yaml says 0{64}", done.stderr)
    assert sha256(network) == before


def test_the_right_file_takes_the_originals_place(network):
    TRANSFORMATIONS["quantise-dynamic-int8"](network, network.with_name("expected"))
    expected = sha256(network.with_name("expected"))
    assert (run(network, expected).returncode, sha256(network)) == (0, expected)


def test_every_transformation_a_model_may_name_exists():
    assert set(TRANSFORMATIONS) == set(get_args(Transformation)) - {"none"}


def test_magikas_derived_file_is_the_one_its_model_yaml_names(tmp_path):
    """From the package that is installed, with the ranges that are committed; what the image build does from the wheel."""
    version = model_manifest("magika").version(2)
    for file in version.files:
        source = file.source
        assert isinstance(source, WheelSourceSpec | LocalSourceSpec)
        place = distribution("magika").locate_file(source.member) if isinstance(source, WheelSourceSpec) else MODELS_DIR / "magika" / source.path
        (tmp_path / file.name).write_bytes(Path(str(place)).read_bytes())
    [derived] = [file for file in version.files if file.transformation != "none"]
    assert derived.derived_sha256
    transform(tmp_path / derived.name, derived.transformation, derived.derived_sha256)
    assert sha256(tmp_path / derived.name) == derived.derived_sha256
