"""What every place that holds published versions can do, and what can be done with any of them: verify, copy."""

from __future__ import annotations

import hashlib
from typing import IO, TYPE_CHECKING, Protocol

from serving.repository.checksums import CHECKSUMS, MAX_LISTING_BYTES, Checksums, FileEntry, VersionRef, chunks, hash_of, mismatch, parse_checksums
from serving.repository.errors import AbsentError, RepositoryError
from serving.repository.expected import refuse_unexpected
from serving.repository.progress import readable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from contextlib import AbstractContextManager


class Store(Protocol):
    """A folder, a bucket or a tar file; `place` names it in messages."""

    @property
    def place(self) -> str: ...

    def versions(self) -> list[VersionRef]:
        """Versions that are complete, in order."""

    def names(self, ref: VersionRef) -> set[str]:
        """Files that lie in the version's folder, listed in checksums.json or not."""

    def open(self, ref: VersionRef, name: str, offset: int = 0) -> AbstractContextManager[IO[bytes]]:
        """The bytes of a file from `offset` on; AbsentError when there is none."""


class WritableStore(Store, Protocol):
    """A store that versions can be published to."""

    def add(self, checksums: Checksums, source: Store) -> bool:
        """Take the version over from `source`; False when somebody else published the same content meanwhile.

        Nobody sees the version before it is whole. Raises RepositoryError when other content is there, or `source` is damaged.
        """

    def discard(self, ref: VersionRef) -> list[str]:
        """Delete what an interrupted publication left, and return its files; RepositoryError when the version is whole, which is never deleted."""


class ExplainedStream:
    """A stream whose reads are explained, and nothing else that happens while it is open: writing elsewhere has errors of its own."""

    def __init__(self, stream: IO[bytes], explained: Callable[[], AbstractContextManager[None]]) -> None:
        self._stream, self._explained = stream, explained

    def read(self, size: int = -1) -> bytes:
        with self._explained():
            return self._stream.read(size)


def read_checksums(store: Store, ref: VersionRef) -> Checksums:
    """checksums.json of a version; AbsentError when the version does not exist."""
    try:
        with store.open(ref, CHECKSUMS) as stream:
            content = stream.read(MAX_LISTING_BYTES + 1)
    except AbsentError as error:
        published = _listed(store)
        raise AbsentError(
            f"{store.place} has no version {ref}; versions there are: {published}", hint="publish it, or name another version"
        ) from error
    return parse_checksums(content, ref, store.place)


def _listed(store: Store) -> str:
    try:
        return ", ".join(map(str, store.versions())) or "none"
    except RepositoryError as error:
        return f"not to be listed ({error.message})"


def find_checksums(store: Store, ref: VersionRef) -> Checksums | None:
    """checksums.json of a version, None when it does not exist."""
    try:
        with store.open(ref, CHECKSUMS) as stream:
            content = stream.read(MAX_LISTING_BYTES + 1)
    except AbsentError:
        return None
    return parse_checksums(content, ref, store.place)


def verify(store: Store, ref: VersionRef, expected: str | None = None) -> Checksums:
    """Read every file of a version; RepositoryError names the first that is missing, damaged or not listed, with what was expected and found.

    `expected` is the hash of the files that the version must have; None: those that it lists.
    """
    checksums = read_checksums(store, ref)
    refuse_unexpected(store, checksums, expected)
    for name, entry in sorted(checksums.files.items()):
        with store.open(ref, name) as stream:
            digest, size = hash_of(stream)
        if error := mismatch(f"{store.place}/{ref}/{name}", entry, digest, size):
            raise error
    if unlisted := sorted(store.names(ref) - set(checksums.files) - {CHECKSUMS}):
        raise RepositoryError(
            f"{store.place}/{ref} holds {', '.join(unlisted)}, which {CHECKSUMS} does not list",
            hint="delete what is not listed: it was put there by hand, or left by a publication that lost a race",
        )
    return checksums


def copy_file(store: Store, ref: VersionRef, name: str, entry: FileEntry, sink: IO[bytes]) -> None:
    """Write a file's bytes into `sink`; RepositoryError when they are not the listed ones."""
    digest, size = hashlib.sha256(), 0
    with store.open(ref, name) as stream:
        for chunk in chunks(stream):
            digest.update(chunk)
            size += len(chunk)
            sink.write(chunk)
    if error := mismatch(f"{store.place}/{ref}/{name}", entry, digest.hexdigest(), size):
        raise error


def publish(source: Store, target: WritableStore, refs: Iterable[VersionRef], say: Callable[[str], None]) -> int:
    """Bring versions from `source` to `target`; the number that are new there.

    All are compared first: nothing is written when one of them is published with other content already. Equal content is no change.
    """
    wanted = [read_checksums(source, ref) for ref in refs]
    missing = []
    for checksums in wanted:
        existing = find_checksums(target, checksums.ref)
        if existing is None:
            missing.append(checksums)
        else:
            refuse_difference(target.place, existing, checksums)
            say(f"{checksums.ref}: is there already, with the same content")
    made = 0
    for checksums in missing:
        made += target.add(checksums, source)
        say(f"{checksums.ref}: {len(checksums.files)} files, {readable(checksums.total_bytes)}")
    return made


def restore(backup: Store, target: WritableStore, refs: Iterable[VersionRef], say: Callable[[str], None]) -> int:
    """As `publish`, from a backup that is read whole before anything is written."""
    refs = list(refs)
    for ref in refs:
        verify(backup, ref)
        say(f"{ref}: every checksum of the backup holds")
    return publish(backup, target, refs, say)


def refuse_difference(place: str, existing: Checksums, wanted: Checksums) -> None:
    """Raise RepositoryError when a version is there with other content; the message names the files that differ."""
    differing = sorted(name for name in existing.files | wanted.files if existing.files.get(name) != wanted.files.get(name))
    if differing:
        raise RepositoryError(
            f"{place}/{wanted.ref} is published with other content; different: {', '.join(differing)}",
            hint="what is published never changes: give the new content the next version number in model.yaml",
        )
