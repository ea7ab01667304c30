"""An image's root file system in the cache: unpacked once for each state of the image, read-only for everyone who runs something in it."""

import json
import shutil
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tools.cache import used
from tools.images.recipes import ImageArchive
from tools.paths import images_dir
from tools.toolchain.progress import Progress
from tools.toolchain.storage import locked, published

# A layer removes `name` of the layers below it by a file of this name, and the whole content of a directory by the second.
WHITEOUT = ".wh."
OPAQUE = ".wh..wh..opq"
CONFIG = "config.json"
ROOT = "root"


@dataclass(frozen=True)
class RootFs:
    """A root file system and the environment its image sets."""

    path: Path
    environment: Mapping[str, str]


def ensure_rootfs(archive: ImageArchive) -> RootFs:
    """The root file system of `archive` (docker-archive, layers not compressed), unpacked when it is not there yet."""
    target = images_dir() / "rootfs" / archive.path.stem
    if not target.exists():
        with locked(target, archive.ref):
            if not target.exists():
                with published(target) as partial, Progress(f"root file system of {archive.path.stem}"):
                    unpack_archive(archive.path, partial)
    config = json.loads((used(target) / CONFIG).read_text(encoding="utf-8"))
    return RootFs(target / ROOT, dict(entry.split("=", 1) for entry in config["config"].get("Env", [])))


def unpack_archive(archive: Path, target: Path) -> None:
    """Write the image's config and, below `root`, its layers, each over the ones before it."""
    root = target / ROOT
    root.mkdir()
    with tarfile.open(archive) as outer:
        [manifest] = json.load(_member(outer, "manifest.json"))
        (target / CONFIG).write_bytes(_member(outer, manifest["Config"]).read())
        for name in manifest["Layers"]:
            with tarfile.open(fileobj=_member(outer, name), mode="r:") as layer:
                _apply(layer, root)


def _apply(layer: tarfile.TarFile, root: Path) -> None:
    """Removals first: what a layer removes belongs to the layers below, whatever the order in the archive."""
    members = layer.getmembers()
    content = []
    for member in members:
        path = PurePosixPath(member.name)
        if path.name == OPAQUE:
            for entry in (root / path.parent).iterdir():
                _remove(entry)
        elif path.name.startswith(WHITEOUT):
            _remove(root / path.parent / path.name.removeprefix(WHITEOUT))
        else:
            content.append(member)
    # "tar": nothing outside `root`, no set-user-id; owners and modes as in the image.
    layer.extractall(root, members=content, numeric_owner=True, filter="tar")


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _member(archive: tarfile.TarFile, name: str) -> "tarfile.ExFileObject":
    found = archive.extractfile(name)
    if found is None:
        raise tarfile.ReadError(f"{name} is no file")
    return found  # type: ignore[return-value]
