"""One request over gRPC, over HTTP with binary tensors and over HTTP with JSON; and one version against another."""

from collections.abc import Sequence

from loadtests.payloads import Document, Signature, http_json
from loadtests.target import Target
from tools.bench.results import Figure, figures_of
from tools.bench.serving_site import grpc, http, open_loop
from tools.triton_process import TritonProcess

PERCENTS = (50, 99)


def protocols(triton: TritonProcess, signature: Signature, document: Document) -> tuple[Target, ...]:
    """The same request three ways, gRPC first; `document` must be UTF-8 text, all that JSON can carry."""
    size = f"{len(document.content) / 1024:g} KiB"
    return (
        grpc(triton, f"gRPC, {size}", signature, document),
        http(triton, f"binary HTTP, {size}", signature, document),
        http(triton, f"JSON, {size}", signature, document, form=http_json),
    )


def compare(targets: Sequence[Target], *, rate: float, seconds: float, rounds: int) -> tuple[Figure, ...]:
    """Latencies of all targets in ms, counted from the real departure, and the ratio of each to the first; they take turns at `rate` in all."""
    first, *others = targets
    ratios, times = [], []
    for _ in range(rounds):
        report = open_loop(targets, rate, seconds)
        parts = {target.name: report.target(target.name) for target in targets}
        ratios.append(
            {
                f"{other.name} / {first.name}, p{percent}": parts[other.name].service_ms(percent) / parts[first.name].service_ms(percent)
                for other in others
                for percent in PERCENTS
            }
        )
        times.append({f"{name}, p{percent}": part.service_ms(percent) for name, part in parts.items() for percent in PERCENTS})
    return (*figures_of(ratios, ""), *figures_of(times, "ms"))
