"""The object store of a repository, in the words of RepositoryError."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import IO, TYPE_CHECKING, cast

from serving import s3
from serving.repository.errors import AbsentError, RepositoryError, TransientError
from serving.repository.store import ExplainedStream

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from mypy_boto3_s3 import S3Client

ERRORS = s3.StoreErrors(final=RepositoryError, absent=AbsentError, transient=TransientError)


def make_client(endpoint: str | None = None, region: str | None = None) -> S3Client:
    """See serving.s3; RepositoryError when endpoint, region or profile can be none."""
    return s3.make_client(ERRORS, endpoint, region)


def explained(place: str) -> AbstractContextManager[None]:
    """Turn boto3's errors into RepositoryError about `place`: AbsentError where there is nothing, TransientError where trying again may help."""
    return s3.explained(place, ERRORS)


@contextmanager
def open_uri(uri: str) -> Iterator[IO[bytes]]:
    """The bytes of s3://<bucket>/<key>."""
    bucket, _, key = uri.removeprefix("s3://").partition("/")
    with explained(uri):
        body = make_client().get_object(Bucket=bucket, Key=key)["Body"]
    try:
        yield cast("IO[bytes]", ExplainedStream(cast("IO[bytes]", body), partial(explained, uri)))
    finally:
        body.close()
