"""A run: items in, batches in flight, records in parts; whatever happens, what was stored stays and nothing is stored twice."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from serving.batch.asking import Asker, Loaded, StoppedError
from serving.batch.errors import BatchError, ReadError
from serving.batch.ledger import Ledger
from serving.batch.progress import Progress
from serving.batch.records import Record
from serving.batch.storage import Item, Lock, Storage, batches

UNREADABLE = "UNREADABLE"
TOO_LARGE = "TOO_LARGE"
MIB = 1024 * 1024
# What a request holds beside the items and their lengths: names, shapes, parameters. A gateway limits the whole.
ENVELOPE_BYTES = 4096


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Bounds of a run. `max_failed` ends a run whose model fails everything."""

    max_batch: int
    in_flight: int = 4
    batch_mib: int = 16
    item_mib: int = 256
    part_items: int = 500
    part_seconds: float = 10.0
    max_failed: int = 1_000
    report_seconds: float = 5.0


class Run:
    """One run over inputs of `source`; `stop` lets what is in flight end and stores it."""

    def __init__(self, source: Storage, ledger: Ledger, lock: Lock, asker: Asker, limits: Limits, progress: Progress) -> None:
        self._source, self._ledger, self._lock, self._asker, self._limits, self._progress = source, ledger, lock, asker, limits, progress
        self._kept: list[Record] = []
        self._suspects: list[Loaded] = []
        # One thread: parts are stored one after the other, also when a task that waits for one is cancelled.
        self._store_thread = ThreadPoolExecutor(1, "parts")

    def stop(self) -> None:
        self._asker.stopping.set()

    async def do(self, items: Sequence[Item], say: Callable[[str], None]) -> bool:
        """Ask about all items; False when it was stopped before. Raises BatchError (LockError, OutageError) after storing what was answered."""
        planned = batches(items, self._limits.max_batch, self._limits.batch_mib * MIB - ENVELOPE_BYTES)
        try:
            await self._together([self._work(planned) for _ in range(self._limits.in_flight)], say)
            await self._together([self._ask_suspects()], say)
        finally:
            await self._store()
            self._store_thread.shutdown()
            say(self._progress.line())
        return not self._asker.stopping.is_set()

    async def _together(self, works: Sequence[Coroutine[Any, Any, None]], say: Callable[[str], None]) -> None:
        """Until all works are done, or anything fails; what then still runs is cancelled."""
        unfinished = {asyncio.create_task(work) for work in works}
        beside = {asyncio.create_task(self._store_in_time()), asyncio.create_task(self._report(say))}
        everything = unfinished | beside
        try:
            while unfinished:
                done, _ = await asyncio.wait(unfinished | beside, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
                unfinished -= done
        finally:
            for task in everything:
                task.cancel()
            await asyncio.gather(*everything, return_exceptions=True)

    async def _work(self, planned: Iterator[list[Item]]) -> None:
        for batch in planned:
            loaded = [pair for item in batch if (pair := await self._load(item)) is not None]
            if self._asker.stopping.is_set():
                return
            if not loaded:
                continue
            try:
                records, suspects = await self._asker.ask(loaded)
            except StoppedError:
                return
            self._suspects += suspects
            await self._keep(records)
            if self._progress.failed + len(self._suspects) > self._limits.max_failed:
                raise BatchError(
                    f"more than {self._limits.max_failed} items failed",
                    hint="see the errors in the output; correct model or inputs, then run again with --retry-failed, or raise --max-failed",
                )

    async def _ask_suspects(self) -> None:
        for suspect in self._suspects:
            if self._asker.stopping.is_set():
                return
            try:
                await self._keep([await self._asker.ask_alone(suspect)])
            except StoppedError:
                return

    async def _load(self, item: Item) -> Loaded | None:
        """The item with its content, or None after recording why there is none."""
        if item.size > self._limits.item_mib * MIB - ENVELOPE_BYTES:
            await self._keep([Record.failed(item, TOO_LARGE, f"{item.size} bytes do not fit into a request of {self._limits.item_mib} MiB")])
            return None
        try:
            return item, await asyncio.to_thread(self._source.read, item)
        except ReadError as error:
            await self._keep([Record.failed(item, UNREADABLE, str(error))])
            return None

    async def _keep(self, records: Sequence[Record]) -> None:
        """Keep for the next part; who fills it waits until it is stored, so that a slow store holds the workers back."""
        self._kept += records
        if len(self._kept) >= self._limits.part_items:
            await self._store()

    async def _store(self) -> None:
        kept, self._kept = self._kept, []
        if not kept:
            return
        try:
            await asyncio.get_running_loop().run_in_executor(self._store_thread, self._append, kept)
        except BaseException:
            # Whether it was stored or not: the ledger takes no id twice.
            self._kept = kept + self._kept
            raise

    def _append(self, records: list[Record]) -> None:
        self._lock.check()
        stored = self._ledger.append(records)
        failed = sum(record.error is not None for record in stored)
        self._progress.add(answered=len(stored) - failed, failed=failed)

    async def _store_in_time(self) -> None:
        while True:
            await asyncio.sleep(self._limits.part_seconds)
            await self._store()

    async def _report(self, say: Callable[[str], None]) -> None:
        while True:
            await asyncio.sleep(self._limits.report_seconds)
            say(self._progress.line())
