"""A repository in a folder: a volume, or a place on this machine."""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import IO, TYPE_CHECKING, cast

from serving.repository.checksums import CHECKSUMS, Checksums, VersionRef
from serving.repository.errors import AbsentError, RepositoryError
from serving.repository.files import locked, normalise, open_regular, published
from serving.repository.store import ExplainedStream, Store, copy_file, find_checksums, refuse_difference

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@dataclass(frozen=True)
class VolumeStore:
    """`<root>/<model>/<version>/`; a version appears by a rename, whole or not at all."""

    root: Path

    @property
    def place(self) -> str:
        return str(self.root)

    def folder(self, ref: VersionRef) -> Path:
        return self.root / ref.model / str(ref.version)

    def versions(self) -> list[VersionRef]:
        with _explained(self.root):
            if not self.root.is_dir():
                raise AbsentError(
                    f"{self.root} is no folder",
                    hint="name the folder of a repository, not of a model: make models TO=<folder> builds one; a volume has to be mounted",
                )
            return sorted(_refs(self.root))

    def names(self, ref: VersionRef) -> set[str]:
        folder = self.folder(ref)
        with _explained(folder):
            return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_symlink() or not path.is_dir()}

    @contextmanager
    def open(self, ref: VersionRef, name: str, offset: int = 0) -> Iterator[IO[bytes]]:
        path = self.folder(ref) / name
        with _explained(path):
            stream = open_regular(path)
        with stream:
            stream.seek(offset)
            yield cast("IO[bytes]", ExplainedStream(stream, partial(_explained, path)))

    def add(self, checksums: Checksums, source: Store) -> bool:
        folder = self.folder(checksums.ref)
        with _explained(folder), locked(folder.with_name(f".{folder.name}"), str(folder)):
            if folder.exists():
                existing = find_checksums(self, checksums.ref)
                if existing is None:
                    raise RepositoryError(
                        f"{folder} is there without {CHECKSUMS}: nobody published it", hint="remove that folder, then publish again"
                    )
                refuse_difference(self.place, existing, checksums)
                return False
            # A name that is no number: Triton and everyone who lists versions pass it over.
            with published(folder, partial=_partial(folder)) as made:
                for name, entry in sorted(checksums.files.items()):
                    (made / name).parent.mkdir(parents=True, exist_ok=True)
                    with (made / name).open("wb") as sink:
                        copy_file(source, checksums.ref, name, entry, sink)
                (made / CHECKSUMS).write_bytes(checksums.render())
                normalise(made)
        return True

    def discard(self, ref: VersionRef) -> list[str]:
        """See WritableStore: a publication that was killed leaves a folder beside the version's, which the next one clears too."""
        folder = self.folder(ref)
        if folder.exists():
            raise RepositoryError(f"{folder} is published", hint="a published version is never changed; publish the next number")
        if not folder.parent.is_dir():
            return []
        with _explained(folder), locked(folder.with_name(f".{folder.name}"), str(folder)):
            left = sorted(path.relative_to(_partial(folder)).as_posix() for path in _partial(folder).rglob("*") if not path.is_dir())
            shutil.rmtree(_partial(folder), ignore_errors=True)
        return left


def _partial(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.partial")


def _refs(root: Path) -> Iterator[VersionRef]:
    for listing in root.glob(f"*/*/{CHECKSUMS}"):
        try:
            yield VersionRef.parse(listing.parent.relative_to(root).as_posix())
        except ValueError:
            continue


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise AbsentError(f"{error.filename or path} does not exist", hint="correct the path, or restore the version from a backup") from error
    except OSError as error:
        raise RepositoryError(
            f"{error.filename or path}: {error.strerror or error}", hint="check the volume, its free space and its owner"
        ) from error
