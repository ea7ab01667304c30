"""Open-loop traffic: requests leave at planned times, whatever the answers do, and every one is recorded.

    with Load(Plan(rate_rps=50, duration_seconds=60), [target]) as load:
        load.mark("change")
        ...
    report = load.report()

Requests take turns over the targets, so two targets compared in one run see the same moments. A run has a thread with an event loop for the
network and one that keeps the time: an event loop alone wakes up to 1 ms late, which would drown a gateway's share of the latency.
"""

import asyncio
import threading
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

from loadtests.errors import LoadError
from loadtests.plan import Plan
from loadtests.report import Report
from loadtests.samples import Answer, ErrorKind, Mark, Sample
from loadtests.target import Send, Target

FIRST_PHASE = "start"
# Time between opening the sessions and the first planned request, so that the first ones are not late.
LEAD_SECONDS = 0.05
# Beyond the last time-out, what is left of a run takes milliseconds.
GRACE_SECONDS = 10.0


class Load:
    """One run; `with` starts it and, on leaving, ends it early if it has not ended by itself."""

    def __init__(self, plan: Plan, targets: Sequence[Target]) -> None:
        if not targets or len({target.name for target in targets}) != len(targets):
            raise LoadError(f"targets {[target.name for target in targets]} must be at least one, with different names", hint="correct the targets")
        self._plan = plan
        self._targets = tuple(targets)
        self._samples: list[Sample] = []
        self._marks: list[Mark] = []
        self._window = (0.0, 0.0)
        self._stop = threading.Event()
        self._begun = threading.Event()
        self._fault: BaseException | None = None
        self._in_flight: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._run, name="load", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._begun.wait()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self._stop.set()
        self._thread.join(self._plan.timeout_seconds + GRACE_SECONDS)

    def mark(self, name: str) -> float:
        """From now on, planned requests belong to phase `name`. Returns the time of the mark."""
        mark = Mark(name, time.monotonic())
        self._marks.append(mark)
        return mark.at

    def finish(self) -> Report:
        """Wait for the planned end and report."""
        self._thread.join(self._plan.duration_seconds + self._plan.timeout_seconds + GRACE_SECONDS)
        return self.report()

    def report(self) -> Report:
        """What happened; only after the run ended (`finish`, or leaving the `with` block). Raises LoadError if the engine itself failed."""
        if self._thread.is_alive():
            raise LoadError("the load run has not ended", hint="call finish(), or leave the `with` block first")
        if self._fault is not None:
            raise LoadError(
                f"the traffic engine failed: {self._fault!r}", hint="this is a fault of the generator, not of the service"
            ) from self._fault
        return Report(
            plan=self._plan, samples=tuple(sorted(self._samples, key=lambda sample: sample.planned)), marks=tuple(self._marks), window=self._window
        )

    def _run(self) -> None:
        try:
            asyncio.run(self._drive())
        except BaseException as fault:  # noqa: BLE001 - handed over to the thread that asks for the report
            self._fault = fault
        finally:
            self._begun.set()

    async def _drive(self) -> None:
        async with AsyncExitStack() as stack:
            sends = [await stack.enter_async_context(target.session()) for target in self._targets]
            start = time.monotonic() + LEAD_SECONDS
            # Before any mark of the caller, who may set one as soon as the run has begun.
            self._marks.append(Mark(FIRST_PHASE, start - LEAD_SECONDS))
            self._begun.set()
            await asyncio.to_thread(self._pace, start, sends, asyncio.get_running_loop())
            # What the pacer handed over last becomes a task in this turn of the loop, before the wait below looks.
            await asyncio.sleep(0)
            self._window = (start, min(time.monotonic(), start + self._plan.duration_seconds))
            while self._in_flight:
                await asyncio.wait(self._in_flight)
        if self._fault is not None:
            raise self._fault

    def _pace(self, start: float, sends: Sequence[Send], loop: asyncio.AbstractEventLoop) -> None:
        """Hand each request to the loop at its planned time; late ones at once, so that a slow generator shows as lag instead of a lower rate."""
        for index, offset in enumerate(self._plan.offsets()):
            planned = start + offset
            wait = planned - time.monotonic()
            if self._stop.wait(wait) if wait > 0 else self._stop.is_set():
                return
            loop.call_soon_threadsafe(self._launch, index, planned, sends)
        self._stop.wait(max(0.0, start + self._plan.duration_seconds - time.monotonic()))

    def _launch(self, index: int, planned: float, sends: Sequence[Send]) -> None:
        turn, target = divmod(index, len(sends))
        if len(self._in_flight) >= self._plan.max_in_flight:
            self._record(target, planned, time.monotonic(), Answer(None, error=ErrorKind.NOT_SENT, detail="too many requests in flight"))
            return
        task = asyncio.get_running_loop().create_task(self._request(target, turn, planned, sends[target]))
        self._in_flight.add(task)
        task.add_done_callback(self._landed)

    def _landed(self, task: asyncio.Task[None]) -> None:
        self._in_flight.discard(task)
        if not task.cancelled() and (fault := task.exception()) is not None:
            self._fault = self._fault or fault
            self._stop.set()

    async def _request(self, target: int, turn: int, planned: float, send: Send) -> None:
        sent = time.monotonic()
        try:
            async with asyncio.timeout(self._plan.timeout_seconds):
                answer = await send(turn)
        except TimeoutError:
            answer = Answer(None, error=ErrorKind.TIMEOUT, detail=f"no answer within {self._plan.timeout_seconds:g} s")
        self._record(target, planned, sent, answer)

    def _record(self, target: int, planned: float, sent: float, answer: Answer) -> None:
        where = self._targets[target]
        self._samples.append(Sample(where.name, where.protocol, planned, sent, time.monotonic(), answer))
