"""The parts of an output: what is stored there, exactly one record for each id.

Part n is created only by a writer that has read the parts before it, and only if nobody has created it: whoever else writes, a lock lost or never
held, an id gets no second record.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import count

from serving.batch.errors import BatchError, LockError, ReadError
from serving.batch.records import Record
from serving.batch.storage import Item, Storage

PREFIX, SUFFIX = "part-", ".jsonl"


@dataclass(frozen=True, slots=True)
class Entry:
    """What a ledger remembers of a record."""

    fingerprint: str
    failed: bool


@dataclass
class Ledger:
    """`read_ledger` makes it; `entries` are the records stored, `repaired` the parts whose last line was torn."""

    storage: Storage
    parts: int = 0
    entries: dict[str, Entry] = field(default_factory=dict)
    repaired: list[str] = field(default_factory=list)

    def append(self, records: Iterable[Record]) -> list[Record]:
        """Store the next part, whole; those that were stored, which leaves out ids that have a record. LockError when another client wrote that part."""
        fresh = [record for record in records if record.id not in self.entries]
        if not fresh:
            return []
        name = part_name(self.parts + 1)
        if not self.storage.create(name, b"".join(record.line() for record in fresh)):
            raise LockError(f"{self.storage}: {name} was written by another client", hint="stop the other one, then run the same command again")
        self.parts += 1
        self.entries.update((record.id, Entry(record.fingerprint, record.error is not None)) for record in fresh)
        return fresh

    def drop(self, unwanted: Callable[[str, Entry], bool]) -> int:
        """Take records out, so that their inputs are asked about again; how many."""
        dropped = {item_id for item_id, entry in self.entries.items() if unwanted(item_id, entry)}
        if dropped:
            for item in _part_items(self.storage):
                records, _ = _read(self.storage, item)
                kept = [record for record in records if record.id not in dropped]
                if len(kept) < len(records):
                    self.storage.replace(item.id, b"".join(record.line() for record in kept))
            for item_id in dropped:
                del self.entries[item_id]
        return len(dropped)


def part_name(number: int) -> str:
    return f"{PREFIX}{number:06d}{SUFFIX}"


def read_ledger(storage: Storage, *, repair: bool) -> Ledger:
    """What is stored; with `repair`, torn last lines are taken off. BatchError for a missing part, a damaged line, an id with two records."""
    ledger = Ledger(storage)
    for number, item in zip(count(1), _part_items(storage)):
        if item.id != part_name(number):
            raise BatchError(f"{storage}: {part_name(number)} is missing, {item.id} is there", hint="bring it back, or start with a new output")
        records, torn = _read(storage, item)
        if torn:
            ledger.repaired.append(item.id)
            if repair:
                storage.replace(item.id, b"".join(record.line() for record in records))
        for record in records:
            if record.id in ledger.entries:
                raise BatchError(f"{storage}: {item.id} has a second record of {record.id!r}", hint=f"take one of the two out of {item.id}")
            ledger.entries[record.id] = Entry(record.fingerprint, record.error is not None)
        ledger.parts = number
    return ledger


def records_of(storage: Storage) -> Iterable[Record]:
    """Every record stored, in the order of the parts."""
    for item in _part_items(storage):
        yield from _read(storage, item)[0]


def _part_items(storage: Storage) -> list[Item]:
    return [item for item in storage.items() if item.id.startswith(PREFIX) and item.id.endswith(SUFFIX)]


def _read(storage: Storage, item: Item) -> tuple[list[Record], bool]:
    """Records of a part, and whether its last line is torn: without its end, as a copy or a full disk leaves it."""
    try:
        *lines, rest = storage.read(item).split(b"\n")
    except ReadError as error:
        raise BatchError(f"{storage}: {item.id} {error}", hint="stop other clients of this output, then run the same command again") from error
    records = []
    for number, line in enumerate(lines, 1):
        try:
            records.append(Record.parse(line))
        except ValueError as error:
            raise BatchError(
                f"{storage}: {item.id}, line {number} cannot be read: {error}",
                hint="delete that line; the same command then asks about its input again",
            ) from error
    return records, bool(rest)
