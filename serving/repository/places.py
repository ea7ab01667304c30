"""From what a person or a manifest writes to the store that is meant."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from serving.repository.bucket import BucketStore
from serving.repository.errors import RepositoryError
from serving.repository.s3 import make_client
from serving.repository.tar import TarStore
from serving.repository.volume import VolumeStore

if TYPE_CHECKING:
    from serving.repository.store import Store, WritableStore

S3 = "s3://"


@dataclass(frozen=True)
class Access:
    """How object stores are reached; what is absent is taken from the environment."""

    endpoint: str | None = None
    region: str | None = None


def is_tar(place: str) -> bool:
    return place.endswith(".tar") and not place.startswith(S3)


def open_store(place: str, access: Access) -> Store:
    """The store to read from: `s3://<bucket>/<prefix>`, a tar file or a folder."""
    return TarStore(Path(place)) if is_tar(place) else open_writable(place, access)


def open_writable(place: str, access: Access) -> WritableStore:
    """The store to publish to: `s3://<bucket>/<prefix>` or a folder."""
    if is_tar(place):
        raise RepositoryError(
            f"{place}: a tar file is a whole repository, and nothing is added to it", hint="name a folder or s3://<bucket>/<prefix>"
        )
    if not place.startswith(S3):
        return VolumeStore(Path(place))
    bucket, _, prefix = place.removeprefix(S3).partition("/")
    if not bucket:
        raise RepositoryError(f"{place!r} names no bucket", hint="write s3://<bucket>/<prefix>")
    return BucketStore(make_client(access.endpoint, access.region), bucket, prefix.strip("/"))
