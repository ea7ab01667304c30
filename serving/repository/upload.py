"""One object, written only if there is none: If-None-Match where the store knows it, else a look before."""

from __future__ import annotations

import base64
import time
from typing import IO, TYPE_CHECKING, Any

from serving.repository.s3 import ABSENT, error_code, status_of

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.type_defs import CompletedPartTypeDef

    from serving.repository.checksums import FileEntry

# A single request takes at most 5 GiB, a part at least 5 MiB (Amazon S3 User Guide, "Multipart upload limits").
SINGLE_BYTES_MAX = 1024 * 1024 * 1024
PART_BYTES = 256 * 1024 * 1024
# 412: an object is there. 409: another write of the key is under way, and S3 wants the request again (Amazon S3 API Reference, PutObject). 501 and
# 400: the store does not know the condition.
EXISTS, CONFLICT = 412, 409
UNKNOWN_CONDITION = {"NotImplemented", "InvalidArgument", "InvalidRequest"}
CONFLICT_ATTEMPTS, CONFLICT_SECONDS = 5, 0.5
CONDITION: dict[str, Any] = {"IfNoneMatch": "*"}


def put_new(client: S3Client, bucket: str, key: str, body: IO[bytes], entry: FileEntry) -> bool:
    """Write `body` to `key`; False when an object is there already. boto3's errors pass through."""
    from botocore.exceptions import ClientError  # noqa: PLC0415  boto3 is imported where a store is used

    condition, attempts = CONDITION, CONFLICT_ATTEMPTS
    while True:
        body.seek(0)
        try:
            _put(client, bucket, key, body, entry, condition)
        except ClientError as error:
            attempts -= 1
            if status_of(error) == EXISTS:
                return False
            if status_of(error) == CONFLICT and attempts:
                time.sleep(CONFLICT_SECONDS)
            elif condition and error_code(error) in UNKNOWN_CONDITION:
                condition = {}
                if _is_there(client, bucket, key):
                    return False
            else:
                raise
        else:
            return True


def _put(client: S3Client, bucket: str, key: str, body: IO[bytes], entry: FileEntry, condition: dict[str, Any]) -> None:
    if entry.size_bytes <= SINGLE_BYTES_MAX:
        # The store compares what arrives with the hash.
        checksum = base64.b64encode(bytes.fromhex(entry.sha256)).decode()
        client.put_object(Bucket=bucket, Key=key, Body=body, ContentLength=entry.size_bytes, ChecksumSHA256=checksum, **condition)
        return
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


def _is_there(client: S3Client, bucket: str, key: str) -> bool:
    from botocore.exceptions import ClientError  # noqa: PLC0415  boto3 is imported where a store is used

    try:
        client.head_object(Bucket=bucket, Key=key)
    except ClientError as error:
        if error_code(error) in ABSENT:
            return False
        raise
    return True
