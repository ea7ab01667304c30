"""Closed-loop traffic: a fixed number of clients, each of which sends its next request when the last one is answered.

It finds the throughput that a concurrency reaches. Its latencies are those at that concurrency and no others: clients that wait send nothing, so a
stall is felt once by each of them (an objective is judged with the open loop of `loadtests.engine`).
"""

import asyncio
import itertools
import time
from dataclasses import dataclass

from loadtests.errors import LoadError
from loadtests.plan import DURATION_MAX_SECONDS
from loadtests.samples import Answer, ErrorKind, Sample
from loadtests.statistics import percentile
from loadtests.target import Send, Target

CLIENTS_MAX = 1_000
MS = 1_000


@dataclass(frozen=True, kw_only=True)
class ClosedPlan:
    """What is answered in the `duration_seconds` after the `warm_up_seconds` counts."""

    clients: int
    duration_seconds: float
    warm_up_seconds: float = 1.0
    timeout_seconds: float = 60.0

    def __post_init__(self) -> None:
        hint = "correct the load plan"
        if not 0 < self.clients <= CLIENTS_MAX:
            raise LoadError(f"clients {self.clients} is outside 1 to {CLIENTS_MAX}", hint=hint)
        if not (self.duration_seconds > 0 and self.warm_up_seconds >= 0 and self.duration_seconds + self.warm_up_seconds <= DURATION_MAX_SECONDS):
            raise LoadError(
                f"{self.warm_up_seconds} s of warm-up and {self.duration_seconds} s are outside 0 to {DURATION_MAX_SECONDS} s together", hint=hint
            )
        if not self.timeout_seconds > 0:
            raise LoadError(f"timeout_seconds {self.timeout_seconds} is not above 0", hint=hint)


@dataclass(frozen=True)
class ClosedReport:
    """The requests that ended within the window of `seconds`."""

    samples: tuple[Sample, ...]
    seconds: float

    @property
    def throughput_rps(self) -> float:
        """Answers without an error, per second."""
        return sum(not sample.failed for sample in self.samples) / self.seconds

    def latency_ms(self, percent: float) -> float:
        """Percentile of the time from a request's departure to its complete answer, failed ones included."""
        return percentile([sample.service_time for sample in self.samples], percent) * MS

    def raise_if_failed(self) -> "ClosedReport":
        """The report itself; LoadError when a request failed or nothing ended within the window."""
        failed = [sample for sample in self.samples if sample.failed]
        if failed or not self.samples:
            reason = f"{failed[0].answer.error} {failed[0].answer.detail}" if failed else "no request ended within the window"
            raise LoadError(f"{len(failed)} of {len(self.samples)} requests failed: {reason}", hint="see the log of the server")
        return self


def drive(plan: ClosedPlan, target: Target) -> ClosedReport:
    """Run the clients and report. What they have in flight at the end is awaited and does not count."""
    return asyncio.run(_drive(plan, target))


async def _drive(plan: ClosedPlan, target: Target) -> ClosedReport:
    samples: list[Sample] = []
    turns = itertools.count()
    async with target.session() as send:
        begin = time.monotonic() + plan.warm_up_seconds
        end = begin + plan.duration_seconds

        async def client() -> None:
            while (sent := time.monotonic()) < end:
                answer = await _ask(send, next(turns), plan.timeout_seconds)
                samples.append(Sample(target.name, target.protocol, sent, sent, time.monotonic(), answer))

        async with asyncio.TaskGroup() as group:
            for _ in range(plan.clients):
                group.create_task(client())
    return ClosedReport(tuple(sample for sample in samples if begin <= sample.done < end), plan.duration_seconds)


async def _ask(send: Send, turn: int, timeout_seconds: float) -> Answer:
    try:
        async with asyncio.timeout(timeout_seconds):
            return await send(turn)
    except TimeoutError:
        return Answer(None, error=ErrorKind.TIMEOUT, detail=f"no answer within {timeout_seconds:g} s")
