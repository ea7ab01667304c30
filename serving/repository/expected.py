"""What the stack says a version is, and whether a store holds that: checksums.json alone proves only that a store agrees with itself."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from serving.artefact import CODE, MAX_PARSED_BYTES, code_sha256, files_sha256
from serving.repository.checksums import Checksums, FileEntry, VersionRef, mismatch
from serving.repository.errors import RepositoryError

if TYPE_CHECKING:
    from serving.repository.store import Store

SEPARATOR = "@sha256:"
# A pod's status shows 2048 bytes of the last words (Kubernetes documentation, "Determine the Reason for Pod Failure").
FILES_SHOWN, HASH_SHOWN = 12, 12


@dataclass(frozen=True)
class ExpectedVersion:
    """A version and, where the caller knows it, the hash of its files (`serving.artefact.files_sha256`): `magika/1@sha256:<hash>`."""

    ref: VersionRef
    files_sha256: str | None = None

    @classmethod
    def parse(cls, text: str) -> ExpectedVersion:
        """Raises ValueError for what names no version, or has no hash behind the `@`."""
        name, separator, expected = text.partition(SEPARATOR)
        if separator and not re.fullmatch("[0-9a-f]{64}", expected):
            raise ValueError(f"{text!r}: {expected!r} is no SHA-256; write <model>/<number>{SEPARATOR}<64 hexadecimal digits>")
        return cls(VersionRef.parse(name), expected or None)


def refuse_unexpected(store: Store, checksums: Checksums, expected: str | None) -> None:
    """Raise RepositoryError unless the version's files are those of `expected`; None: whatever the store holds is right."""
    if expected is None:
        return
    hashes = {name: _hash(store, checksums.ref, name, entry) for name, entry in checksums.files.items()}
    if (found := files_sha256(hashes)) == expected:
        return
    shown = [f"{name} {sha256[:HASH_SHOWN]}" for name, sha256 in sorted(hashes.items())[:FILES_SHOWN]]
    more = [f"and {len(hashes) - FILES_SHOWN} more"] if len(hashes) > FILES_SHOWN else []
    raise RepositoryError(
        f"{store.place}/{checksums.ref} is not the version that the stack was made for: expected artefact {expected}, found {found} "
        f"({', '.join(shown + more) or 'no files'})",
        hint="the store holds other content under this number, or model.yaml or the code beside it has changed since: "
        "publish that as a new version, deploy from the release that published this one, or correct repository in the stack",
    )


def _hash(store: Store, ref: VersionRef, name: str, entry: FileEntry) -> str:
    if not name.endswith(CODE) or entry.size_bytes > MAX_PARSED_BYTES:
        return entry.sha256
    with store.open(ref, name) as stream:
        content = stream.read(entry.size_bytes + 1)
    if error := mismatch(f"{store.place}/{ref}/{name}", entry, hashlib.sha256(content).hexdigest(), len(content)):
        raise error
    return code_sha256(content)
