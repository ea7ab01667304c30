"""Back-pressure: who may come in, who is next at the model, and how much of bodies is held. One event loop, no threads."""

import asyncio
import math
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from http import HTTPStatus
from typing import Self

from serving.front.faults import RequestFault
from serving.front.settings import Priority

# Weight of the newest request in the mean time at the model: the last twenty or so decide.
NEWEST = 0.1
LONGEST_RETRY_AFTER_SECONDS = 60
PRIORITIES: tuple[Priority, ...] = ("realtime", "batch")


class Gate:
    """At most `concurrency` requests at the model and `waiting` more before it; the next one is refused with 429."""

    def __init__(self, concurrency: int, waiting: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.concurrency, self.waiting_limit, self._clock = concurrency, waiting, clock
        self.seats = 0
        self.in_flight = 0
        self.mean_seconds = 0.0
        self._queues: dict[Priority, deque[asyncio.Future[None]]] = {priority: deque() for priority in PRIORITIES}

    @property
    def waiting(self) -> int:
        """Requests that are in and not at the model, those whose body is still on its way included."""
        return self.seats - self.in_flight

    def retry_after(self) -> int:
        """Seconds until the requests that are in now have been served, by the mean time measured at the model; at least 1."""
        return max(1, min(LONGEST_RETRY_AFTER_SECONDS, math.ceil(self.seats * self.mean_seconds / self.concurrency)))

    @contextmanager
    def seat(self) -> Iterator[None]:
        """A place in the house; RequestFault 429 when all are taken."""
        if self.seats >= self.concurrency + self.waiting_limit:
            message = f"{self.concurrency} requests are at the model and {self.waiting_limit} wait, which is all this pod takes"
            raise RequestFault(HTTPStatus.TOO_MANY_REQUESTS, "queue_full", message, self.retry_after())
        self.seats += 1
        try:
            yield
        finally:
            self.seats -= 1

    @asynccontextmanager
    async def turn(self, priority: Priority) -> AsyncIterator[None]:
        """A place at the model: realtime before batch, within each in order. What ends well counts into the mean."""
        await self._wait(priority)
        started = self._clock()
        try:
            yield
            taken = self._clock() - started
            self.mean_seconds = taken if self.mean_seconds == 0 else (1 - NEWEST) * self.mean_seconds + NEWEST * taken
        finally:
            self._leave()

    async def _wait(self, priority: Priority) -> None:
        if self.in_flight < self.concurrency:
            self.in_flight += 1
            return
        place = asyncio.get_running_loop().create_future()
        self._queues[priority].append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.cancelled():
                with suppress(ValueError):
                    self._queues[priority].remove(place)
            else:
                # Its turn came in the very moment it left.
                self._leave()
            raise

    def _leave(self) -> None:
        """Hand the place to the next one; nobody waits while a place is free."""
        for queue in self._queues.values():
            while queue:
                place = queue.popleft()
                if not place.done():
                    place.set_result(None)
                    return
        self.in_flight -= 1


class ByteBudget:
    """Bytes of bodies that are held at once; what does not fit is refused, or waits where waiting does no harm.

    A budget `within` another one is a part of it: what it holds, the other one holds too.
    """

    def __init__(self, total: int, within: "ByteBudget | None" = None) -> None:
        self.total, self.held = total, 0
        self._within = within
        self.freed: asyncio.Event = asyncio.Event() if within is None else within.freed

    def try_take(self, count: int) -> bool:
        if self.held + count > self.total or not (self._within is None or self._within.try_take(count)):
            return False
        self.held += count
        return True

    async def take(self, count: int) -> None:
        """Wait until `count` bytes fit; `count` is at most `total`, else nothing would ever free enough."""
        while not self.try_take(count):
            self.freed.clear()
            await self.freed.wait()

    def give_back(self, count: int) -> None:
        self.held -= count
        if self._within is not None:
            self._within.give_back(count)
        self.freed.set()


class Allowance:
    """What one request holds of a budget, in a `with`: more as its body grows, nothing once it has been answered."""

    def __init__(self, budget: ByteBudget) -> None:
        self._budget, self._held = budget, 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._budget.give_back(self._held)

    def cover(self, total: int, retry_after: float) -> None:
        """Hold `total` bytes from now on; RequestFault 429 when there is no room for them at the moment."""
        more = max(0, total - self._held)
        if not self._budget.try_take(more):
            raise RequestFault(HTTPStatus.TOO_MANY_REQUESTS, "memory_full", "the bodies under way fill the memory of this pod", retry_after)
        self._held += more
