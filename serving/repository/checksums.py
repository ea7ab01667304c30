"""checksums.json: what a published version consists of. Written last, so a version without it does not exist."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Annotated

from pydantic import Field, ValidationError

from components.core.spec import Spec
from serving.model_files import Sha256  # noqa: TC001  (pydantic reads it at run time)
from serving.model_manifest import MODEL_NAME
from serving.model_sources import FILE_NAME
from serving.repository.errors import RepositoryError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CHECKSUMS = "checksums.json"
CHUNK = 1024 * 1024
# 30,000 files have less; an init step, which reads it whole, has 256 MiB.
MAX_LISTING_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, order=True)
class VersionRef:
    """A version of a model; as text `magika/1`, which is also its folder in a repository."""

    model: str
    version: int

    def __str__(self) -> str:
        return f"{self.model}/{self.version}"

    @classmethod
    def parse(cls, text: str) -> VersionRef:
        """Raises ValueError for what is no `<model>/<whole number from 1>`."""
        model, _, number = text.rpartition("/")
        if not MODEL_NAME.fullmatch(model) or not number.isascii() or not number.isdigit() or number != str(int(number)) or int(number) < 1:
            raise ValueError(f"{text!r} names no version; write <model>/<number>, for example magika/1")
        return cls(model, int(number))


class FileEntry(Spec):
    """One file as it must be."""

    sha256: Sha256
    size_bytes: Annotated[int, Field(ge=0)]


class Checksums(Spec):
    """Files of a version by name, with `/` between folder and file."""

    model: Annotated[str, Field(pattern=MODEL_NAME.pattern)]
    version: Annotated[int, Field(ge=1)]
    # The pattern keeps a name from a store inside the folder it is written to. An ensemble has no files: only its folder counts.
    files: dict[Annotated[str, Field(pattern=FILE_NAME.pattern)], FileEntry]

    @property
    def ref(self) -> VersionRef:
        return VersionRef(self.model, self.version)

    @property
    def total_bytes(self) -> int:
        return sum(entry.size_bytes for entry in self.files.values())

    def render(self) -> bytes:
        """The file's content; the same for the same files."""
        return json.dumps(self.model_dump(by_alias=True), indent=1, sort_keys=True).encode() + b"\n"


def parse_checksums(content: bytes, ref: VersionRef, place: str) -> Checksums:
    """Read checksums.json of `ref`; RepositoryError names `place`."""
    hint = "the version was not published by this platform, or is damaged: publish it as a new version, or restore a backup"
    if len(content) > MAX_LISTING_BYTES:
        raise RepositoryError(f"{place}/{ref}/{CHECKSUMS} has more than {MAX_LISTING_BYTES} bytes", hint=hint)
    try:
        checksums = Checksums.model_validate_json(content)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"])) or "(root)"
        raise RepositoryError(f"{place}/{ref}/{CHECKSUMS}: {key}: {first['msg']}", hint=hint) from error
    if checksums.ref != ref:
        raise RepositoryError(f"{place}/{ref}/{CHECKSUMS} speaks of {checksums.ref}", hint=hint)
    return checksums


def folder_checksums(ref: VersionRef, folder: Path) -> Checksums:
    """Checksums of everything that lies in `folder`."""
    files = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        with path.open("rb") as stream:
            digest, size = hash_of(stream)
        files[path.relative_to(folder).as_posix()] = FileEntry(sha256=digest, size_bytes=size)
    return Checksums(model=ref.model, version=ref.version, files=files)


def chunks(stream: IO[bytes]) -> Iterator[bytes]:
    while chunk := stream.read(CHUNK):
        yield chunk


def hash_of(stream: IO[bytes]) -> tuple[str, int]:
    """SHA-256 and size of what is left of `stream`."""
    digest, size = hashlib.sha256(), 0
    for chunk in chunks(stream):
        digest.update(chunk)
        size += len(chunk)
    return digest.hexdigest(), size


def mismatch(place: str, entry: FileEntry, digest: str, size: int) -> RepositoryError | None:
    """The error about a file that is not what `entry` says, None for one that is."""
    if (digest, size) == (entry.sha256, entry.size_bytes):
        return None
    return RepositoryError(
        f"{place} is damaged: expected SHA-256 {entry.sha256} ({entry.size_bytes} bytes), found {digest} ({size} bytes)",
        hint="restore the version from a backup, or publish its content as a new version; what is published is never changed in place",
    )
