"""Times of calls, taken in turns: within a round every variant has its calls before the next round begins, so that what the machine does hits all alike."""

import json
import statistics
import time
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from components.core.spec import Spec
from serving.optimise.adapters import Answerer

MS = 1_000
# One round of one batch size: for each variant the seconds of its calls, on the clock and on the processor.
Round = dict[str, list[tuple[float, float]]]


@dataclass(frozen=True)
class Plan:
    """How much is measured. `calls` are those of one variant in one round, by examples per call; a slow variant has `slow_calls`."""

    calls: Mapping[int, int]
    rounds: int
    slow_calls: int


class Latency(Spec):
    """Calls with `batch` examples each, pre- and post-processing included.

    Clock times say what happened on a machine that others use too. Examples per second are those of a core of one's own, and speed-ups over the reference
    compare the median processor times within a round; low and high are the extremes of the rounds.
    """

    batch: int
    calls: int
    p50_ms: float
    p99_ms: float
    cpu_p50_ms: float
    examples_per_second: float
    speedup: float
    speedup_low: float
    speedup_high: float


def run_round(answerers: Mapping[str, Answerer], contents: Sequence[bytes], calls: Mapping[str, int], number: int) -> Round:
    """Round `number`: each variant answers `contents` as often as `calls` says, after one call that does not count; who begins changes each round."""
    names = list(answerers)
    start = number % len(names)
    return {name: _calls(partial(answerers[name], contents), calls[name]) for name in (*names[start:], *names[:start])}


def _calls(call: Callable[[], object], count: int) -> list[tuple[float, float]]:
    call()
    times = []
    for _ in range(count):
        clock, processor = time.perf_counter(), time.process_time()
        call()
        times.append((time.perf_counter() - clock, time.process_time() - processor))
    return times


def take(
    folder: Path, answerers: Mapping[str, Answerer], contents: Sequence[bytes], batch: int, plan: Plan, slow: Container[str] = ()
) -> list[Round]:
    """All rounds of one batch size; those that `folder` holds already are not taken again."""
    rounds = []
    calls = {name: plan.slow_calls if name in slow else plan.calls[batch] for name in answerers}
    for number in range(plan.rounds):
        path = folder / f"{batch}-{plan.calls[batch]}-{number}.json"
        if not path.exists():
            first = number * batch % len(contents)
            chosen = [contents[(first + offset) % len(contents)] for offset in range(batch)]
            write_whole(path, json.dumps(run_round(answerers, chosen, calls, number)))
        rounds.append(json.loads(path.read_text(encoding="utf-8")))
    return rounds


def latency_of(name: str, reference: str, batch: int, rounds: Sequence[Round]) -> Latency:
    """What the rounds say of variant `name`."""
    walls = [wall for each in rounds for wall, _ in each[name]]
    processors = [processor for each in rounds for _, processor in each[name]]
    ratios = [_median_processor(each[reference]) / _median_processor(each[name]) for each in rounds]
    processor = statistics.median(processors)
    p50, p99 = np.percentile(walls, (50, 99), method="inverted_cdf")
    return Latency(
        batch=batch,
        calls=len(walls),
        p50_ms=float(p50) * MS,
        p99_ms=float(p99) * MS,
        cpu_p50_ms=processor * MS,
        examples_per_second=batch / processor,
        speedup=statistics.median(ratios),
        speedup_low=min(ratios),
        speedup_high=max(ratios),
    )


def _median_processor(times: Sequence[tuple[float, float]]) -> float:
    return statistics.median(processor for _, processor in times)


def write_whole(path: Path, text: str) -> None:
    """A file is there as a whole or not at all, so that an interrupted run can go on."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)
