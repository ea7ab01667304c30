"""Where things lie: everything the tools make is under one cache directory outside the clone.

`INFERENCE_PLATFORM_CACHE` moves it; the default follows the XDG base directory specification.
"""

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent


def cache_dir() -> Path:
    """The cache's root; nothing in it is needed twice, so it can be deleted at any time when no cluster runs."""
    explicit = os.environ.get("INFERENCE_PLATFORM_CACHE")
    if explicit:
        return Path(explicit).expanduser().resolve()
    xdg = os.environ.get("XDG_CACHE_HOME")
    return (Path(xdg) if xdg else Path.home() / ".cache") / "inference-platform"


def toolchain_dir() -> Path:
    return cache_dir() / "toolchain"


def images_dir() -> Path:
    return cache_dir() / "images"


def cluster_dir(name: str) -> Path:
    """State, logs, kubeconfig and image store of the local cluster `name`."""
    return cache_dir() / "clusters" / name


def content_key(files: Iterable[Path], *, extra: str = "") -> str:
    """Twelve hex digits that change when the name or the content of one of the files (or `extra`) changes."""
    digest = hashlib.sha256(extra.encode())
    for file in sorted(files):
        digest.update(file.name.encode() + b"\0")
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]
