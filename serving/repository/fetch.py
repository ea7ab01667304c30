"""The init step of a server: brings versions from a store to the pod's volume, and lets the server start only over whole and right files."""

from __future__ import annotations

import random
import shutil
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from serving.repository.cache import CacheError
from serving.repository.checksums import CHECKSUMS, Checksums, FileEntry, VersionRef, chunks, hash_of, mismatch
from serving.repository.errors import RepositoryError, TransientError
from serving.repository.expected import refuse_unexpected
from serving.repository.progress import Progress, readable
from serving.repository.store import read_checksums

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from serving.repository.cache import Cache
    from serving.repository.store import Store

Result = TypeVar("Result")
ATTEMPTS = 5
FIRST_PAUSE_SECONDS = 1.0
PARTIAL = ".partial"


@dataclass
class Fetch:
    """One run of the step. `limit_bytes` is the size of the volume at `target`; `say` takes one line of the log at a time.

    `expected` holds the hash of a version's files, where it is known what they must be.
    """

    store: Store
    target: Path
    limit_bytes: int
    say: Callable[[str], None]
    cache: Cache | None = None
    sleep: Callable[[float], None] = time.sleep
    expected: Mapping[VersionRef, str | None] = field(default_factory=dict)
    downloaded: int = field(default=0, init=False)

    def run(self, refs: Sequence[VersionRef]) -> None:
        """Fetch every version. Raises RepositoryError; a version that is wrong is not there then."""
        try:
            self._run(refs)
        except OSError as error:
            raise RepositoryError(
                f"{error.filename or self.target}: {error.strerror or error}", hint="check the pod's volume, its size and its owner"
            ) from error

    def _run(self, refs: Sequence[VersionRef]) -> None:
        began = time.monotonic()
        listings = [self._retried(str(ref), lambda ref=ref: self._listing(ref)) for ref in refs]  # type: ignore[misc]
        files = [(checksums, name, entry) for checksums in listings for name, entry in sorted(checksums.files.items())]
        self._check_room(listings)
        for number, (checksums, name, entry) in enumerate(files, start=1):
            self._file(checksums.ref, name, entry, f"{checksums.ref}/{name} (file {number} of {len(files)})")
        for checksums in listings:
            folder = self.target / str(checksums.ref)
            # An ensemble has no files that would have made it.
            folder.mkdir(parents=True, exist_ok=True)
            (folder / CHECKSUMS).write_bytes(checksums.render())
        total = sum(checksums.total_bytes for checksums in listings)
        self.say(
            f"{len(files)} files, {readable(total)} in {time.monotonic() - began:.1f} s, {readable(self.downloaded)} of them downloaded; every checksum holds"
        )

    def _listing(self, ref: VersionRef) -> Checksums:
        checksums = read_checksums(self.store, ref)
        refuse_unexpected(self.store, checksums, self.expected.get(ref))
        return checksums

    def _check_room(self, listings: Sequence[Checksums]) -> None:
        total = sum(checksums.total_bytes for checksums in listings)
        names = ", ".join(str(checksums.ref) for checksums in listings)
        if total > self.limit_bytes:
            raise RepositoryError(
                f"{names}: {readable(total)} by {CHECKSUMS}, and the volume at {self.target} holds {readable(self.limit_bytes)}, which is sized by model.yaml",
                hint="the store holds another model than model.yaml describes: correct sizeBytes there, or repository.prefix in the stack",
            )
        here = sum(path.stat().st_size for path in self.target.rglob("*") if path.is_file())
        free = shutil.disk_usage(self.target).free
        if total - here > free:
            raise RepositoryError(
                f"{names}: {readable(total)} are needed, and the node has {readable(free)} free at {self.target}",
                hint="free disk on the node, or use larger nodes",
            )

    def _file(self, ref: VersionRef, name: str, entry: FileEntry, what: str) -> None:
        path = self.target / str(ref) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_file() and _is_right(path, entry):
            self.say(f"{what}: is there, {readable(entry.size_bytes)}")
            return
        if self.cache is not None and self._from_cache(ref, name, entry, path, what):
            return
        partial = path.with_name(path.name + PARTIAL)
        self._download(ref, name, entry, partial, what)
        partial.rename(path)

    def _from_cache(self, ref: VersionRef, name: str, entry: FileEntry, path: Path, what: str) -> bool:
        """False when the cache is of no use, which is said once."""
        assert self.cache is not None  # noqa: S101  the caller looked
        try:
            before = self.downloaded
            self.cache.take(entry, path, lambda partial: self._download(ref, name, entry, partial, what))
        except CacheError as error:
            self.say(f"goes on without the node's cache: {error.message}")
            self.cache = None
            return False
        if self.downloaded == before:
            self.say(f"{what}: from the node's cache, {readable(entry.size_bytes)}")
        return True

    def _download(self, ref: VersionRef, name: str, entry: FileEntry, partial: Path, what: str) -> None:
        """Fill `partial` and compare it; a part that an earlier attempt, or an earlier container, left is gone on from."""
        resumed = self._retried(what, lambda: self._append(ref, name, entry, partial, what))
        if resumed and not _is_right(partial, entry):
            self.say(f"{what}: the part that was there is of no use, once more from the start")
            partial.unlink()
            self._retried(what, lambda: self._append(ref, name, entry, partial, what))
        with partial.open("rb") as stream:
            digest, size = hash_of(stream)
        if error := mismatch(f"{self.store.place}/{ref}/{name}", entry, digest, size):
            partial.unlink()
            raise error

    def _append(self, ref: VersionRef, name: str, entry: FileEntry, partial: Path, what: str) -> bool:
        """Whether there was a part to go on from."""
        offset = partial.stat().st_size if partial.exists() else 0
        if offset > entry.size_bytes:
            partial.unlink()
            offset = 0
        if offset == entry.size_bytes and partial.exists():
            return True
        progress = Progress(what, entry.size_bytes, offset, self.say)
        with self.store.open(ref, name, offset) as stream, partial.open("ab") as sink:
            for chunk in chunks(stream):
                sink.write(chunk)
                self.downloaded += len(chunk)
                progress.add(len(chunk))
                if progress.done > entry.size_bytes:
                    # More than listed: what follows is not read, the comparison says the rest.
                    break
        progress.end()
        if progress.done < entry.size_bytes and progress.done > offset:
            raise TransientError(
                f"{what}: the connection ended after {readable(progress.done)} of {readable(entry.size_bytes)}", hint="the store cuts transfers off"
            )
        return offset > 0

    def _retried(self, what: str, work: Callable[[], Result]) -> Result:
        """`work`, up to ATTEMPTS times while its error is one that may pass."""
        pause = FIRST_PAUSE_SECONDS
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return work()
            except TransientError as error:
                if attempt == ATTEMPTS:
                    raise RepositoryError(f"{error.message} (given up after {ATTEMPTS} attempts)", hint=error.hint) from error
                self.say(f"{what}: attempt {attempt} of {ATTEMPTS} failed: {error.message}; again in {pause:.0f} s")
                # Not all pods of a rollout at the same moment.
                self.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311  no secret depends on it
                pause *= 2
        raise AssertionError


def _is_right(path: Path, entry: FileEntry) -> bool:
    if path.stat().st_size != entry.size_bytes:
        return False
    with path.open("rb") as stream:
        return hash_of(stream)[0] == entry.sha256
