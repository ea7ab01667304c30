"""What dynamic batching gains: the same model with and without it, in one server.

Two answers, because "at equal P99" can be read in two ways. Closed loop: as many clients as the goal names, each waiting for its answer; the ratio of
the throughputs is a lower bound of that at equal P99 when the faster one has the lower P99 as well, and both are stated. Open loop: the highest
rate of evenly spaced requests at which the 99th percentile, counted from the planned time, stays within one and the same limit; even spacing
favours the side without batching, whose queue is empty until its rate is reached.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from loadtests.closed import ClosedPlan, drive
from loadtests.report import Report
from loadtests.target import Target
from tools.bench.results import Figure, figures_of
from tools.bench.serving_site import try_open_loop
from tools.errors import ToolError

CLIENTS = 64
# The search ends when the rate that holds and the one that does not are this close.
RESOLUTION = 1.1


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """One model both ways. `seconds` of the closed loop must be long enough for several answers to each of the clients."""

    name: str
    plain: Target
    batched: Target
    seconds: float
    rounds: int = 3
    search_seconds: float = 5.0


def closed_loop(pair: Comparison) -> tuple[Figure, ...]:
    """Throughput and P99 of both ways under CLIENTS clients, in turn, and the ratio of the throughputs."""
    plan = ClosedPlan(clients=CLIENTS, duration_seconds=pair.seconds, warm_up_seconds=pair.seconds / 4)
    ratios, rates, times = [], [], []
    for _ in range(pair.rounds):
        plain, batched = (drive(plan, target).raise_if_failed() for target in (pair.plain, pair.batched))
        ratios.append({f"{pair.name}, {CLIENTS} clients: throughput with batching / without": batched.throughput_rps / plain.throughput_rps})
        rates.append(
            {f"{pair.name}, {CLIENTS} clients, {way}": each.throughput_rps for way, each in (("with batching", batched), ("without", plain))}
        )
        times.append(
            {f"{pair.name}, {CLIENTS} clients, {way}, p99": each.latency_ms(99) for way, each in (("with batching", batched), ("without", plain))}
        )
    return (*figures_of(ratios, ""), *figures_of(rates, "items/s"), *figures_of(times, "ms"))


def held(report: Report, limit_ms: float) -> bool:
    """Whether a rate holds: nothing failed, the generator was on time, and the 99th percentile is within the limit."""
    return not report.failures and not report.invalid and report.latency_ms(99) <= limit_ms


def highest_rate(try_rate: Callable[[float], bool], low: float, high: float) -> float:
    """The highest rate that `try_rate` holds, to RESOLUTION; `low` must hold (else ToolError), `high` is not tried."""
    if not try_rate(low):
        raise ToolError(f"the server does not hold {low:g} requests/s within the limit", "end other programs on this machine")
    while high / low > RESOLUTION:
        middle = (low * high) ** 0.5
        low, high = (middle, high) if try_rate(middle) else (low, middle)
    return low


def _holds(target: Target, seconds: float, limit_ms: float, rate: float) -> bool:
    return held(try_open_loop([target], rate, seconds), limit_ms)


def open_loop(pair: Comparison, limit_ms: float, bounds: Sequence[tuple[float, float]]) -> tuple[Figure, ...]:
    """The highest rates at which the 99th percentile is at most `limit_ms`, without and with batching, and their ratio; `bounds` enclose each."""
    rates = []
    for target, (low, high) in zip((pair.plain, pair.batched), bounds, strict=True):
        rates.append(highest_rate(partial(_holds, target, pair.search_seconds, limit_ms), low, high))
    plain, batched = rates
    name = f"{pair.name}, highest rate with p99 at most {limit_ms:g} ms"
    return (
        *figures_of([{f"{name}: with batching / without": batched / plain}], ""),
        *figures_of([{f"{name}, with batching": batched, f"{name}, without": plain}], "items/s"),
    )
