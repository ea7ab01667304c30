"""What the parts of one running front share."""

import asyncio
import time
from typing import Protocol

from components.core.front import MIB
from serving.front.admission import ByteBudget, Gate
from serving.front.metrics import FrontMetrics
from serving.front.settings import FrontSettingsSpec
from serving.front.triton import Answer, Call

# Readiness is asked by kubelet and people alike; the model is asked once in this time.
READY_CACHE_SECONDS = 1.0
READY_TIMEOUT_SECONDS = 2.0


class Model(Protocol):
    """What a front asks of the model behind it."""

    @property
    def largest_batch(self) -> int: ...

    async def infer(self, files: list[bytes], call: Call) -> Answer: ...

    async def ready(self, seconds: float) -> bool: ...

    async def close(self) -> None: ...


class Front:
    """Limits, counters and the model of one front; made inside its event loop.

    `draining` is set at SIGTERM: readiness is off from then on, and what could go on for long comes to its end.
    """

    def __init__(self, settings: FrontSettingsSpec, model: Model) -> None:
        limits = settings.limits
        self.settings, self.limits, self.model = settings, limits, model
        self.gate = Gate(limits.concurrency, limits.max_waiting)
        self.streams = Gate(limits.batch_streams, 0)
        self.memory = ByteBudget(settings.body_memory_mib * MIB)
        # Items of batches wait, for as long as a receiver does not read; a body of one file is refused when there is no room for it.
        self.stream_memory = ByteBudget(self.memory.total // 2, within=self.memory)
        self.metrics = FrontMetrics(settings.p99_ms)
        self.draining = asyncio.Event()
        self._ready_until = 0.0
        self.metrics.watch("front_in_flight", "Requests at the model.", lambda: self.gate.in_flight)
        self.metrics.watch("front_waiting", "Requests that wait, or whose body is on its way.", lambda: self.gate.waiting)
        self.metrics.watch("front_batch_streams", "Batch requests under way.", lambda: self.streams.seats)
        self.metrics.watch("front_body_bytes", "Bytes of bodies that are held.", lambda: self.memory.held)

    async def unready_because(self) -> str | None:
        """Why no request should come here; None when all is well."""
        if self.draining.is_set():
            return "this pod is on its way out"
        if time.monotonic() < self._ready_until:
            return None
        if not await self.model.ready(READY_TIMEOUT_SECONDS):
            return f"model {self.settings.model.name!r} is not ready"
        self._ready_until = time.monotonic() + READY_CACHE_SECONDS
        return None
