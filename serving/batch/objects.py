"""A prefix of an S3-compatible object store as a place of inputs or answers.

Needs conditional writes (`If-None-Match: *`, `If-Match`), which the lock tries out before anything is written: a store that ignores them would
let two clients write the same part.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeVar

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from serving.batch.errors import BatchError, ReadError
from serving.batch.object_lock import ObjectLock
from serving.batch.storage import SCHEME, Item

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

Result = TypeVar("Result")

# A holder renews three times within a lease; one that could not is taken for dead.
LEASE_SECONDS = 60.0
CONFLICT_ATTEMPTS = 5
CONFLICT_SECONDS = 0.2


def connect(endpoint: str | None) -> "S3Client":
    """Credentials, region and, without `endpoint`, the address come from boto3's usual places (AWS_ENDPOINT_URL_S3 among them)."""
    settings = Config(retries={"mode": "standard", "total_max_attempts": 5}, connect_timeout=10, read_timeout=60, max_pool_connections=64)
    return boto3.client("s3", endpoint_url=endpoint, config=settings)


REFUSALS: dict[int, str] = {HTTPStatus.NOT_FOUND: "gone since it was listed", HTTPStatus.PRECONDITION_FAILED: "changed after it was listed"}


class _ConditionError(Exception):
    """The object is not there, or not the expected one."""


class _ConflictError(Exception):
    """Two conditional writes met."""


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
        found = self._do(lambda: [entry for page in pages for entry in page.get("Contents", ())])
        names = ((entry["Key"].removeprefix(self._prefix), entry) for entry in found)
        return sorted(
            (Item(name, entry["Size"], entry["ETag"].strip('"')) for name, entry in names if name and (entry["Size"] or not name.endswith("/"))),
            key=lambda item: item.id,
        )

    def read(self, item: Item) -> bytes:
        try:
            answer = self._do(lambda: self._get(item.id, IfMatch=f'"{item.fingerprint}"'))
            content: bytes = self._do(answer["Body"].read)
        except _ConditionError as error:
            raise ReadError(str(error)) from error
        return content

    def create(self, name: str, content: bytes) -> bool:
        if self.put(name, content, IfNoneMatch="*") is not None:
            return True
        # A repeated attempt of one that had arrived is refused as well.
        return self.stored(name)[0] == content

    def replace(self, name: str, content: bytes) -> None:
        self._do(lambda: self._client.put_object(Bucket=self._bucket, Key=self._prefix + name, Body=content))

    def delete(self, name: str) -> None:
        self._do(lambda: self._client.delete_object(Bucket=self._bucket, Key=self._prefix + name))

    def put(self, name: str, content: bytes, **condition: Any) -> str | None:
        """The new ETag, or None when the condition does not hold."""
        for attempt in range(CONFLICT_ATTEMPTS):
            try:
                return self._do(lambda: self._client.put_object(Bucket=self._bucket, Key=self._prefix + name, Body=content, **condition)["ETag"])
            except _ConditionError:
                return None
            except _ConflictError:
                time.sleep(CONFLICT_SECONDS * 2**attempt)
        raise BatchError(f"{self}{name}: conditional writes conflict again and again", hint="stop the other clients of this output")

    def stored(self, name: str) -> tuple[bytes, str, float]:
        """Content, ETag, and age in seconds by the store's own clock; an empty ETag without such an object."""
        try:
            answer = self._do(lambda: self._get(name))
        except _ConditionError:
            return b"", "", 0.0
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

    def _do(self, work: Callable[[], Result]) -> Result:
        """What `work` returns; a refusal that means something here, or BatchError."""
        try:
            return work()
        except ClientError as error:
            code, status = error.response["Error"].get("Code", ""), error.response["ResponseMetadata"]["HTTPStatusCode"]
            if code != "NoSuchBucket" and status in REFUSALS:
                raise _ConditionError(REFUSALS[status]) from error
            # ConditionalRequestConflict: another conditional write of this key is under way (S3 API reference, PutObject).
            if status == HTTPStatus.CONFLICT:
                raise _ConflictError from error
            raise self._fault(error) from error
        except BotoCoreError as error:
            raise self._fault(error) from error

    def _fault(self, error: Exception) -> BatchError:
        return BatchError(f"{self}: {error}", hint="check bucket, credentials and endpoint (--endpoint-url), then run the same command again")
