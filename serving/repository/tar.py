"""A repository as one tar file: a backup, or a build to hand on. The same versions give the same bytes."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, cast

from serving.repository.checksums import CHECKSUMS, CHUNK, FileEntry, VersionRef, hash_of, mismatch
from serving.repository.errors import AbsentError, RepositoryError
from serving.repository.files import EPOCH, FILE_MODE, open_regular, sole, sync
from serving.repository.store import Store, read_checksums

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from serving.repository.checksums import Checksums

# First member: every version with the SHA-256 of its checksums.json, so that a file cut off between two versions is not taken for a smaller backup.
INDEX = "backup.json"
DAMAGED_HINT = "the backup cannot be used: take another one; nothing was written"


class TarStore:
    """A tar file that `write_tar` made. Raises RepositoryError when it is damaged."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with open_regular(path) as stream, tarfile.open(fileobj=stream, mode="r:") as tar:
                self._members = {member.name: member for member in tar.getmembers() if member.isfile()}
        except FileNotFoundError:
            raise AbsentError(f"{path} does not exist", hint="correct the path") from None
        except (OSError, tarfile.TarError) as error:
            raise RepositoryError(f"{path} is damaged or no tar file: {error}", hint=DAMAGED_HINT) from error
        self._check_index()

    @property
    def place(self) -> str:
        return str(self.path)

    def versions(self) -> list[VersionRef]:
        return sorted(self._index)

    def names(self, ref: VersionRef) -> set[str]:
        return {name.removeprefix(f"{ref}/") for name in self._members if name.startswith(f"{ref}/")}

    @contextmanager
    def open(self, ref: VersionRef, name: str, offset: int = 0) -> Iterator[IO[bytes]]:
        with self._opened(f"{ref}/{name}", offset) as stream:
            yield stream

    @contextmanager
    def _opened(self, name: str, offset: int = 0) -> Iterator[IO[bytes]]:
        if name not in self._members:
            raise AbsentError(f"{self.path} holds no {name}", hint=DAMAGED_HINT)
        member = self._members[name]
        with self.path.open("rb") as stream:
            stream.seek(member.offset_data + offset)
            yield cast("IO[bytes]", _Slice(stream, member.size - offset))

    def _check_index(self) -> None:
        try:
            with self._opened(INDEX) as stream:
                entries = json.loads(stream.read())["versions"]
            # Of the listings the hash alone is told; pydantic's error about what is no hash is a ValueError.
            self._index = {VersionRef.parse(name): FileEntry(sha256=digest, size_bytes=0) for name, digest in entries.items()}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise RepositoryError(f"{self.path}: {INDEX} is damaged: {error}", hint=DAMAGED_HINT) from error
        for ref, entry in self._index.items():
            with self.open(ref, CHECKSUMS) as stream:
                found, size = hash_of(stream)
            if damage := mismatch(f"{self.path}: {ref}/{CHECKSUMS}", entry.model_copy(update={"size_bytes": size}), found, size):
                raise RepositoryError(damage.message, hint=DAMAGED_HINT)


def write_tar(store: Store, refs: Iterable[VersionRef], target: Path) -> None:
    """Write versions of `store` to the tar file `target`, which appears whole. RepositoryError when one is damaged, or `target` is there already."""
    listings = {ref: read_checksums(store, ref) for ref in sorted(refs)}
    partial = target.with_name(f".{target.name}.partial")
    try:
        with sole(partial, str(target)) as stream:
            if target.exists():
                raise RepositoryError(f"{target} is there already", hint="name another file; a backup is never written over")
            with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as tar:
                _write_members(tar, store, listings)
            stream.flush()
            os.fsync(stream.fileno())
            partial.rename(target)
            sync(target.parent)
    except OSError as error:
        raise RepositoryError(f"{target} cannot be written: {error}", hint="check the folder and its free space") from error


def _write_members(tar: tarfile.TarFile, store: Store, listings: Mapping[VersionRef, Checksums]) -> None:
    index = {str(ref): hashlib.sha256(checksums.render()).hexdigest() for ref, checksums in listings.items()}
    _add(tar, INDEX, json.dumps({"versions": index}, indent=1).encode() + b"\n")
    for ref, checksums in listings.items():
        _add(tar, f"{ref}/{CHECKSUMS}", checksums.render())
        for name, entry in sorted(checksums.files.items()):
            with store.open(ref, name) as stream:
                reader = _Hashing(stream, f"{store.place}/{ref}/{name}", entry)
                _add(tar, f"{ref}/{name}", reader, entry.size_bytes)
                reader.check()


class _Slice:
    """The next `left` bytes of a stream."""

    def __init__(self, stream: IO[bytes], left: int) -> None:
        self._stream, self._left = stream, left

    def read(self, size: int = -1) -> bytes:
        chunk = self._stream.read(self._left if size < 0 else min(size, self._left))
        self._left -= len(chunk)
        return chunk


class _Hashing:
    """A stream that knows the hash and the size of what was read from it; RepositoryError when it is not what `entry` says."""

    def __init__(self, stream: IO[bytes], place: str, entry: FileEntry) -> None:
        self._stream, self._place, self._entry = stream, place, entry
        self._digest, self._size = hashlib.sha256(), 0

    def read(self, size: int = CHUNK, /) -> bytes:
        """Exactly `size` bytes: tarfile takes less for a fault of its own."""
        content = b""
        while len(content) < size and (chunk := self._more(size - len(content))):
            content += chunk
        if len(content) < size:
            self.check()
        return content

    def check(self) -> None:
        """To the end of the stream."""
        while self._more(CHUNK):
            pass
        if damage := mismatch(self._place, self._entry, self._digest.hexdigest(), self._size):
            raise damage

    def _more(self, size: int) -> bytes:
        chunk = self._stream.read(size)
        self._digest.update(chunk)
        self._size += len(chunk)
        return chunk


def _add(tar: tarfile.TarFile, name: str, content: bytes | _Hashing, size: int = 0) -> None:
    stream = io.BytesIO(content) if isinstance(content, bytes) else content
    member = tarfile.TarInfo(name)
    member.size, member.mtime, member.mode = len(content) if isinstance(content, bytes) else size, EPOCH, FILE_MODE
    tar.addfile(member, stream)
