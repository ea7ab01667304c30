"""Where inputs come from and answers go: a directory or an object prefix behind the same five operations."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from hashlib import sha256
from typing import Protocol

SCHEME = "s3://"
LOCK = "lock"
# Files of an interrupted write; no reader looks at them.
PARTIAL = ".partial"
# Stands before each element of a BYTES tensor.
LENGTH_BYTES = 4
# For a model that takes no files.
NO_FILES_HINT = "use a model whose one input takes a file: one element of type BYTES for each item, or a vector of UINT8 or INT8"


@dataclass(frozen=True, slots=True)
class Item:
    """An input: `id` is its path below the source, `fingerprint` changes when its content is replaced (ETag, or size and time of change)."""

    id: str
    size: int
    fingerprint: str


class Lock(Protocol):
    """Held until its context ends; `check` raises LockError once another client may have taken it."""

    def check(self) -> None: ...


class Storage(Protocol):
    """Names are paths with '/', below the storage's own place. Everything raises BatchError when the place itself does not work."""

    def items(self) -> list[Item]:
        """Everything there, ordered by id, so that two listings of the same place are equal."""

    def read(self, item: Item) -> bytes:
        """The content that was listed. Raises ReadError when that is not there any more."""

    def create(self, name: str, content: bytes) -> bool:
        """Store a new name, whole and durable before this returns; False, and nothing done, when the name is taken by another content."""

    def replace(self, name: str, content: bytes) -> None:
        """Store under a name that may exist: readers see the old or the new content."""

    def lock(self) -> AbstractContextManager[Lock]:
        """The right to write here. Raises LockError when another client has it."""

    def below(self, name: str) -> "Storage":
        """The place `name` inside this one."""


def shard_of(item_id: str, shards: int) -> int:
    """The shard that asks about an item: by a hash of its id, so that added inputs move no other."""
    return int.from_bytes(sha256(item_id.encode(errors="surrogateescape")).digest()[:8]) % shards


def batches(items: Sequence[Item], max_items: int, max_bytes: int) -> Iterator[list[Item]]:
    """The items in order, at most `max_items` and, as a tensor, `max_bytes` together; an item larger than that goes alone."""
    batch: list[Item] = []
    size = 0
    for item in items:
        if batch and (len(batch) == max_items or size + item.size + LENGTH_BYTES > max_bytes):
            yield batch
            batch, size = [], 0
        batch.append(item)
        size += item.size + LENGTH_BYTES
    if batch:
        yield batch
