"""Directories in the cache that are complete or absent, made by one process at a time."""

import os
from pathlib import Path

from serving.repository.files import locked, published

__all__ = ["link_atomically", "locked", "published"]


def link_atomically(path: Path, target: Path) -> None:
    """`path` becomes a symbolic link to `target`, whatever it was before."""
    if path.is_symlink() and path.readlink() == target:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.unlink(missing_ok=True)
    partial.symlink_to(target)
    partial.replace(path)
