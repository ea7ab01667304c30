"""From a batch of items to a record for each: back-off while the server is busy or away, and the one bad item found among the good."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from serving.batch.errors import OutageError
from serving.batch.model import Answer, RefusedError
from serving.batch.records import Record
from serving.batch.storage import Item

Loaded = tuple[Item, bytes]
Sleep = Callable[[float], Awaitable[None]]
MESSAGE_MAX = 500


class Asked(Protocol):
    """What asking needs of a model."""

    async def ask(self, contents: Sequence[bytes]) -> Answer: ...

    async def is_ready(self) -> bool: ...


class StoppedError(Exception):
    """The run is to end; the batch stays unanswered."""


@dataclass(frozen=True, kw_only=True)
class Backoff:
    """Waits double from `first_seconds` to `longest_seconds`, each drawn between 0 and that (full jitter), so that clients do not return together.

    After `attempts` refusals in a row a batch is suspected, if the server answers others; when it has refused everybody for `outage_seconds`, the run ends.
    """

    first_seconds: float = 0.5
    longest_seconds: float = 30.0
    attempts: int = 8
    outage_seconds: float = 600.0

    def longest_wait(self, attempt: int) -> float:
        """Upper end of the wait after refusal number `attempt`, from 1."""
        return float(min(self.longest_seconds, self.first_seconds * 2 ** min(attempt - 1, 32)))


class Asker:
    """One for a run: it knows since when the server has refused everybody."""

    def __init__(self, model: Asked, backoff: Backoff, *, seed: int | None = None, sleep: Sleep = asyncio.sleep) -> None:
        self._model, self._backoff, self._sleep = model, backoff, sleep
        self._random = random.Random(seed)  # noqa: S311  (spreads waits, no secret)
        self._refused_since: float | None = None
        self._good: bytes | None = None
        self.stopping = asyncio.Event()

    async def ask(self, batch: Sequence[Loaded]) -> tuple[list[Record], list[Loaded]]:
        """Records of what was answered, and the items that were refused alone.

        A batch that is refused is halved until the item is found: one that makes a model raise fails everything that was sent with it.
        """
        try:
            answer = await self._insist([content for _, content in batch])
        except RefusedError:
            if len(batch) == 1:
                return [], list(batch)
            middle = len(batch) // 2
            records, suspects = await self.ask(batch[:middle])
            more_records, more_suspects = await self.ask(batch[middle:])
            return records + more_records, suspects + more_suspects
        self._good = min((content for _, content in batch), key=len)
        rows = zip(batch, answer.rows, strict=True)
        return [Record(id=item.id, fingerprint=item.fingerprint, version=answer.version, outputs=row) for (item, _), row in rows], []

    async def ask_alone(self, suspect: Loaded) -> Record:
        """The record of an item that was refused before. To be called while nothing else is asked: Triton may have put it into one batch with a bad one."""
        item, content = suspect
        try:
            answer = await self._insist([content])
        except RefusedError as refusal:
            return Record.failed(item, refusal.code, refusal.message[:MESSAGE_MAX])
        return Record(id=item.id, fingerprint=item.fingerprint, version=answer.version, outputs=answer.rows[0])

    async def _insist(self, contents: Sequence[bytes]) -> Answer:
        """The answer. RefusedError when the request itself is at fault, OutageError when the server is, StoppedError when the run is to end."""
        attempt = 0
        while True:
            try:
                return await self._once(contents)
            except RefusedError as refusal:
                if not refusal.transient:
                    raise
                attempt += 1
                await self._wait(attempt, refusal)
                if attempt >= self._backoff.attempts and await self._answers_others():
                    raise

    async def _once(self, contents: Sequence[bytes]) -> Answer:
        """The answer. The clock of an outage starts at the first refusal, not at the last answer: between those, nobody may have asked."""
        try:
            answer = await self._model.ask(contents)
        except RefusedError as refusal:
            if not refusal.transient:
                self._refused_since = None
            elif self._refused_since is None:
                self._refused_since = time.monotonic()
            raise
        self._refused_since = None
        return answer

    async def _answers_others(self) -> bool:
        """Whether the server answers a request that it has answered before, at this moment."""
        if self._good is None:
            return False
        try:
            await self._once([self._good])
        except RefusedError:
            return False
        return True

    async def _wait(self, attempt: int, refusal: RefusedError) -> None:
        """Back off, and on until the model is ready."""
        while True:
            silent = 0.0 if self._refused_since is None else time.monotonic() - self._refused_since
            if silent > self._backoff.outage_seconds:
                raise OutageError(
                    f"the server refuses everybody for {silent:.0f} s; the last refusal: {refusal.code} {refusal.message}"[:MESSAGE_MAX],
                    hint="once the server answers, run the same command again: it goes on from what is stored",
                )
            if self.stopping.is_set():
                raise StoppedError
            await self._sleep(self._random.uniform(0, self._backoff.longest_wait(attempt)))
            if await self._model.is_ready():
                return
