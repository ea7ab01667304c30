"""Files by SHA-256 in a folder of the node, shared by its pods: one of them downloads, the others copy. Least recently used files make room."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import shutil
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING

from serving.repository.checksums import CHUNK, FileEntry
from serving.repository.errors import RepositoryError
from serving.repository.progress import readable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

LOCKS = "locks"
PARTIAL = ".partial"
HINT = "a node's cache is a help, not a need"


class CacheError(RepositoryError):
    """The cache is of no use here: not writable, full, or too small for the file."""


class Cache:
    """`limit_bytes` is what all files together may take."""

    def __init__(self, root: Path, limit_bytes: int, say: Callable[[str], None]) -> None:
        self._root, self._limit, self._say = root, limit_bytes, say

    def take(self, entry: FileEntry, target: Path, download: Callable[[Path], None]) -> None:
        """Put the file into `target`, through `download` (which fills the path it gets, and compares) where the cache does not have it.

        Raises CacheError where the cache cannot be used, and what `download` raises.
        """
        if entry.size_bytes > self._limit:
            raise CacheError(f"{readable(entry.size_bytes)} are more than the cache holds, {readable(self._limit)}", hint=HINT)
        with _explained(self._root):
            (self._root / LOCKS).mkdir(exist_ok=True)
        with self._locked(entry.sha256):
            cached = self._root / entry.sha256
            if cached.exists():
                if self._copied(cached, entry, target):
                    return
                self._say(f"the cached file {entry.sha256} is damaged and downloaded anew")
                with _explained(cached):
                    cached.unlink()
            self._fill(cached, entry, download)
            if not self._copied(cached, entry, target):
                raise CacheError(f"{cached} does not hold what was written to it", hint=HINT)

    def _fill(self, cached: Path, entry: FileEntry, download: Callable[[Path], None]) -> None:
        partial = cached.with_name(cached.name + PARTIAL)
        with _explained(cached):
            self._make_room(entry)
            # Found out before the download, not at its end.
            with partial.open("ab"):
                pass
            if shutil.disk_usage(self._root).free < entry.size_bytes:
                raise CacheError(f"the disk of {self._root} has less than {readable(entry.size_bytes)} free", hint=HINT)
            download(partial)
            partial.chmod(0o640)
            partial.rename(cached)

    def _copied(self, cached: Path, entry: FileEntry, target: Path) -> bool:
        """Copy and compare in one pass: nothing is used because it lay there."""
        partial = target.with_name(target.name + PARTIAL)
        digest = hashlib.sha256()
        try:
            source = cached.open("rb")
        except OSError as error:
            raise CacheError(f"{cached}: {error.strerror}", hint=HINT) from error
        with source, partial.open("wb") as sink:
            while chunk := _read(source, cached):
                digest.update(chunk)
                sink.write(chunk)
        if digest.hexdigest() != entry.sha256:
            partial.unlink()
            return False
        partial.rename(target)
        with suppress(OSError):
            # Its time of change is when it was last used.
            os.utime(cached)
        return True

    def _make_room(self, entry: FileEntry) -> None:
        with self._locked("room"):
            files = [(path, path.stat()) for path in self._root.iterdir() if path.is_file() and path.name.removesuffix(PARTIAL) != entry.sha256]
            taken = sum(stat.st_size for _, stat in files)
            for path, stat in sorted(files, key=lambda file: file[1].st_mtime):
                if taken + entry.size_bytes <= self._limit:
                    return
                if self._evict(path):
                    taken -= stat.st_size
            if taken + entry.size_bytes > self._limit:
                raise CacheError(f"{self._root} is full, and all of it is in use", hint=HINT)

    def _evict(self, path: Path) -> bool:
        """False for a file that a pod just now writes or copies."""
        with (self._root / LOCKS / path.name.removesuffix(PARTIAL)).open("w") as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            path.unlink()
        self._say(f"the node's cache drops {path.name}, not used for the longest time")
        return True

    @contextmanager
    def _locked(self, name: str) -> Iterator[None]:
        """The kernel frees the lock of a process that dies."""
        with _explained(self._root):
            handle = (self._root / LOCKS / name).open("w")
        with handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self._say("another pod of this node is at the same file, waiting for it")
                fcntl.flock(handle, fcntl.LOCK_EX)
            yield


def _read(source: IO[bytes], path: Path) -> bytes:
    with _explained(path):
        return source.read(CHUNK)


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise CacheError(f"{error.filename or path}: {error.strerror or error}", hint=HINT) from error


def prepare_folder(root: Path, user: int, group: int) -> None:
    """Give the folder to the pods' user and nobody else; done already is done."""
    try:
        stat = root.stat()
        if not root.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, "is no folder")
        if (stat.st_uid, stat.st_gid) != (user, group):
            # First the mode: afterwards the folder is somebody else's.
            root.chmod(0o750)
            os.chown(root, user, group)
    except (OSError, OverflowError) as error:
        raise RepositoryError(f"{root}: {error}", hint="name a folder that is there; this step runs as root with the capability CHOWN") from error
