"""Directories in the cache that are complete or absent, made by one process at a time."""

import fcntl
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


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
def published(target: Path) -> Iterator[Path]:
    """An empty directory that becomes `target` when the block ends well; what a failed or killed run left behind is removed by the next one."""
    partial = target.with_name(f"{target.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    yield partial
    partial.rename(target)


def link_atomically(path: Path, target: Path) -> None:
    """`path` becomes a symbolic link to `target`, whatever it was before."""
    if path.is_symlink() and path.readlink() == target:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.unlink(missing_ok=True)
    partial.symlink_to(target)
    partial.replace(path)
