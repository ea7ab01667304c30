"""A build gives the same bytes for the same input, and is whole or not there."""

import hashlib
import os
import shutil
import signal
import sys

import pytest

from components.errors import ManifestError
from serving.model_files import SourceFileSpec
from serving.model_manifest import model_manifest
from serving.model_sources import LocalSourceSpec
from serving.repository.build import build_repository, build_tar
from serving.repository.checksums import VersionRef
from serving.repository.errors import RepositoryError
from serving.repository.store import verify
from serving.repository.tar import TarStore
from serving.repository.volume import VolumeStore

CONTENT = {"weights.bin": b"weights" * 1000, "saved/variables.index": b"index"}
CHANGES = {"os.mkdir", "os.rename", "os.chmod", "os.utime", "os.rmdir", "os.remove"}


def build_until_killed(target, below, count):
    """Exit status of a child process that builds into `target` and kills itself before its `count`th change of a file below `below`."""
    child = os.fork()
    if child == 0:
        left = [count]

        def audit(event, arguments):
            writes = event == "open" and isinstance(arguments[1], str) and arguments[1][0] in "wa"
            if (event in CHANGES or writes) and str(below) in str(arguments[0]):
                left[0] -= 1
                if not left[0]:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(audit)
        try:
            build_repository([small_model()], no_wheels, target)
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def small_model(**changes):
    """A model in two versions, whose files lie beside its model.yaml."""
    files = tuple(
        SourceFileSpec(
            name=name,
            source=LocalSourceSpec(kind="file", path=name),
            sha256=hashlib.sha256(content).hexdigest(),
            size_bytes=len(content),
        )
        for name, content in CONTENT.items()
    )
    manifest = model_manifest("magika")
    versions = tuple(version.model_copy(update={"files": files, **changes}) for version in manifest.versions)
    return manifest.model_copy(update={"name": "small", "versions": versions})


@pytest.fixture
def models(tmp_path, monkeypatch):
    folder = tmp_path / "models"
    for name, content in {**CONTENT, "model.py": b"code"}.items():
        (folder / "small" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "small" / name).write_bytes(content)
    for module in ("artefact", "repository.sources"):
        monkeypatch.setattr(f"serving.{module}.MODELS_DIR", folder)
    return folder


def no_wheels(_):
    raise AssertionError


def tree(root):
    """Everything about a folder that a copy of it would show."""
    found = {}
    for path in sorted(root.rglob("*")):
        stat = path.stat()
        content = path.read_bytes() if path.is_file() else None
        found[path.relative_to(root).as_posix()] = (oct(stat.st_mode), int(stat.st_mtime), content)
    return found


def test_a_build_has_files_code_and_checksums_of_every_version(models, tmp_path):
    assert build_repository([small_model()], no_wheels, tmp_path / "out") == [VersionRef("small", 1), VersionRef("small", 2)]
    store = VolumeStore(tmp_path / "out")
    for ref in store.versions():
        assert set(verify(store, ref).files) == {"weights.bin", "saved/variables.index", "model.py"}


def test_the_same_input_gives_the_same_bytes_times_and_modes(models, tmp_path):
    build_repository([small_model()], no_wheels, tmp_path / "one")
    for path in models.rglob("*"):
        path.chmod(0o700)
    build_repository([small_model()], no_wheels, tmp_path / "two")
    assert tree(tmp_path / "one") == tree(tmp_path / "two")
    assert {entry[0] for entry in tree(tmp_path / "one").values()} == {"0o100644", "0o40755"}


def test_as_a_tar_file_too(models, tmp_path):
    for name in ("one.tar", "two.tar"):
        build_tar([small_model()], no_wheels, tmp_path / name)
    assert (tmp_path / "one.tar").read_bytes() == (tmp_path / "two.tar").read_bytes()
    store = TarStore(tmp_path / "one.tar")
    for ref in store.versions():
        verify(store, ref)


def test_a_second_build_over_the_same_content_changes_nothing_and_over_other_content_is_refused(models, tmp_path):
    build_repository([small_model()], no_wheels, tmp_path / "out")
    before = tree(tmp_path / "out")
    build_repository([small_model()], no_wheels, tmp_path / "out")
    (models / "small" / "model.py").write_bytes(b"new code")
    with pytest.raises(RepositoryError, match=r"different: model\.py"):
        build_repository([small_model()], no_wheels, tmp_path / "out")
    assert tree(tmp_path / "out") == before


def test_a_wrong_hash_names_file_expected_and_found_and_nothing_is_built(models, tmp_path):
    (models / "small" / "weights.bin").write_bytes(b"other weights")
    with pytest.raises(ManifestError, match=r"small/weights.bin has SHA-256 [0-9a-f]{64}, but model.yaml says [0-9a-f]{64} for weights.bin"):
        build_repository([small_model()], no_wheels, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_build_that_is_killed_at_any_step_leaves_nothing_or_all(models, tmp_path):
    """SIGKILL before each call that changes a file, one after the other, until a build gets through."""
    target, killed = tmp_path / "out", 0
    while (code := build_until_killed(target, tmp_path, killed + 1)) == -signal.SIGKILL:
        killed += 1
        if target.exists():
            store = VolumeStore(target)
            assert len([verify(store, ref) for ref in store.versions()]) == 2
            shutil.rmtree(target)
    assert code == 0
    assert killed > 30
    build_repository([small_model()], no_wheels, tmp_path / "undisturbed")
    assert tree(target) == tree(tmp_path / "undisturbed")
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".out")] == []
