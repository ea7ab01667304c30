"""A repository in an object store. Objects are written under the condition that nobody wrote them before, checksums.json last."""

from __future__ import annotations

import io
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import IO, TYPE_CHECKING, cast

from serving.repository import s3
from serving.repository.checksums import CHECKSUMS, Checksums, FileEntry, VersionRef, hash_of, mismatch
from serving.repository.errors import RepositoryError
from serving.repository.store import ExplainedStream, Store, copy_file, read_checksums, refuse_difference
from serving.repository.upload import put_new
from serving.s3 import error_code, listed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mypy_boto3_s3 import S3Client

# Up to here a file waits in memory for its upload, above on the disk.
SPOOL_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True)
class BucketStore:
    """`s3://<bucket>/<prefix>/<model>/<version>/`; a version exists once its checksums.json does."""

    client: S3Client = field(repr=False)
    bucket: str
    prefix: str = ""

    @property
    def place(self) -> str:
        return f"s3://{self.bucket}/{self.prefix}".rstrip("/")

    def key(self, ref: VersionRef, name: str) -> str:
        return f"{self.prefix}/{ref}/{name}".removeprefix("/")

    def versions(self) -> list[VersionRef]:
        start = f"{self.prefix}/" if self.prefix else ""
        found = []
        for key in self._keys(start):
            folder, _, name = key.removeprefix(start).rpartition("/")
            if name == CHECKSUMS:
                try:
                    found.append(VersionRef.parse(folder))
                except ValueError:
                    continue
        return sorted(found)

    def names(self, ref: VersionRef) -> set[str]:
        start = self.key(ref, "")
        return {key.removeprefix(start) for key in self._keys(start)}

    @contextmanager
    def open(self, ref: VersionRef, name: str, offset: int = 0) -> Iterator[IO[bytes]]:
        explained = partial(s3.explained, f"{self.place}/{ref}/{name}")
        with explained():
            body = _from(self.client, self.bucket, self.key(ref, name), offset)
        try:
            yield cast("IO[bytes]", ExplainedStream(body, explained))
        finally:
            body.close()

    def add(self, checksums: Checksums, source: Store) -> bool:
        """See WritableStore. What this call wrote and the winner of a race does not list is taken away again."""
        written = []
        for name, entry in sorted(checksums.files.items()):
            if self._put_file(checksums.ref, name, entry, source):
                written.append(name)
        listing = checksums.render()
        digest, size = hash_of(io.BytesIO(listing))
        if not self._put(checksums.ref, CHECKSUMS, FileEntry(sha256=digest, size_bytes=size), io.BytesIO(listing)):
            winner = read_checksums(self, checksums.ref)
            self._delete(checksums.ref, [name for name in written if name not in winner.files])
            refuse_difference(self.place, winner, checksums)
            return False
        # Where the store ignored the condition, the last writer of the listing won; whoever reads another's has lost.
        refuse_difference(self.place, read_checksums(self, checksums.ref), checksums)
        return True

    def _put_file(self, ref: VersionRef, name: str, entry: FileEntry, source: Store) -> bool:
        with tempfile.SpooledTemporaryFile(SPOOL_BYTES) as spool:
            copy_file(source, ref, name, entry, cast("IO[bytes]", spool))
            spool.seek(0)
            if self._put(ref, name, entry, cast("IO[bytes]", spool)):
                return True
        # Left by an interrupted publication of the same content, or written by another publisher just now.
        with self.open(ref, name) as stream:
            digest, size = hash_of(stream)
        if mismatch("", entry, digest, size):
            raise RepositoryError(
                f"{self.place}/{ref}/{name} is there already with other content: expected SHA-256 {entry.sha256}, found {digest}",
                hint="another publication of this version is under way, or was interrupted; if none is, delete what it left: "
                f"python -m serving.repository discard {self.place} {ref}",
            )
        return False

    def _put(self, ref: VersionRef, name: str, entry: FileEntry, body: IO[bytes]) -> bool:
        """False when an object is there already."""
        place = f"{self.place}/{ref}/{name}"
        with s3.explained(place):
            return put_new(self.client, self.bucket, self.key(ref, name), body, entry)

    def discard(self, ref: VersionRef) -> list[str]:
        """See WritableStore."""
        names = self.names(ref)
        if CHECKSUMS in names:
            raise RepositoryError(f"{self.place}/{ref} is published", hint="a published version is never changed; publish the next number")
        self._delete(ref, sorted(names))
        return sorted(names)

    def _delete(self, ref: VersionRef, names: list[str]) -> None:
        for name in names:
            with s3.explained(f"{self.place}/{ref}/{name}"):
                self.client.delete_object(Bucket=self.bucket, Key=self.key(ref, name))

    def _keys(self, start: str) -> Iterator[str]:
        with s3.explained(self.place):
            for entry in listed(self.client, self.bucket, start):
                yield entry["Key"]


def _from(client: S3Client, bucket: str, key: str, offset: int) -> IO[bytes]:
    """The rest of an object; nothing when it ends at `offset` or before. boto3's errors pass through."""
    from botocore.exceptions import ClientError  # noqa: PLC0415  boto3 is imported where a store is used

    if not offset:
        return cast("IO[bytes]", client.get_object(Bucket=bucket, Key=key)["Body"])
    try:
        return cast("IO[bytes]", client.get_object(Bucket=bucket, Key=key, Range=f"bytes={offset}-")["Body"])
    except ClientError as error:
        if error_code(error) != "InvalidRange":
            raise
    return io.BytesIO()
