"""The S3 API through boto3, with every fault as a sentence that tells what may be tried again from what may not."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import IO, TYPE_CHECKING, cast

from serving.repository.errors import AbsentError, RepositoryError, TransientError
from serving.repository.store import ExplainedStream

if TYPE_CHECKING:
    from collections.abc import Iterator

    from botocore.exceptions import ClientError
    from mypy_boto3_s3 import S3Client

CONNECT_SECONDS = 5
# Longest silence in the middle of a transfer.
READ_SECONDS = 30
# Signatures name a region even where the store knows none.
DEFAULT_REGION = "us-east-1"
ABSENT = {"404", "NoSuchKey", "NoSuchBucket", "NotFound"}
REFUSED = {"401", "403", "AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken"}
BUSY = {"429", "SlowDown", "RequestTimeout", "RequestTimeTooSkewed", "Throttling"}
HTTP_SERVER_ERROR = 500
CREDENTIALS_HINT = (
    "give the process credentials: a service account with a role, a Secret with AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"
)


def make_client(endpoint: str | None = None, region: str | None = None) -> S3Client:
    """A client of the store at `endpoint` (absent: $AWS_ENDPOINT_URL_S3 or AWS); credentials come from the environment.

    boto3 is imported here: who reads a repository from a folder needs none.
    """
    import boto3  # noqa: PLC0415  see above
    from botocore.config import Config  # noqa: PLC0415
    from botocore.exceptions import BotoCoreError  # noqa: PLC0415

    config = Config(
        connect_timeout=CONNECT_SECONDS,
        read_timeout=READ_SECONDS,
        retries={"total_max_attempts": 2, "mode": "standard"},
        # The newer default sends checksums in trailers, which not every store with this API reads.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        s3={"addressing_style": "path"} if endpoint else None,
    )
    try:
        session = boto3.Session()
        return session.client("s3", endpoint_url=endpoint, region_name=region or session.region_name or DEFAULT_REGION, config=config)
    except (BotoCoreError, ValueError) as error:
        raise RepositoryError(f"object store {endpoint or 'AWS'}: {error}", hint="correct endpoint, region or AWS_PROFILE") from error


@contextmanager
def explained(place: str) -> Iterator[None]:
    """Turn boto3's errors into RepositoryError about `place`: AbsentError where there is nothing, TransientError where trying again may help."""
    from botocore import exceptions as boto  # noqa: PLC0415  boto3 is imported where a store is used

    lost = (boto.ConnectionError, boto.HTTPClientError, boto.IncompleteReadError, boto.ResponseStreamingError)
    try:
        yield
    except boto.ClientError as error:
        raise _answered(place, error) from error
    except (boto.NoCredentialsError, boto.PartialCredentialsError, boto.CredentialRetrievalError, boto.TokenRetrievalError) as error:
        raise RepositoryError(f"{place}: {error}", hint=CREDENTIALS_HINT) from error
    except (*lost, OSError) as error:
        raise TransientError(f"{place}: {error}", hint="the store cannot be reached: check endpoint, network policy and its health") from error
    except boto.BotoCoreError as error:
        raise RepositoryError(f"{place}: {error}", hint="correct bucket, prefix, endpoint or region") from error


def status_of(error: ClientError) -> int:
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def error_code(error: ClientError) -> str:
    return error.response.get("Error", {}).get("Code", "")


def _answered(place: str, error: ClientError) -> RepositoryError:
    code = error_code(error)
    message = f"{place}: the store answers {code} ({status_of(error)}): {error.response.get('Error', {}).get('Message', '')}"
    if code in ABSENT:
        return AbsentError(message, hint="correct bucket, prefix or version, or publish it first")
    if code in REFUSED:
        return RepositoryError(message, hint=f"allow the identity s3:GetObject and s3:ListBucket there; {CREDENTIALS_HINT}")
    if code in BUSY or status_of(error) >= HTTP_SERVER_ERROR:
        return TransientError(message, hint="the store is busy or broken; try again later")
    return RepositoryError(message, hint="correct bucket, prefix, endpoint or region")


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
