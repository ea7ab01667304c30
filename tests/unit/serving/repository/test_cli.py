"""`python -m serving.repository`, as a person and as a pod run it."""

import os
import subprocess
import sys

import pytest

from components.errors import run_main
from serving.repository.__main__ import main
from serving.repository.checksums import VersionRef
from serving.repository.errors import RepositoryError
from serving.repository.volume import VolumeStore
from tools.paths import REPO


def run(*arguments):
    """Exit code of the command."""
    return run_main(lambda: main([str(argument) for argument in arguments]))


def test_a_bucket_that_is_not_there_is_to_be_created_and_a_model_is_no_repository(built, tmp_path, client):
    with pytest.raises(RepositoryError) as absent:
        main(["publish", str(tmp_path / "built"), "--to", "s3://no-such-bucket-here"])
    assert "or create it" in absent.value.hint
    with pytest.raises(RepositoryError, match="magika is no folder") as model:
        main(["publish", "magika", "--to", str(tmp_path / "to")])
    assert "make models TO=<folder>" in model.value.hint


def test_from_a_build_to_a_bucket_to_a_pod_and_back_from_a_backup(built, bucket, tmp_path, capsys):
    place = bucket.place
    assert run("publish", built.root, "--to", place) == 0
    assert run("list", place) == 0
    assert run("verify", place, "magika/2") == 0
    assert run("backup", place, "--to", tmp_path / "backup.tar") == 0
    assert run("restore", tmp_path / "backup.tar", "--to", tmp_path / "back") == 0
    assert run("backup", place, "--to", tmp_path / "copy") == 0
    (tmp_path / "pod").mkdir()
    assert run("fetch", place, "--to", tmp_path / "pod", "--limit-mib", 1, "magika/1") == 0
    (tmp_path / "node").mkdir()
    (tmp_path / "other").mkdir()
    assert run("fetch", place, "--to", tmp_path / "other", "--limit-mib", 1, "--cache", tmp_path / "node", "--cache-gib", 1, "magika/1") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:5] == [
        "magika/1: 3 files, 34.2 KiB",
        "magika/2: 3 files, 22 bytes",
        f"2 published to {place}",
        "magika/1                            3 files     34.2 KiB",
        "magika/2                            3 files     22 bytes",
    ]
    assert (tmp_path / "copy" / "magika" / "1" / "model.py").read_bytes() == (tmp_path / "other" / "magika" / "1" / "model.py").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["list", "{tmp}/none"], "none is no folder"),
        (["list", "{tmp}"], "holds no published version"),
        (["list", "s3://"], "names no bucket"),
        (["verify", "{built}", "magika/7"], "has no version magika/7; versions there are: magika/1, magika/2"),
        (
            ["verify", "{built}", f"magika/1@sha256:{'0' * 64}"],
            f"is not the version that the stack was made for: expected artefact {'0' * 64}, found",
        ),
        (["fetch", "{built}", "--to", "{tmp}", "--limit-mib", "1", f"magika/1@sha256:{'0' * 64}"], "model.onnx"),
        (["publish", "{built}", "--to", "{tmp}/x.tar"], "nothing is added to it"),
        (["restore", "{tmp}/none.tar", "--to", "{tmp}/x"], "none.tar does not exist"),
        (["discard", "{built}", "magika/1"], "magika/1 is published"),
        (["build", "magika", "--to", "{tmp}/x"], "no wheel magika-1.0.3-*.whl in no folder at all"),
        (["build", "no-such-model", "--to", "{tmp}/x"], "does not exist"),
        (["publish", "{built}", "--to", "s3://no-such-bucket-here"], "NoSuchBucket"),
    ],
)
def test_what_cannot_be_done_is_a_sentence_and_a_way_out(built, bucket, tmp_path, capsys, arguments, sentence):
    (tmp_path / "built" / ".keep").touch()
    assert run(*(argument.format(tmp=tmp_path, built=built.root) for argument in arguments)) == 1
    error = capsys.readouterr().err
    assert sentence in error
    assert "\n  -> " in error


@pytest.mark.parametrize("version", ["magika", "magika/x", "../../etc/1"])
def test_what_is_no_version_is_refused_at_once(built, version, capsys):
    with pytest.raises(SystemExit):
        run("verify", built.root, version)
    assert "names no version" in capsys.readouterr().err


def test_the_init_step_ends_with_the_sentence_that_the_pods_status_shows(built, tmp_path):
    """The kubelet takes the end of the log of a container that failed."""
    (built.folder(built.versions()[0]) / "model.onnx").write_bytes(b"corrupt")
    (tmp_path / "pod").mkdir()
    command = [sys.executable, "-m", "serving.repository", "fetch", built.root, "--to", tmp_path / "pod", "--limit-mib", "1", "magika/1"]
    done = subprocess.run(command, cwd=REPO, env={**os.environ}, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "magika/1/model.onnx is damaged: expected SHA-256" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_fetch_loads_nothing_that_only_a_build_needs():
    """The init step starts with every pod."""
    program = "import sys, serving.repository.cli; sys.exit(bool({'tritonclient', 'grpc', 'numpy', 'boto3'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", program], cwd=REPO, check=False).returncode == 0


@pytest.mark.parametrize("command", ["publish", "backup"])
def test_versions_may_stand_at_the_end_of_the_line(built, tmp_path, command):
    """python/cpython#59317."""
    assert run(command, built.root, "--to", tmp_path / "out", "magika/2") == 0
    assert VolumeStore(tmp_path / "out").versions() == [VersionRef("magika", 2)]


@pytest.mark.parametrize(
    ("words", "said"), [(["--colour"], "unrecognized arguments: --colour"), (["magika"], "names no version"), (["magika/1@x"], "names")]
)
def test_what_else_stands_there_is_refused(built, tmp_path, capsys, words, said):
    with pytest.raises(SystemExit):
        run("publish", built.root, "--to", tmp_path / "out", *words)
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("target", ["{tmp}/no/such/models.tar", "/proc/models", "/proc/models.tar"])
def test_a_build_that_cannot_be_written_says_so(tmp_path, capsys, target):
    place = target.format(tmp=tmp_path)
    assert run("build", "ocr_decode", "--to", place) == 1
    assert f"error: {place} cannot be written" in capsys.readouterr().err


@pytest.mark.parametrize(("folder", "reason"), [("none", "No such file"), ("file", "is no folder")])
def test_a_cache_folder_that_is_none_is_named_and_nothing_is_changed(tmp_path, capsys, folder, reason):
    (tmp_path / "file").touch(0o600)
    assert run("prepare", tmp_path / folder, "--user", 65532, "--group", 65532) == 1
    assert reason in capsys.readouterr().err
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o600
