"""Service level objective of a model: the one source of thresholds for alerts, scalers, canary analysis and the load gate."""

from typing import Annotated

from pydantic import Field

from components.core.spec import Spec


class SloSpec(Spec):
    """What a model promises at the gateway."""

    p99_ms: Annotated[float, Field(gt=0, le=600_000, description="99th percentile of the request latency, in milliseconds.")]
    error_ratio: Annotated[float, Field(gt=0, lt=1, description="Highest ratio of failed to all requests.")] = 0.01
    throughput_rps: Annotated[float | None, Field(gt=0, description="Lowest sustained requests per second; absent: no promise.")] = None


LADDER_MS = (0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000)


def bucket_edges_ms(p99_values_ms: list[float]) -> list[float]:
    """Histogram bucket edges, in ms, such that every objective is itself an edge and has a close neighbour on both sides.

    A quantile is interpolated inside one bucket, so the error of a percentile near the objective is at most the width of the buckets beside it:
    the neighbours stand at 0.8 and 1.25 times the objective. The rest is LADDER_MS.
    """
    edges = set(LADDER_MS)
    for p99 in p99_values_ms:
        edges |= {round(p99 * 0.8, 3), float(p99), round(p99 * 1.25, 3)}
    return sorted(edges)
