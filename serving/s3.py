"""The S3 API through boto3 for everyone who uses an object store: one client, one meaning of each fault, one conditional write."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from botocore.exceptions import ClientError
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.type_defs import ObjectTypeDef

    from components.errors import PlatformError

Result = TypeVar("Result")

CONNECT_SECONDS = 5
# Longest silence in the middle of a transfer.
READ_SECONDS = 30
# Signatures name a region even where the store knows none.
DEFAULT_REGION = "us-east-1"
ABSENT = {"404", "NoSuchKey", "NoSuchBucket", "NotFound"}
REFUSED = {"401", "403", "AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken"}
BUSY = {"429", "SlowDown", "RequestTimeout", "RequestTimeTooSkewed", "Throttling"}
# Of a store that does not know a condition, with 501, also without a word about it, or 400.
UNKNOWN_CONDITION = {"NotImplemented", "501", "InvalidArgument", "InvalidRequest"}
CONFLICT_ATTEMPTS, CONFLICT_SECONDS = 5, 0.5
CREDENTIALS_HINT = (
    "give the process credentials: a service account with a role, a Secret with AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"
)


@dataclass(frozen=True)
class StoreErrors:
    """The errors in which a user of the store speaks: `absent` where there is nothing, `transient` where trying again may help, else `final`."""

    final: type[PlatformError]
    absent: type[PlatformError]
    transient: type[PlatformError]


def make_client(errors: StoreErrors, endpoint: str | None = None, region: str | None = None, *, attempts: int = 2, connections: int = 10) -> S3Client:
    """A client of the store at `endpoint` (absent: $AWS_ENDPOINT_URL_S3 or AWS); credentials come from the environment.

    A request is sent `attempts` times at most. boto3 is imported here: who reads and writes a folder needs none.
    """
    import boto3  # noqa: PLC0415  see above
    import botocore.session  # noqa: PLC0415
    from botocore.config import Config  # noqa: PLC0415
    from botocore.exceptions import BotoCoreError  # noqa: PLC0415

    config = Config(
        connect_timeout=CONNECT_SECONDS,
        read_timeout=READ_SECONDS,
        retries={"total_max_attempts": attempts, "mode": "standard"},
        max_pool_connections=connections,
        # The newer default sends checksums in trailers, which not every store with this API reads.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        s3={"addressing_style": "path"} if endpoint else None,
    )
    try:
        core = botocore.session.Session()
        core.register_component("data_loader", _loader())
        session = boto3.Session(botocore_session=core)
        return session.client("s3", endpoint_url=endpoint, region_name=region or session.region_name or DEFAULT_REGION, config=config)
    except (BotoCoreError, ValueError) as error:
        raise errors.final(f"object store {endpoint or 'AWS'}: {error}", hint="correct endpoint, region or AWS_PROFILE") from error


@cache
def _loader() -> Any:
    """What botocore reads of a service, megabytes of JSON: once in a process, whatever the number of clients."""
    import botocore.session  # noqa: PLC0415  boto3 is imported where a store is used

    return botocore.session.Session().get_component("data_loader")


@contextmanager
def explained(place: str, errors: StoreErrors) -> Iterator[None]:
    """Turn boto3's errors into `errors` about `place`."""
    from botocore import exceptions as boto  # noqa: PLC0415  boto3 is imported where a store is used
    from botocore.parsers import ResponseParserError  # noqa: PLC0415

    lost = (boto.ConnectionError, boto.HTTPClientError, boto.IncompleteReadError, boto.ResponseStreamingError)
    try:
        yield
    except boto.ClientError as error:
        raise _answered(place, error, errors) from error
    except (boto.NoCredentialsError, boto.PartialCredentialsError, boto.CredentialRetrievalError, boto.TokenRetrievalError) as error:
        raise errors.final(f"{place}: {error}", hint=CREDENTIALS_HINT) from error
    except (*lost, OSError) as error:
        raise errors.transient(f"{place}: {error}", hint="the store cannot be reached: check endpoint, network policy and its health") from error
    except (ResponseParserError, KeyError, ValueError, RecursionError) as error:
        # A proxy's page to log in at, a header that is none, a redirection in a circle, a part of the answer that is not there.
        message = f"{place}: the answer is none of an object store: {type(error).__name__} {str(error)[:200]}"
        raise errors.final(message, hint="correct the endpoint, or what stands before it") from error
    except boto.BotoCoreError as error:
        raise errors.final(f"{place}: {error}", hint="correct bucket, prefix, endpoint or region") from error


def listed(client: S3Client, bucket: str, prefix: str) -> Iterator[ObjectTypeDef]:
    """Every object below `prefix`. ValueError for an answer that is no listing, such as a page of a proxy, which would pass for an empty one."""
    for page in client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
        if "IsTruncated" not in page:
            raise ValueError("a listing says whether it is whole, and this one does not")
        yield from page.get("Contents", [])


def conditional(write: Callable[[], Result]) -> Result | None:
    """What `write` returns; None when its condition does not hold. boto3's other errors pass through.

    412: an object is there, or another than expected; 404 NoSuchKey: none is. 409: another write of the key is under way, and S3 wants the request
    again (Amazon S3 API Reference, PutObject).
    """
    from botocore.exceptions import ClientError  # noqa: PLC0415  boto3 is imported where a store is used

    attempts = CONFLICT_ATTEMPTS
    while True:
        try:
            return write()
        except ClientError as error:
            attempts -= 1
            if status_of(error) == HTTPStatus.PRECONDITION_FAILED or error_code(error) == "NoSuchKey":
                return None
            if status_of(error) != HTTPStatus.CONFLICT or not attempts:
                raise
        time.sleep(CONFLICT_SECONDS)


def status_of(error: ClientError) -> int:
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def error_code(error: ClientError) -> str:
    return error.response.get("Error", {}).get("Code", "")


def _answered(place: str, error: ClientError, errors: StoreErrors) -> PlatformError:
    code, status = error_code(error), status_of(error)
    message = f"{place}: the store answers {code} ({status}): {error.response.get('Error', {}).get('Message', '')}"
    if code == "NoSuchBucket":
        return errors.absent(message, hint="correct the name of the bucket, or create it: nothing here does")
    if code in ABSENT:
        return errors.absent(message, hint="correct bucket, prefix or version, or publish it first")
    if code in REFUSED:
        return errors.final(message, hint=f"allow the identity s3:GetObject, s3:ListBucket and, to write, s3:PutObject there; {CREDENTIALS_HINT}")
    if code in UNKNOWN_CONDITION:
        return errors.final(message, hint="the store does not know the request: use one with the whole S3 API, conditional writes among it")
    if code in BUSY or status in {HTTPStatus.CONFLICT, HTTPStatus.TOO_MANY_REQUESTS} or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return errors.transient(message, hint="the store is busy or broken; try again later")
    return errors.final(message, hint="correct bucket, prefix, endpoint or region")
