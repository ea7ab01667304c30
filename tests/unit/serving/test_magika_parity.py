"""The served classifier gives the label that the magika package gives, on real files and on the edges of its rules."""

import importlib.util
import shutil
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import magika
import pytest

from serving.model_manifest import MODELS_DIR, model_manifest

PER_SUFFIX = 2
LARGEST_BYTES = 500_000
EDGES = [
    b"",
    b"a",
    b"\xff\xfe",
    b"\xff" * 7,
    b"abcdefg",
    b"abcdefgh",
    b" " * 8,
    b" " * 9000 + b"hello world",
    b"hello world " + b" " * 5000,
    b"\n\t" * 10 + b"import os\n" * 30,
    b"\x00" * 4096,
    b"\x89PNG\r\n\x1a\n",
    bytes(range(256)) * 40,
    "żółw ".encode() * 3,
    b"x" * 1024,
    b"{}" * 2048,
]


@pytest.fixture(scope="module")
def reference():
    return magika.Magika()


@pytest.fixture(scope="module")
def classifier(tmp_path_factory):
    """The code as the image holds it: loaded from a version directory beside the package's files."""
    directory = tmp_path_factory.mktemp("version")
    package = Path(magika.__file__).parent
    for file in model_manifest("magika").version(1).files:
        assert file.source.kind == "wheel"
        shutil.copyfile(package.parent / file.source.member, directory / file.name)
    spec = importlib.util.spec_from_file_location("magika_classifier", MODELS_DIR / "magika" / "classifier.py")
    assert spec
    module = importlib.util.module_from_spec(spec)
    sys.modules["magika_classifier"] = module
    assert spec.loader
    spec.loader.exec_module(module)
    return module.Classifier(directory)


def real_files() -> Iterator[Path]:
    """Up to PER_SUFFIX files of every suffix of packages, the standard library and this project: text, code, binaries, images, archives."""
    counts: dict[str, int] = {}
    packages = [Path(sysconfig.get_path("purelib"), name) for name in ("numpy", "flask", "locust", "pulumi", "pip", "pytest", "kubernetes_validate")]
    for root in (*packages, Path(sysconfig.get_path("stdlib"), "test"), Path(__file__).parents[3] / "tools"):
        for path in sorted(root.rglob("*")):
            if counts.get(path.suffix, 0) < PER_SUFFIX and path.is_file() and 0 < path.stat().st_size < LARGEST_BYTES:
                counts[path.suffix] = counts.get(path.suffix, 0) + 1
                yield path


def test_every_label_is_the_packages_own(classifier, reference):
    contents = [path.read_bytes() for path in real_files()] + EDGES
    expected = [str(reference.identify_bytes(content).prediction.output.label) for content in contents]
    actual = [label for content in contents for label, _ in classifier.classify([content])]
    assert actual == expected
    # The comparison means something only where the corpus is varied.
    assert len(contents) > 60
    assert len(set(expected)) > 15


def test_scores_are_the_packages_own_to_a_hundredth(classifier, reference):
    for content in EDGES:
        ((_, score),) = classifier.classify([content])
        assert score == pytest.approx(reference.identify_bytes(content).prediction.score, abs=0.01)


def test_a_batch_gives_each_content_the_label_it_gets_alone(classifier):
    alone = [classifier.classify([content])[0][0] for content in EDGES]
    assert [label for label, _ in classifier.classify(EDGES)] == alone


def test_a_model_that_reads_the_middle_of_a_file_is_refused(classifier, tmp_path):
    (tmp_path / "config.min.json").write_text('{"mid_size": 512, "use_inputs_at_offsets": false}')
    with pytest.raises(ValueError, match="middle"):
        type(classifier)(tmp_path)
