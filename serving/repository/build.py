"""A repository from model.yaml: same input, same bytes; whole or not there, whenever it is interrupted."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from serving.repository.checksums import CHECKSUMS, VersionRef, folder_checksums
from serving.repository.errors import RepositoryError
from serving.repository.files import locked, normalise, published
from serving.repository.stage import write_versions
from serving.repository.store import find_checksums, read_checksums, refuse_difference
from serving.repository.tar import write_tar
from serving.repository.volume import VolumeStore

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from serving.model_manifest import ModelManifest
    from serving.repository.sources import Wheels

TRANSFORM = Path(__file__).resolve().parent.parent / "image" / "transform.py"


def build_repository(manifests: Sequence[ModelManifest], wheels: Wheels, target: Path) -> list[VersionRef]:
    """Make the folder `target` with every version of every model, as it is published; an equal one that is there stays.

    Raises ManifestError for a source that is not what model.yaml says, RepositoryError for a `target` with other content or that cannot be written.
    """
    with _explained(target), locked(target, str(target)):
        partial = target.with_name(f".{target.name}.partial")
        if not target.exists():
            with published(target, partial) as folder:
                return _write(manifests, wheels, folder)
        folder = partial
        shutil.rmtree(folder, ignore_errors=True)
        try:
            refs = _write(manifests, wheels, folder)
            _compare(VolumeStore(folder), VolumeStore(target))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return refs


def build_tar(manifests: Sequence[ModelManifest], wheels: Wheels, target: Path) -> list[VersionRef]:
    """The same as one tar file."""
    with _explained(target), tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as folder:
        refs = _write(manifests, wheels, Path(folder))
        write_tar(VolumeStore(Path(folder)), refs, target)
    return refs


@contextmanager
def _explained(target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        message = f"{target} cannot be written: {error}"
        raise RepositoryError(message, hint="check the folder, its owner and its free space") from error


def _write(manifests: Sequence[ModelManifest], wheels: Wheels, root: Path) -> list[VersionRef]:
    root.mkdir(parents=True, exist_ok=True)
    transformations = write_versions(manifests, wheels, root)
    if transformations:
        _transform(transformations, root)
    refs = [VersionRef(manifest.name, number) for manifest in manifests for number in manifest.version_numbers]
    for ref in refs:
        folder = root / str(ref)
        (folder / CHECKSUMS).write_bytes(folder_checksums(ref, folder).render())
    normalise(root)
    return sorted(refs)


def _transform(transformations: list[dict[str, str]], root: Path) -> None:
    """By the program that the image build runs, so that both make the same."""
    with tempfile.TemporaryDirectory() as folder:
        listing = Path(folder, "transformations.json")
        listing.write_text(json.dumps(transformations), encoding="utf-8")
        done = subprocess.run([sys.executable, str(TRANSFORM), str(listing), str(root)], capture_output=True, text=True, check=False)
    if done.returncode:
        reason = "\n".join(done.stderr.strip().splitlines()[-5:])
        raise RepositoryError(f"a transformation failed:\n{reason}", hint="it needs onnxruntime, onnx and numpy; see the reason above")


def _compare(made: VolumeStore, there: VolumeStore) -> None:
    for ref in sorted({*made.versions(), *there.versions()}):
        existing = find_checksums(there, ref)
        if existing is None or find_checksums(made, ref) is None:
            raise RepositoryError(
                f"{there.root} holds other versions than model.yaml says, {ref} for one", hint="name another folder, or remove this one"
            )
        refuse_difference(there.place, existing, read_checksums(made, ref))
