"""One object, written only if there is none: If-None-Match where the store knows it, else a look before."""

from __future__ import annotations

import base64
from typing import IO, TYPE_CHECKING, Any

from serving.s3 import ABSENT, UNKNOWN_CONDITION, conditional, error_code

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.type_defs import CompletedPartTypeDef

    from serving.repository.checksums import FileEntry

# A single request takes at most 5 GiB, a part at least 5 MiB (Amazon S3 User Guide, "Multipart upload limits").
SINGLE_BYTES_MAX = 1024 * 1024 * 1024
PART_BYTES = 256 * 1024 * 1024
CONDITION: dict[str, Any] = {"IfNoneMatch": "*"}


def put_new(client: S3Client, bucket: str, key: str, body: IO[bytes], entry: FileEntry) -> bool:
    """Write `body` to `key`; False when an object is there already. boto3's errors pass through."""
    from botocore.exceptions import ClientError  # noqa: PLC0415  boto3 is imported where a store is used

    try:
        return conditional(lambda: _put(client, bucket, key, body, entry, CONDITION)) is not None
    except ClientError as error:
        if error_code(error) not in UNKNOWN_CONDITION:
            raise
    return not _is_there(client, bucket, key) and _put(client, bucket, key, body, entry, {})


def _put(client: S3Client, bucket: str, key: str, body: IO[bytes], entry: FileEntry, condition: dict[str, Any]) -> bool:
    """Write `body` from its beginning; True, so that `conditional` tells it from a condition that does not hold."""
    body.seek(0)
    if entry.size_bytes <= SINGLE_BYTES_MAX:
        # The store compares what arrives with the hash.
        checksum = base64.b64encode(bytes.fromhex(entry.sha256)).decode()
        client.put_object(Bucket=bucket, Key=key, Body=body, ContentLength=entry.size_bytes, ChecksumSHA256=checksum, **condition)
        return True
    upload = client.create_multipart_upload(Bucket=bucket, Key=key)["UploadId"]
    try:
        parts: list[CompletedPartTypeDef] = []
        while part := body.read(PART_BYTES):
            number = len(parts) + 1
            answer = client.upload_part(Bucket=bucket, Key=key, UploadId=upload, PartNumber=number, Body=part)
            parts.append({"ETag": answer["ETag"], "PartNumber": number})
        client.complete_multipart_upload(Bucket=bucket, Key=key, UploadId=upload, MultipartUpload={"Parts": parts}, **condition)
    except BaseException:
        # Parts of an upload that nobody ends are paid for.
        client.abort_multipart_upload(Bucket=bucket, Key=key, UploadId=upload)
        raise
    return True


def _is_there(client: S3Client, bucket: str, key: str) -> bool:
    from botocore.exceptions import ClientError  # noqa: PLC0415  boto3 is imported where a store is used

    try:
        client.head_object(Bucket=bucket, Key=key)
    except ClientError as error:
        if error_code(error) in ABSENT:
            return False
        raise
    return True
