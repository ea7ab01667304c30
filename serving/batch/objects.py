"""A prefix of an S3-compatible object store as a place of inputs or answers.

Needs conditional writes (`If-None-Match: *`, `If-Match`), which the lock tries out before anything is written: a store that ignores them would
let two clients write the same part.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from serving import s3
from serving.batch.errors import BatchError, ReadError, StoreOutageError
from serving.batch.object_lock import ObjectLock
from serving.batch.storage import SCHEME, Item

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

# A holder renews three times within a lease; one that could not is taken for dead.
LEASE_SECONDS = 60.0
# A run of hours meets what a start of seconds does not.
ATTEMPTS, READS, CONNECTIONS = 5, 3, 64
ERRORS = s3.StoreErrors(final=BatchError, absent=BatchError, transient=StoreOutageError)
REFUSALS: dict[int, str] = {HTTPStatus.NOT_FOUND: "gone since it was listed", HTTPStatus.PRECONDITION_FAILED: "changed after it was listed"}


def connect(endpoint: str | None) -> "S3Client":
    """See serving.s3; BatchError when the endpoint or the environment's region or profile can be none."""
    return s3.make_client(ERRORS, endpoint, attempts=ATTEMPTS, connections=CONNECTIONS)


class ObjectStorage:
    """Objects whose keys begin with `prefix`, which is empty or ends in '/'."""

    def __init__(self, client: "S3Client", bucket: str, prefix: str, *, lease_seconds: float = LEASE_SECONDS) -> None:
        self._client, self._bucket, self._prefix, self._lease_seconds = client, bucket, prefix, lease_seconds

    def __str__(self) -> str:
        return f"{SCHEME}{self._bucket}/{self._prefix}"

    def below(self, name: str) -> "ObjectStorage":
        return ObjectStorage(self._client, self._bucket, f"{self._prefix}{name}/", lease_seconds=self._lease_seconds)

    def items(self) -> list[Item]:
        """Empty objects whose key ends in '/' are folders that a console made, no inputs."""
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=self._prefix)
        with self._explained():
            found = [entry for page in pages for entry in page.get("Contents", ())]
        names = ((entry["Key"].removeprefix(self._prefix), entry) for entry in found)
        return sorted(
            (Item(name, entry["Size"], entry["ETag"].strip('"')) for name, entry in names if name and (entry["Size"] or not name.endswith("/"))),
            key=lambda item: item.id,
        )

    def read(self, item: Item) -> bytes:
        # What breaks in the middle of a content, boto3 does not ask for again.
        for _ in range(READS - 1):
            with suppress(StoreOutageError):
                return self._read(item)
        return self._read(item)

    def _read(self, item: Item) -> bytes:
        with self._explained(item.id):
            try:
                content: bytes = self._get(item.id, IfMatch=f'"{item.fingerprint}"')["Body"].read()
            except ClientError as error:
                if s3.status_of(error) in REFUSALS and s3.error_code(error) != "NoSuchBucket":
                    raise ReadError(REFUSALS[s3.status_of(error)]) from error
                raise
        return content

    def create(self, name: str, content: bytes) -> bool:
        if self.put(name, content, IfNoneMatch="*") is not None:
            return True
        # A repeated attempt of one that had arrived is refused as well.
        return self.stored(name)[0] == content

    def replace(self, name: str, content: bytes) -> None:
        with self._explained(name):
            self._client.put_object(Bucket=self._bucket, Key=self._prefix + name, Body=content)

    def delete(self, name: str) -> None:
        with self._explained(name):
            self._client.delete_object(Bucket=self._bucket, Key=self._prefix + name)

    def put(self, name: str, content: bytes, **condition: Any) -> str | None:
        """The new ETag, or None when the condition does not hold."""
        with self._explained(name):
            return s3.conditional(lambda: self._client.put_object(Bucket=self._bucket, Key=self._prefix + name, Body=content, **condition)["ETag"])

    def stored(self, name: str) -> tuple[bytes, str, float]:
        """Content, ETag, and age in seconds by the store's own clock; an empty ETag without such an object."""
        with self._explained(name):
            try:
                answer = self._get(name)
            except ClientError as error:
                if s3.error_code(error) == "NoSuchKey":
                    return b"", "", 0.0
                raise
            now = parsedate_to_datetime(answer["ResponseMetadata"]["HTTPHeaders"]["date"])
            return answer["Body"].read(), answer["ETag"], (now - answer["LastModified"]).total_seconds()

    def _get(self, name: str, **condition: Any) -> Any:
        return self._client.get_object(Bucket=self._bucket, Key=self._prefix + name, **condition)

    @contextmanager
    def lock(self) -> Iterator["ObjectLock"]:
        lock = ObjectLock(self, self._lease_seconds)
        lock.acquire()
        try:
            yield lock
        finally:
            lock.release()

    def _explained(self, name: str = "") -> AbstractContextManager[None]:
        """boto3's errors as BatchError, StoreOutageError where trying again may help."""
        return s3.explained(f"{self}{name}", ERRORS)
