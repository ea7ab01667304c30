"""Directories that are complete or absent, made by one process at a time, with the same bytes and times for the same content."""

import fcntl
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# What every file and folder of a repository looks like, whoever makes it: 1970, readable by all, writable by its owner.
EPOCH = 0
FILE_MODE, FOLDER_MODE = 0o644, 0o755


@contextmanager
def locked(target: Path, what: str) -> Iterator[None]:
    """Hold the lock of `target`; says so when another process has it, and waits. The kernel frees it when a process dies."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.with_name(f"{target.name}.lock").open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"{what}: another process is at it, waiting for its result", file=sys.stderr, flush=True)
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


@contextmanager
def published(target: Path, partial: Path | None = None) -> Iterator[Path]:
    """An empty directory that becomes `target` when the block ends well; what a failed or killed run left behind is removed by the next one."""
    partial = partial or target.with_name(f"{target.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    yield partial
    partial.rename(target)


def normalise(folder: Path) -> None:
    """Give everything below `folder`, and itself, the modes and times above, and bring it to the disk."""
    for path in sorted(folder.rglob("*"), reverse=True):
        _normalise(path)
    _normalise(folder)


def _normalise(path: Path) -> None:
    path.chmod(FOLDER_MODE if path.is_dir() else FILE_MODE)
    os.utime(path, (EPOCH, EPOCH))
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
