"""What is published is whole, never changes, and survives two publishers at a time."""

from contextlib import contextmanager
from itertools import repeat
from typing import TYPE_CHECKING, cast

import pytest
from botocore.exceptions import ClientError

from serving.repository.bucket import BucketStore
from serving.repository.checksums import CHECKSUMS, VersionRef
from serving.repository.errors import AbsentError, RepositoryError
from serving.repository.store import publish, read_checksums, verify
from serving.repository.volume import VolumeStore
from tests.unit.serving.repository.conftest import FILES, make_repository

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

ONE, TWO = VersionRef("magika", 1), VersionRef("magika", 2)


class Interrupted:
    """A source during whose reading something else happens: before the file `at` is handed out."""

    def __init__(self, store, at, happens):
        self.store, self.at, self.happens = store, at, happens

    def __getattr__(self, name):
        return getattr(self.store, name)

    @contextmanager
    def open(self, ref, name, offset=0):
        if name == self.at:
            self.happens()
        with self.store.open(ref, name, offset) as stream:
            yield stream


def test_a_published_version_is_the_built_one_file_for_file(built, target, said):
    assert publish(built, target, built.versions(), said.append) == 2
    assert target.versions() == [ONE, TWO]
    for ref in (ONE, TWO):
        assert verify(target, ref) == read_checksums(built, ref)
        assert target.names(ref) == {*FILES, CHECKSUMS}


def test_a_listing_that_is_too_long_is_not_read_whole(built, tmp_path):
    listing = tmp_path / "built" / "magika" / "1" / CHECKSUMS
    with listing.open("ab") as sink:
        sink.truncate(2**33)
    with pytest.raises(RepositoryError, match=r"magika/1/checksums\.json has more than 4194304 bytes"):
        read_checksums(built, ONE)


def test_a_second_publication_of_the_same_content_changes_nothing(built, target, said):
    publish(built, target, [ONE], said.append)
    assert publish(built, target, [ONE], said.append) == 0
    assert said[-1] == "magika/1: is there already, with the same content"


def test_other_content_under_a_published_number_is_refused_and_nothing_of_the_run_is_written(built, target, said, tmp_path):
    publish(built, target, [ONE], said.append)
    other = make_repository(tmp_path / "other", {"magika/1": {**FILES, "model.py": b"new code"}, "magika/3": FILES})
    with pytest.raises(RepositoryError, match=r"magika/1 is published with other content; different: model.py") as caught:
        publish(other, target, [VersionRef("magika", 3), ONE], said.append)
    assert "next version number" in caught.value.hint
    assert target.versions() == [ONE]
    assert verify(target, ONE) == read_checksums(built, ONE)


@pytest.mark.parametrize("change", [{"extra.txt": b"x"}, {"model.py": None}], ids=["one more file", "one file less"])
def test_another_set_of_files_is_other_content_too(built, target, said, tmp_path, change):
    publish(built, target, [ONE], said.append)
    files = {name: content for name, content in {**FILES, **change}.items() if content is not None}
    with pytest.raises(RepositoryError, match=f"different: {next(iter(change))}"):
        publish(make_repository(tmp_path / "other", {"magika/1": files}), target, [ONE], said.append)


def test_a_damaged_build_is_not_published(built, target, said):
    (built.folder(ONE) / "model.py").write_bytes(b"c0de")
    with pytest.raises(RepositoryError, match=r"model.py is damaged: expected SHA-256 [0-9a-f]{64} \(4 bytes\), found [0-9a-f]{64} \(4 bytes\)"):
        publish(built, target, [ONE], said.append)
    assert target.versions() == []


def test_a_version_whose_checksums_are_not_written_yet_does_not_exist(built, bucket, said):
    """As a publisher that was killed before its last step leaves it."""
    bucket.client.put_object(Bucket=bucket.bucket, Key=bucket.key(ONE, "model.py"), Body=FILES["model.py"])
    assert bucket.versions() == []
    with pytest.raises(AbsentError, match="has no version magika/1; versions there are: none"):
        read_checksums(bucket, ONE)
    assert publish(built, bucket, [ONE], said.append) == 1
    verify(bucket, ONE)


def test_what_an_interrupted_publication_of_other_content_left_is_named_and_can_be_discarded(built, bucket, said):
    bucket.client.put_object(Bucket=bucket.bucket, Key=bucket.key(ONE, "model.py"), Body=b"other code")
    with pytest.raises(RepositoryError, match=r"magika/1/model\.py is there already with other content") as caught:
        publish(built, bucket, [ONE], said.append)
    assert "discard s3://" in caught.value.hint
    assert "model.py" in bucket.discard(ONE)
    publish(built, bucket, [ONE], said.append)
    with pytest.raises(RepositoryError, match="is published"):
        bucket.discard(ONE)


@pytest.mark.parametrize("at", ["model.onnx", "saved/variables.index"])
def test_of_two_publishers_of_the_same_content_one_wins_and_both_are_content(built, bucket, at):
    slow = Interrupted(built, at, lambda: bucket.add(read_checksums(built, ONE), built))
    assert bucket.add(read_checksums(built, ONE), slow) is False
    verify(bucket, ONE)


def test_of_two_publishers_of_different_content_exactly_one_wins(built, bucket, tmp_path):
    """The other is there first with a file of the same name."""
    other = make_repository(tmp_path / "other", {"magika/1": {**FILES, "saved/variables.index": b"other index"}})
    slow = Interrupted(built, "saved/variables.index", lambda: bucket.add(read_checksums(other, ONE), other))
    with pytest.raises(RepositoryError, match="other content"):
        bucket.add(read_checksums(built, ONE), slow)
    assert verify(bucket, ONE) == read_checksums(other, ONE)


def test_the_loser_of_a_race_takes_away_what_the_winner_does_not_list(built, bucket, tmp_path):
    files = {**FILES, "a-file-more": b"x"}
    larger = make_repository(tmp_path / "larger", {"magika/1": files})
    slow = Interrupted(larger, "saved/variables.index", lambda: bucket.add(read_checksums(built, ONE), built))
    with pytest.raises(RepositoryError, match="different: a-file-more"):
        bucket.add(read_checksums(larger, ONE), slow)
    assert verify(bucket, ONE) == read_checksums(built, ONE)


class Odd:
    """moto, as a store that answers conditional writes with `errors`, one after the other, before it takes them."""

    def __init__(self, client, errors):
        self.client, self.errors = client, iter(errors)

    def __getattr__(self, name):
        return getattr(self.client, name)

    def put_object(self, **arguments):
        if "IfNoneMatch" in arguments and (error := next(self.errors, None)):
            raise error
        return self.client.put_object(**arguments)


def odd(bucket, errors):
    return BucketStore(cast("S3Client", Odd(bucket.client, errors)), bucket.bucket, bucket.prefix)


def answers(code, status):
    return ClientError({"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}, "PutObject")  # type: ignore[typeddict-item]


def test_a_store_that_does_not_know_the_condition_is_looked_at_before(built, bucket, said):
    store = odd(bucket, repeat(answers("NotImplemented", 501)))
    assert publish(built, store, [ONE], said.append) == 1
    assert publish(built, store, [ONE], said.append) == 0
    bucket.client.put_object(Bucket=bucket.bucket, Key=bucket.key(TWO, "model.py"), Body=b"other code")
    with pytest.raises(RepositoryError, match="there already with other content"):
        publish(built, store, [TWO], said.append)


def test_a_write_that_met_another_is_asked_again(built, bucket, said, monkeypatch):
    naps: list[float] = []
    monkeypatch.setattr("time.sleep", naps.append)
    assert publish(built, odd(bucket, [answers("ConditionalRequestConflict", 409)] * 3), [ONE], said.append) == 1
    verify(bucket, ONE)
    assert len(naps) == 3


def test_a_store_that_refuses_writes_is_named(built, bucket, said):
    with pytest.raises(RepositoryError, match=r"magika/1/model\.onnx: the store answers AccessDenied \(403\)"):
        publish(built, odd(bucket, repeat(answers("AccessDenied", 403))), [ONE], said.append)


def test_a_large_file_goes_up_in_parts_under_the_same_condition(built, bucket, said, monkeypatch, tmp_path):
    monkeypatch.setattr("serving.repository.upload.SINGLE_BYTES_MAX", 1024)
    monkeypatch.setattr("serving.repository.upload.PART_BYTES", 5 * 1024 * 1024)
    large = make_repository(tmp_path / "large", {"magika/1": {"model.onnx": bytes(range(256)) * 24 * 1024}})
    assert publish(large, bucket, [ONE], said.append) == 1
    verify(bucket, ONE)
    bucket.client.delete_object(Bucket=bucket.bucket, Key=bucket.key(ONE, CHECKSUMS))
    assert large.versions() == [ONE]
    assert publish(large, bucket, [ONE], said.append) == 1
    assert not bucket.client.list_multipart_uploads(Bucket=bucket.bucket).get("Uploads")


def test_a_killed_publication_to_a_folder_leaves_no_version(built, tmp_path):
    def die():
        raise KeyboardInterrupt

    target = VolumeStore(tmp_path / "volume")
    with pytest.raises(KeyboardInterrupt):
        target.add(read_checksums(built, ONE), Interrupted(built, "saved/variables.index", die))
    assert target.versions() == []
    assert not target.folder(ONE).exists()
    assert target.add(read_checksums(built, ONE), built)
    verify(target, ONE)


@pytest.mark.parametrize("text", ["magika", "magika/0", "magika/01", "magika/one", "magika/-1", "/1", "../1", "a/b/1", "magika/1/"])
def test_a_version_has_a_model_and_a_number(text):
    with pytest.raises(ValueError, match="names no version"):
        VersionRef.parse(text)


def test_a_publication_that_fails_leaves_nothing_that_fills_the_disk(built, tmp_path, said):
    (built.folder(built.versions()[0]) / "model.py").write_bytes(b"c0de")
    with pytest.raises(RepositoryError, match="is damaged"):
        publish(built, VolumeStore(tmp_path / "volume"), built.versions(), said.append)
    assert not [path.name for path in (tmp_path / "volume").rglob("*") if path.is_file()]


def test_a_folder_that_somebody_made_by_hand_is_named_with_the_way_out(built, tmp_path, said):
    (tmp_path / "volume" / "magika" / "1").mkdir(parents=True)
    with pytest.raises(RepositoryError, match=r"magika/1 is there without checksums\.json") as error:
        publish(built, VolumeStore(tmp_path / "volume"), built.versions(), said.append)
    assert "remove that folder" in error.value.hint


def test_what_a_killed_publication_left_in_a_folder_can_be_discarded(built, tmp_path, said):
    volume, ref = VolumeStore(tmp_path / "volume"), built.versions()[0]
    assert volume.discard(ref) == []
    left = volume.folder(ref).with_name(".1.partial")
    left.mkdir(parents=True)
    (left / "model.onnx").write_bytes(b"half")
    assert volume.discard(ref) == ["model.onnx"]
    assert not left.exists()
    publish(built, volume, [ref], said.append)
    with pytest.raises(RepositoryError, match="magika/1 is published"):
        volume.discard(ref)
