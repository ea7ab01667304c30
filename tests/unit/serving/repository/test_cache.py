"""The folder of a node that its pods share."""

import fcntl
import hashlib
import os
import threading

import pytest

from serving.repository.cache import LOCKS, Cache, CacheError, prepare_folder
from serving.repository.checksums import FileEntry

A, B, C = (letter * 400 for letter in (b"a", b"b", b"c"))
LIMIT = 1000


def entry(content):
    return FileEntry(sha256=hashlib.sha256(content).hexdigest(), size_bytes=len(content))


class Download:
    """What a cache asks for, and how often."""

    def __init__(self, content, during=lambda: None):
        self.content, self.during, self.count = content, during, 0

    def __call__(self, partial):
        self.count += 1
        self.during()
        partial.write_bytes(self.content)


@pytest.fixture
def node(tmp_path):
    (tmp_path / "node").mkdir()
    return tmp_path / "node"


@pytest.fixture
def take(node, said, tmp_path):
    def run(content, download=None, limit=LIMIT):
        download = download or Download(content)
        target = tmp_path / f"pod-{len(list(tmp_path.iterdir()))}"
        Cache(node, limit, said.append).take(entry(content), target, download)
        assert target.read_bytes() == content
        return download.count

    return run


def files(node):
    return {path.name for path in node.iterdir() if path.is_file()}


def name(content):
    return entry(content).sha256


def test_a_file_is_downloaded_once(take, node):
    assert [take(A), take(A)] == [1, 0]
    assert files(node) == {name(A)}


def test_the_least_recently_used_file_makes_room(take, node, said):
    take(A)
    take(B)
    os.utime(node / name(A), (100, 100))
    os.utime(node / name(B), (50, 50))
    take(A)
    take(C)
    assert files(node) == {name(A), name(C)}
    assert f"the node's cache drops {name(B)}, not used for the longest time" in said


def test_what_a_killed_download_left_makes_room_first(take, node):
    (node / f"{name(B)}.partial").write_bytes(b"b" * 700)
    os.utime(node / f"{name(B)}.partial", (0, 0))
    take(A)
    assert files(node) == {name(A)}


def test_a_file_that_a_pod_is_just_reading_is_not_dropped(take, node):
    take(A)
    take(B)
    os.utime(node / name(A), (0, 0))
    with (node / LOCKS / name(A)).open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        take(C)
    assert files(node) == {name(A), name(C)}


def test_a_cache_whose_files_are_all_in_use_is_full(take, node):
    take(A)
    take(B)
    handles = [(node / LOCKS / name(content)).open("w") for content in (A, B)]
    for handle in handles:
        fcntl.flock(handle, fcntl.LOCK_EX)
    with pytest.raises(CacheError, match="is full, and all of it is in use"):
        take(C)
    for handle in handles:
        handle.close()


def test_a_file_that_lies_there_is_compared_before_it_is_used(take, node, said):
    take(A)
    (node / name(A)).write_bytes(b"X" + A[1:])
    assert take(A) == 1
    assert any("is damaged and downloaded anew" in line for line in said)
    assert take(A) == 0


def test_of_two_pods_at_once_one_downloads_and_the_other_waits(take, node, said):
    """The second comes while the first downloads, and is seen waiting before the first goes on."""
    waiting = threading.Event()
    seen = said.append

    def say(line):
        seen(line)
        waiting.set()

    second = Download(A)
    other = threading.Thread(target=lambda: Cache(node, LIMIT, say).take(entry(A), node.parent / "other", second))

    def start_the_other():
        other.start()
        assert waiting.wait(30)

    assert take(A, Download(A, start_the_other)) == 1
    other.join(30)
    assert second.count == 0
    assert (node.parent / "other").read_bytes() == A
    assert said == ["another pod of this node is at the same file, waiting for it"]


def test_a_download_that_fails_leaves_its_part_for_the_next(take, node):
    def fail(partial):
        partial.write_bytes(A[:100])
        raise ValueError

    with pytest.raises(ValueError):
        Cache(node, LIMIT, print).take(entry(A), node.parent / "x", fail)
    parts = []

    def resume(partial):
        parts.append(partial.read_bytes())
        partial.write_bytes(A)

    take(A, type("Resume", (), {"__call__": staticmethod(resume), "count": 1})())
    assert parts == [A[:100]]


def test_a_file_larger_than_the_cache_never_enters_it(take):
    with pytest.raises(CacheError, match="400 bytes are more than the cache holds, 300 bytes"):
        take(A, limit=300)


def test_a_full_disk_is_found_before_the_download(take, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 10})())
    download = Download(A)
    with pytest.raises(CacheError, match="has less than 400 bytes free"):
        take(A, download)
    assert download.count == 0


@pytest.mark.parametrize("place", ["absent", "a file"])
def test_a_folder_that_cannot_be_used_is_no_cache(take, node, place):
    node.rmdir()
    if place == "a file":
        node.write_bytes(b"")
    with pytest.raises(CacheError, match="node"):
        take(A)


def test_the_folder_belongs_to_the_pods_user_and_to_nobody_else(node, monkeypatch):
    given = []
    monkeypatch.setattr("os.chown", lambda *arguments: given.append(arguments))
    prepare_folder(node, 65532, 65532)
    assert given == [(node, 65532, 65532)]
    assert node.stat().st_mode & 0o777 == 0o750
    prepare_folder(node, os.getuid(), os.getgid())
    assert len(given) == 1
