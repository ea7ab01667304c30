"""What a window of counters says about latency: the arithmetic that queries must agree with. Pure; times in and out carry their unit."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

US_PER_MS = 1000


def sum_buckets(per_pod: Sequence[Mapping[float, float]]) -> dict[float, float]:
    """Cumulative buckets (upper edge -> observations at most that large) of a fleet: per edge the sum over the pods.

    A pod without an edge that others have counts there with its next lower one, as its observations below are below that edge too. Percentiles of
    a fleet come from these sums only: a mean of the pods' percentiles is none (triton-inference-server/server#7672).
    """
    edges = sorted({edge for pod in per_pod for edge in pod})
    return {edge: sum(max((count for own, count in pod.items() if own <= edge), default=0.0) for pod in per_pod) for edge in edges}


def quantile(buckets: Mapping[float, float], ratio: float) -> float | None:
    """The `ratio` quantile (0 to 1) in the buckets' unit, interpolated as PromQL's `histogram_quantile` does; None without observations.

    ValueError for a ratio outside 0 to 1 and for counts that fall, which are not cumulative. Above the last finite edge it is that edge.
    """
    edges = sorted(buckets)
    counts = [buckets[edge] for edge in edges]
    if not 0 <= ratio <= 1:
        raise ValueError(f"ratio {ratio:g} is outside 0 to 1")
    if any(later < earlier for earlier, later in pairwise(counts)):
        raise ValueError(f"bucket counts {counts} fall, so they are not cumulative")
    if not edges or counts[-1] == 0:
        return None
    rank = ratio * counts[-1]
    position = next(index for index, count in enumerate(counts) if count >= rank and count > 0)
    if math.isinf(edges[position]):
        return edges[position - 1] if position else None
    below = counts[position - 1] if position else 0.0
    floor = edges[position - 1] if position else min(0.0, edges[position])
    return floor + (edges[position] - floor) * (rank - below) / (counts[position] - below)


@dataclass(frozen=True, kw_only=True)
class CounterWindow:
    """How far Triton's counters rose in a window. `requests` are the successful ones, `executions` the runs of the model, `inferences` the items.

    Durations are sums over requests in microseconds; that of the queue lies inside that of the request (triton-inference-server/server#7692).
    """

    requests: float
    executions: float
    inferences: float
    request_us: float
    queue_us: float

    @property
    def mean_request_ms(self) -> float:
        """Per request, never per execution, which one batch of requests shares; 0 when there was none."""
        return _ratio(self.request_us / US_PER_MS, self.requests)

    @property
    def mean_queue_ms(self) -> float:
        """Part of `mean_request_ms`, not to be added to it; 0 without requests."""
        return _ratio(self.queue_us / US_PER_MS, self.requests)

    @property
    def mean_batch(self) -> float:
        """Items per run of the model; 0 when it did not run."""
        return _ratio(self.inferences, self.executions)


def _ratio(sum_: float, count: float) -> float:
    return sum_ / count if count else 0.0
