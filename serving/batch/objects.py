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
        with self._explained():
            found = [
                Item(entry["Key"].removeprefix(self._prefix), entry["Size"], entry["ETag"].strip('"'))
                for entry in s3.listed(self._client, self._bucket, self._prefix)
            ]
        return sorted((item for item in found if item.id and (item.size or not item.id.endswith("/"))), key=lambda item: item.id)

    def read(self, item: Item) -> bytes:
        # What breaks in the middle of a content, boto3 does not ask for again.
        for _ in range(READS - 1):
            with suppress(StoreOutageError):
                return self._read(item)
        return self._read(item)

    def _read(self, item: Item) -> bytes:
        with self._explained(item.id):
            try:
                answer = self._get(item.id, IfMatch=f'"{item.fingerprint}"')
                content, etag = answer["Body"].read(), answer["ETag"].strip('"')
            except ClientError as error:
                if s3.status_of(error) in REFUSALS and s3.error_code(error) != "NoSuchBucket":
                    raise ReadError(REFUSALS[s3.status_of(error)]) from error
                raise
        if etag != item.fingerprint:
            raise ReadError(REFUSALS[HTTPStatus.PRECONDITION_FAILED])
        if len(content) != item.size:
            message = f"{self}{item.id}: {len(content)} bytes arrived, and {item.size} were listed"
            raise StoreOutageError(message, hint="the store, or a proxy before it, cuts transfers off; once it does not, run the same command again")
        return bytes(content)

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
