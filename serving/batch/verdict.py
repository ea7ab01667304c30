"""Whether an output answers its input: every item exactly once, and about the content that is there."""

from collections import Counter
from dataclasses import dataclass

from serving.batch.errors import BatchError
from serving.batch.inputs import Shard, named, read_settings
from serving.batch.ledger import Entry, read_ledger, records_of
from serving.batch.storage import Item, Storage


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Ids by what is wrong with them; `failed` ones have a record that says why there is no answer."""

    total: int
    missing: list[str]
    twice: list[str]
    unknown: list[str]
    changed: list[str]
    failed: list[str]
    torn: list[str]

    @property
    def complete(self) -> bool:
        return not (self.missing or self.twice or self.unknown or self.changed or self.torn)

    def __str__(self) -> str:
        kinds = ("missing", "twice", "unknown", "changed", "failed", "torn")
        faults = [text for kind in kinds if (text := named(kind, getattr(self, kind)))]
        return f"{self.total} inputs, {'every one has exactly one record' if self.complete else 'the output is not whole'}" + "".join(
            f"\n{fault}" for fault in faults
        )


def shards_of(output: Storage) -> list[Shard]:
    """The shards that the output was begun with."""
    count = read_settings(output).get("shards")
    if not isinstance(count, int) or count < 1:
        raise BatchError(f"{output} was begun with shards {count!r}", hint="restore batch.json")
    return [Shard(index, count) for index in range(count)]


def check(items: list[Item], output: Storage) -> Verdict:
    """Compare listing and output."""
    records: Counter[str] = Counter()
    entries: dict[str, Entry] = {}
    torn: list[str] = []
    for shard in shards_of(output):
        ledger = read_ledger(output.below(shard.folder), repair=False)
        records.update(ledger.entries.keys())
        entries |= ledger.entries
        torn += (f"{shard.folder}/{part}" for part in ledger.repaired)
    now = {item.id: item.fingerprint for item in items}
    return Verdict(
        total=len(items),
        missing=sorted(now.keys() - entries.keys()),
        twice=sorted(item_id for item_id, count in records.items() if count > 1),
        unknown=sorted(entries.keys() - now.keys()),
        changed=sorted(item_id for item_id in now.keys() & entries.keys() if entries[item_id].fingerprint != now[item_id]),
        failed=sorted(item_id for item_id in entries if entries[item_id].failed),
        torn=torn,
    )


def merged(output: Storage) -> bytes:
    """All records as one JSON Lines text, ordered by id; the whole is held in memory."""
    records = [record for shard in shards_of(output) for record in records_of(output.below(shard.folder))]
    return b"".join(record.line() for record in sorted(records, key=lambda record: record.id))
