"""What is to be asked: the listing against what is stored."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from serving.batch.errors import BatchError, ReadError
from serving.batch.ledger import Entry, Ledger
from serving.batch.storage import Item, Storage, shard_of

SETTINGS = "batch.json"
NAMED_MAX = 10


class Changed(StrEnum):
    """What to do about an answered input whose content is another now, or that is gone."""

    REFUSE = "refuse"
    KEEP = "keep"
    REDO = "redo"


@dataclass(frozen=True)
class Shard:
    """Part `index` of `count` of the inputs; every shard writes below a name of its own."""

    index: int = 0
    count: int = 1

    def __post_init__(self) -> None:
        if not 0 <= self.index < self.count:
            raise BatchError(f"shard {self.index}/{self.count} is none", hint="write INDEX/COUNT with INDEX from 0 to COUNT - 1")

    @property
    def folder(self) -> str:
        return f"{self.index}-of-{self.count}"

    def own(self, items: Iterable[Item]) -> list[Item]:
        return [item for item in items if shard_of(item.id, self.count) == self.index]


def fix_settings(output: Storage, settings: dict[str, object]) -> None:
    """Write what every client of this output must agree on; BatchError when an earlier one said something else."""
    content = json.dumps(settings, indent=1, sort_keys=True).encode()
    if output.create(SETTINGS, content):
        return
    before = read_settings(output)
    different = [
        f"{key} {before.get(key)!r} and now {settings.get(key)!r}" for key in sorted({*before, *settings}) if before.get(key) != settings.get(key)
    ]
    raise BatchError(f"{output} was begun with {', '.join(different)}", hint="name another output, or the same settings")


def read_settings(output: Storage) -> dict[str, object]:
    """What fix_settings wrote; BatchError when there is nothing."""
    found = [item for item in output.items() if item.id == SETTINGS]
    if not found:
        raise BatchError(f"{output} holds no batch output: {SETTINGS} is missing", hint="name the output of `serving.batch run`")
    try:
        settings = json.loads(output.read(found[0]))
    except (ValueError, ReadError) as error:
        raise BatchError(f"{output}: {SETTINGS} cannot be read: {error}", hint=f"restore {SETTINGS}, or name another output") from error
    if not isinstance(settings, dict):
        raise BatchError(f"{output}: {SETTINGS} holds no settings", hint=f"restore {SETTINGS}, or name another output")
    return settings


def open_items(items: list[Item], ledger: Ledger, changed: Changed, *, retry_failed: bool) -> list[Item]:
    """The items without a record, after taking out the records that are to be made anew. BatchError for changed inputs, if they are refused."""
    different, gone = differences(items, ledger.entries)
    if changed is Changed.REFUSE and (different or gone):
        raise BatchError(
            f"inputs are not those that were answered: {named('changed', different)}{'; ' if different and gone else ''}{named('gone', gone)}",
            hint="name another output, or pass --changed redo (ask again, forget the gone) or --changed keep (leave the answers)",
        )
    unwanted = {*different, *gone} if changed is Changed.REDO else set()
    ledger.drop(lambda item_id, entry: item_id in unwanted or (retry_failed and entry.failed))
    return [item for item in items if item.id not in ledger.entries]


def differences(items: Iterable[Item], entries: dict[str, Entry]) -> tuple[list[str], list[str]]:
    """Ids of the answered inputs that changed since, and of those that are gone."""
    now = {item.id: item.fingerprint for item in items}
    different = [item_id for item_id, entry in entries.items() if item_id in now and now[item_id] != entry.fingerprint]
    return sorted(different), sorted(entries.keys() - now.keys())


def named(what: str, ids: list[str]) -> str:
    """`2 changed (a, b)`; empty for none."""
    if not ids:
        return ""
    more = f", and {len(ids) - NAMED_MAX} more" if len(ids) > NAMED_MAX else ""
    return f"{len(ids)} {what} ({', '.join(ids[:NAMED_MAX])}{more})"
