"""Many items in, one line of JSON per item out, in their order, in bounded memory."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from serving.front.faults import RequestFault
from serving.front.items import Item
from serving.front.state import Front
from serving.front.triton import Call

# What a model says of one item it says of a whole batch; asked one by one, the others get their answers.
SPLIT_ON = {HTTPStatus.BAD_REQUEST, HTTPStatus.BAD_GATEWAY}


@dataclass
class Tally:
    """What became of the items."""

    items: int = 0
    failed: int = 0


class BatchRun:
    """Reads items, joins what has arrived into requests of up to the model's largest batch, and writes the answers in the items' order.

    `in_flight` requests at once, each counted until its answers are written: a receiver who does not read stops the reading. An item is answered
    by its outputs or by its own error; requests that fail as a whole are not repeated, only those that the model refuses are taken apart.
    """

    def __init__(self, front: Front, call: Callable[[], Call], write: Callable[[bytes], Awaitable[None]]) -> None:
        self._front, self._call, self._write = front, call, write
        limits = front.limits
        self._slots = asyncio.Semaphore(limits.batch_in_flight)
        self._arrived: asyncio.Queue[Item | None] = asyncio.Queue(limits.batch_in_flight * front.model.largest_batch)
        self._asked: asyncio.Queue[asyncio.Task[bytes] | None] = asyncio.Queue()
        self._next: Item | None = None
        self._held = 0
        self.tally = Tally()
        self.fault: RequestFault | None = None

    async def run(self, items: AsyncIterator[Item]) -> None:
        """Until the last answer is written. A fault of the request as a whole ends the reading and stays in `fault`.

        What else reading or writing raises comes through as a group, and what is under way is cancelled.
        """
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._read(items))
                tasks.create_task(self._ask(tasks))
                while (task := await self._asked.get()) is not None:
                    await self._write(await task)
                    self._slots.release()
        finally:
            self._give_back(self._held)

    async def _read(self, items: AsyncIterator[Item]) -> None:
        try:
            async for item in items:
                if isinstance(item.content, bytes):
                    await self._front.stream_memory.take(len(item.content))
                    self._held += len(item.content)
                await self._arrived.put(item)
        except RequestFault as fault:
            self.fault = fault
        await self._arrived.put(None)

    async def _ask(self, tasks: asyncio.TaskGroup) -> None:
        """A request as soon as there is a slot and an item: few items do not wait for more, many fill the batch while they wait for the slot."""
        ended = False
        while not ended:
            await self._slots.acquire()
            batch, ended = await self._gather()
            if batch:
                self._asked.put_nowait(tasks.create_task(self._answer(batch)))
        self._asked.put_nowait(None)

    async def _gather(self) -> tuple[list[Item], bool]:
        """The items of the next request, and whether they are the last: at most a batch, at most the largest request's bytes."""
        batch: list[Item] = []
        room = self._front.limits.max_request_bytes
        while len(batch) < self._front.model.largest_batch:
            if batch and self._next is None and self._arrived.empty():
                break
            item = self._next or await self._arrived.get()
            self._next = None
            if item is None:
                return batch, True
            room -= _size(item)
            if batch and room < 0:
                self._next = item
                break
            batch.append(item)
        return batch, False

    async def _answer(self, batch: list[Item]) -> bytes:
        files = [item.content for item in batch if isinstance(item.content, bytes)]
        try:
            answers = iter(await self._infer(files) if files else [])
        finally:
            self._give_back(sum(map(len, files)))
        results = [item.content if isinstance(item.content, RequestFault) else next(answers) for item in batch]
        failed = sum(isinstance(result, RequestFault) for result in results)
        self.tally.items += len(batch)
        self.tally.failed += failed
        self._front.metrics.items.labels("failed").inc(failed)
        self._front.metrics.items.labels("answered").inc(len(batch) - failed)
        return b"".join(_line(item, result) for item, result in zip(batch, results, strict=True))

    async def _infer(self, files: list[bytes]) -> list[dict[str, Any] | RequestFault]:
        """The outputs of each file, or its fault."""
        try:
            answer = await self._front.model.infer(files, self._call())
        except RequestFault as fault:
            if len(files) > 1 and fault.status in SPLIT_ON:
                return [result for file in files for result in await self._infer([file])]
            return [fault] * len(files)
        return [{"version": answer.version, "outputs": outputs} for outputs in answer.items]

    def _give_back(self, count: int) -> None:
        self._held -= count
        self._front.stream_memory.give_back(count)


def _size(item: Item) -> int:
    return len(item.content) if isinstance(item.content, bytes) else 0


def _line(item: Item, result: dict[str, Any] | RequestFault) -> bytes:
    said = {"error": result.body()} if isinstance(result, RequestFault) else result
    name = {} if item.name is None else {"id": item.name}
    return json.dumps({"index": item.index, **name, **said}).encode() + b"\n"
