"""What a front counts, for Prometheus; seconds and bytes, as its naming rules ask."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector

from components.core.slo import bucket_edges_ms


class FrontMetrics:
    """The series of one front in a registry of its own.

    `seats` and the like are asked when they are scraped, so they cannot drift from what they speak of.
    """

    def __init__(self, p99_ms: float) -> None:
        self.registry = CollectorRegistry()
        edges = [edge / 1000 for edge in bucket_edges_ms([p99_ms])]
        self.requests = Counter("front_requests", "Requests answered.", ("route", "code"), registry=self.registry)
        self.seconds = Histogram(
            "front_request_duration_seconds", "From the first byte in to the last byte out.", ("route",), buckets=edges, registry=self.registry
        )
        self.model_seconds = Histogram(
            "front_model_duration_seconds", "Time of requests at the model, the way there and back included.", buckets=edges, registry=self.registry
        )
        self.rejected = Counter("front_rejected", "Requests refused to keep within limits.", ("reason",), registry=self.registry)
        self.items = Counter("front_batch_items", "Items of batch requests answered.", ("outcome",), registry=self.registry)
        ProcessCollector(registry=self.registry)

    def watch(self, name: str, help_text: str, value: Callable[[], float]) -> None:
        """Expose what `value` returns at the time of each scrape."""
        Gauge(name, help_text, registry=self.registry).set_function(value)
