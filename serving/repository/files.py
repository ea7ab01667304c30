"""Directories that are complete or absent, made by one process at a time, with the same bytes and times for the same content."""

import errno
import fcntl
import os
import shutil
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

# What every file and folder of a repository looks like, whoever makes it: 1970, readable by all, writable by its owner.
EPOCH = 0
FILE_MODE, FOLDER_MODE = 0o644, 0o755


@contextmanager
def locked(target: Path, what: str) -> Iterator[None]:
    """Hold the lock of `target`; says so when another process has it, and waits. The kernel frees it when a process dies; its file goes with the block."""
    target.parent.mkdir(parents=True, exist_ok=True)
    path = target.with_name(f"{target.name}.lock")
    while True:
        with path.open("w") as handle:
            _flock(handle, what)
            if not _has_name(path, handle):
                continue
            try:
                yield
            finally:
                path.unlink(missing_ok=True)
            return


@contextmanager
def sole(path: Path, what: str) -> Iterator[IO[bytes]]:
    """The empty file `path`, which nobody else writes meanwhile; it is gone when the block fails, and else what the block made of it."""
    while True:
        with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, FILE_MODE), "r+b") as stream:
            _flock(stream, what)
            if not _has_name(path, stream):
                continue
            stream.truncate()
            try:
                yield stream
            except BaseException:
                path.unlink(missing_ok=True)
                raise
            return


def _has_name(path: Path, handle: IO[Any]) -> bool:
    """Who waited for a lock may have that of a file which has another name, or none, by now."""
    try:
        return os.path.samestat(path.stat(), os.fstat(handle.fileno()))
    except FileNotFoundError:
        return False


def _flock(handle: IO[Any], what: str) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print(f"{what}: another process is at it, waiting for its result", file=sys.stderr, flush=True)
        fcntl.flock(handle, fcntl.LOCK_EX)


def open_regular(path: Path) -> IO[bytes]:
    """The file at `path`, to read; OSError also for a pipe, at which a reader would wait without end, and for a device."""
    stream = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb")
    if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
        stream.close()
        raise OSError(errno.EINVAL, "is no regular file", str(path))
    return stream


@contextmanager
def published(target: Path, partial: Path | None = None) -> Iterator[Path]:
    """An empty directory that becomes `target` when the block ends well, and is gone when it fails; what a killed run left, the next one removes."""
    partial = partial or target.with_name(f"{target.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        partial.mkdir(parents=True)
        yield partial
        partial.rename(target)
        sync(target.parent)
    except BaseException:
        # It may be what fills the disk.
        shutil.rmtree(partial, ignore_errors=True)
        raise


def normalise(folder: Path) -> None:
    """Give everything below `folder`, and itself, the modes and times above, and bring it to the disk."""
    for path in sorted(folder.rglob("*"), reverse=True):
        _normalise(path)
    _normalise(folder)


def _normalise(path: Path) -> None:
    path.chmod(FOLDER_MODE if path.is_dir() else FILE_MODE)
    os.utime(path, (EPOCH, EPOCH))
    sync(path)


def sync(path: Path) -> None:
    """Bring a file, or the names in a folder, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
