"""A backup holds what was published, or says that it does not; a restore never writes over anything."""

import os
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from serving.repository.checksums import CHECKSUMS, VersionRef
from serving.repository.errors import AbsentError, RepositoryError
from serving.repository.store import publish, read_checksums, restore, verify
from serving.repository.tar import TarStore, write_tar
from serving.repository.volume import VolumeStore
from tests.unit.serving.repository.conftest import FILES, make_repository

ONE, TWO = VersionRef("magika", 1), VersionRef("magika", 2)


@pytest.fixture
def backup(built, tmp_path):
    path = tmp_path / "backup.tar"
    write_tar(built, built.versions(), path)
    return path


def test_a_restored_repository_is_the_one_that_was_kept(built, target, said, tmp_path):
    publish(built, target, built.versions(), said.append)
    path = tmp_path / "backup.tar"
    write_tar(target, target.versions(), path)
    back = VolumeStore(tmp_path / "back")
    assert restore(TarStore(path), back, TarStore(path).versions(), said.append) == 2
    for ref in (ONE, TWO):
        assert verify(back, ref) == read_checksums(built, ref)
    assert (back.folder(ONE) / "saved" / "variables.index").read_bytes() == b"index"


def test_a_backup_goes_back_into_a_bucket_or_a_folder(backup, target, said):
    store = TarStore(backup)
    assert restore(store, target, store.versions(), said.append) == 2
    assert restore(store, target, store.versions(), said.append) == 0
    verify(target, TWO)


def test_the_same_repository_gives_the_same_tar_file(built, backup, bucket, said, tmp_path):
    publish(built, bucket, built.versions(), said.append)
    write_tar(bucket, bucket.versions(), tmp_path / "other.tar")
    assert (tmp_path / "other.tar").read_bytes() == backup.read_bytes()


def test_a_restore_never_writes_over_a_version_that_differs(backup, target, said, tmp_path):
    other = make_repository(tmp_path / "other", {"magika/2": FILES})
    publish(other, target, [TWO], said.append)
    store = TarStore(backup)
    with pytest.raises(RepositoryError, match="magika/2 is published with other content"):
        restore(store, target, store.versions(), said.append)
    assert target.versions() == [TWO]
    assert verify(target, TWO) == read_checksums(other, TWO)


@pytest.mark.parametrize("name", ["model.onnx", "model.py", CHECKSUMS])
def test_a_damaged_backup_is_refused_by_name_before_anything_is_written(backup, target, said, name):
    content = backup.read_bytes()
    start = content.index(f"magika/2/{name}".encode()) + 512
    backup.write_bytes(content[:start] + bytes([content[start] ^ 1]) + content[start + 1 :])
    with pytest.raises(RepositoryError, match=re.escape(f"magika/2/{name}")):
        restore(TarStore(backup), target, [ONE, TWO], said.append)
    assert said in ([], ["magika/1: every checksum of the backup holds"])
    with pytest.raises(AbsentError):
        read_checksums(target, ONE)


def test_an_index_whose_hash_is_none_is_damage(backup):
    content = backup.read_bytes()
    at = content.index(b'"magika/1": "') + len('"magika/1": "')
    backup.write_bytes(content[:at] + b"X" + content[at + 1 :])
    with pytest.raises(RepositoryError, match=r"backup\.json is damaged"):
        TarStore(backup)


@pytest.mark.parametrize("kept", [0, 10, 600, 2000, 0.5, 0.7])
def test_a_backup_that_was_cut_off_is_refused(backup, kept):
    content = backup.read_bytes()
    backup.write_bytes(content[: kept if isinstance(kept, int) else int(len(content) * kept)])
    with pytest.raises(RepositoryError, match=re.escape(str(backup))):
        verify(TarStore(backup), TWO)


def test_a_damaged_repository_is_not_kept_and_no_half_file_is_left(built, tmp_path):
    (built.folder(TWO) / "model.py").write_bytes(b"c0de")
    with pytest.raises(RepositoryError, match=r"magika/2/model\.py is damaged"):
        write_tar(built, built.versions(), tmp_path / "backup.tar")
    assert [path.name for path in tmp_path.iterdir()] == ["built"]


def test_a_file_that_is_longer_than_listed_is_damage_too(built, tmp_path):
    (built.folder(TWO) / "model.py").write_bytes(b"code and more")
    with pytest.raises(RepositoryError, match=r"model\.py is damaged: expected .* \(4 bytes\), found .* \(13 bytes\)"):
        write_tar(built, built.versions(), tmp_path / "backup.tar")


def test_a_backup_is_never_written_over(backup, built):
    with pytest.raises(RepositoryError, match="is there already"):
        write_tar(built, built.versions(), backup)


@pytest.mark.parametrize("damage", ["lost", "added"])
def test_verification_finds_what_is_missing_and_what_is_too_much(built, target, said, damage):
    publish(built, target, [ONE], said.append)
    if isinstance(target, VolumeStore):
        file = target.folder(ONE) / ("model.py" if damage == "lost" else "stray")
        file.unlink() if damage == "lost" else file.write_bytes(b"")
    elif damage == "lost":
        target.client.delete_object(Bucket=target.bucket, Key=target.key(ONE, "model.py"))
    else:
        target.client.put_object(Bucket=target.bucket, Key=target.key(ONE, "stray"), Body=b"")
    with pytest.raises(RepositoryError, match="model.py" if damage == "lost" else "holds stray"):
        verify(target, ONE)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "Invalid JSON"),
        (b"[]", "should be an object"),
        (b'{"model": "magika", "version": 1}', "files: Field required"),
        (b'{"model": "magika", "version": 2, "files": {}}', "speaks of magika/2"),
        (b'{"model": "magika", "version": 1, "files": {"../../etc/passwd": {"sha256": "%s", "sizeBytes": 1}}}' % (b"0" * 64), "match pattern"),
        (b'{"model": "magika", "version": 1, "files": {"a": {"sha256": "%s", "sizeBytes": -1}}}' % (b"0" * 64), "greater than or equal to 0"),
    ],
)
def test_a_checksums_file_that_cannot_be_trusted_is_refused(built, content, reason):
    (built.folder(ONE) / CHECKSUMS).write_bytes(content)
    with pytest.raises(RepositoryError, match=reason):
        read_checksums(built, ONE)


def test_a_file_that_grew_shorter_meanwhile_is_damage_of_the_source_not_of_the_backup(built, tmp_path):
    (built.folder(TWO) / "model.py").write_bytes(b"co")
    with pytest.raises(RepositoryError, match=r"model\.py is damaged: expected .* \(4 bytes\), found .* \(2 bytes\)"):
        write_tar(built, built.versions(), tmp_path / "backup.tar")


@dataclass(frozen=True)
class Paced(VolumeStore):
    """Waits in the middle of a backup until the test says go on."""

    began: threading.Event = field(default_factory=threading.Event)
    go_on: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def open(self, ref, name, offset=0):
        if name == "model.onnx" and ref == ONE:
            self.began.set()
            assert self.go_on.wait(20)
        with super().open(ref, name, offset) as stream:
            yield stream


def test_of_two_backups_to_one_file_the_first_is_whole_and_the_second_refused(built, tmp_path):
    path, source, waits = tmp_path / "backup.tar", Paced(built.root), threading.Event()
    other = make_repository(tmp_path / "other", {"magika/7": FILES})
    with ThreadPoolExecutor(2) as pool, pytest.MonkeyPatch.context() as patch:
        first = pool.submit(write_tar, source, [ONE, TWO], path)
        assert source.began.wait(20)
        patch.setattr("builtins.print", lambda *_, **__: waits.set())
        second = pool.submit(write_tar, other, other.versions(), path)
        assert waits.wait(20)
        source.go_on.set()
        first.result()
        with pytest.raises(RepositoryError, match="is there already"):
            second.result()
    assert [verify(TarStore(path), ref).ref for ref in TarStore(path).versions()] == [ONE, TWO]
    assert sorted(each.name for each in tmp_path.iterdir()) == ["backup.tar", "built", "other"]


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")], ids=["pipe", "device"])
def test_what_is_no_file_is_named_and_nobody_waits_for_it(built, tmp_path, make):
    make(tmp_path / "backup.tar")
    with pytest.raises(RepositoryError, match="is no regular file"):
        TarStore(tmp_path / "backup.tar")
    path = built.folder(TWO) / "model.py"
    path.unlink()
    make(path)
    with pytest.raises(RepositoryError, match=r"model\.py: is no regular file"):
        verify(built, TWO)


def test_a_link_to_a_folder_is_something_that_is_not_listed(built):
    (built.folder(TWO) / "root").symlink_to("/")
    with pytest.raises(RepositoryError, match=r"holds root, which checksums\.json does not list"):
        verify(built, TWO)
