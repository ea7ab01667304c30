"""Pruning the cache: what is removed, what stays, what counts as use."""

import os
import sys
import time

import pytest

from tools import cache
from tools.images.recipes import ImageArchive
from tools.images.rootfs import ensure_rootfs

DAY = 86_400


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("INFERENCE_PLATFORM_CACHE", str(tmp_path))
    return tmp_path


def entry(root, name, *, days, folder=False):
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if folder:
        path.mkdir()
        (path / "content").write_text("x" * 2**20)
    else:
        path.write_text("x" * 2**20)
    stamp = time.time() - days * DAY
    os.utime(path, (stamp, stamp))
    return path


def prune(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["prune", *arguments])
    return cache.main()


def test_what_nobody_used_for_two_weeks_goes_and_the_rest_stays(root, monkeypatch, capsys):
    old = [entry(root, "images/triton-00.tar", days=15), entry(root, "images/rootfs/triton-00", days=15, folder=True)]
    old += [entry(root, f"{kind}/a-00", days=15, folder=True) for kind in ("toolchain", "venv", "wheels")]
    kept = [entry(root, "images/triton-01.tar", days=13), entry(root, "clusters/local", days=90, folder=True), entry(root, "venv/a.lock", days=90)]
    assert prune(monkeypatch) == 0
    assert not any(path.exists() for path in old)
    assert all(path.exists() for path in kept)
    assert "images/triton-00.tar: 1 MiB" in (said := capsys.readouterr().out)
    assert "5 entries removed, 5 MiB" in said


def test_the_environment_that_prunes_stays(root, monkeypatch):
    own = entry(root, "venv/own", days=90, folder=True)
    monkeypatch.setattr(sys, "prefix", str(own))
    prune(monkeypatch, "--days", "0")
    assert own.exists()


def test_use_counts(root, monkeypatch):
    archive = entry(root, "images/triton-00.tar", days=90)
    unpacked = entry(root, "images/rootfs/triton-00", days=90, folder=True)
    (unpacked / "config.json").write_text('{"config": {}}')
    ensure_rootfs(ImageArchive("triton:00", archive))
    cache.used(archive)
    prune(monkeypatch)
    assert archive.exists()
    assert unpacked.exists()


def test_what_is_not_there_any_more_is_no_fault(root):
    assert cache.used(root / "gone") == root / "gone"


@pytest.mark.parametrize("days", ["-1", "nan", "inf", "x"])
def test_a_wrong_number_of_days_is_refused_before_anything_goes(root, monkeypatch, days, capsys):
    old = entry(root, "images/triton-00.tar", days=90)
    with pytest.raises(SystemExit):
        prune(monkeypatch, "--days", days)
    assert days in capsys.readouterr().err
    assert old.exists()
