"""Rules between what a stack says about a model's serving, its server, its routes and what was published."""

from __future__ import annotations

from typing import TYPE_CHECKING

from components.core.faults import Fault
from serving.model_config import ensemble_faults, part_serving, serving_faults
from stacks.models import manifest_of, parts_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from serving.model_config import ImageVariant
    from stacks.config import ModelSpec


def model_faults(name: str, model: ModelSpec, variant: ImageVariant) -> Iterator[Fault]:
    """Faults of a model whose versions are published."""
    own = [
        *_serving_faults(name, model, variant),
        *_gpu_faults(model),
        *_cache_faults(model),
        *_sequence_faults(model),
        *_delay_faults(model),
    ]
    for fault in own:
        yield Fault(("models", name, *fault.keys), fault.reason, fault.way_out)


def _serving_faults(name: str, model: ModelSpec, variant: ImageVariant) -> Iterator[Fault]:
    """Misfits of every model that the servers load, each with what of the stack's words concerns it."""
    served = manifest_of(name, model)
    parts = {part.name: part for version in model.versions for part, _ in parts_of(served, version)}
    yield from ensemble_faults(served, model)
    for part in parts.values():
        yield from serving_faults(part, part_serving(served, part, model), variant)


def _gpu_faults(model: ModelSpec) -> Iterator[Fault]:
    """Triton does not load a model whose instances are for GPUs that the pod does not have."""
    gpus = model.server.gpus_per_replica
    if model.instances.on_gpu and gpus == 0:
        way_out = "set server.gpusPerReplica and server.nodePool, or drop instances.kind"
        yield Fault(("instances", "kind"), "needs GPUs, and server.gpusPerReplica is 0", way_out)
        return
    highest = model.instances.largest_gpu
    if highest is not None and highest >= gpus:
        reason = f"GPU {highest} is none of the pod's: server.gpusPerReplica {gpus} gives it GPUs 0 to {gpus - 1}"
        yield Fault(("instances", "gpus"), reason, f"name GPUs up to {gpus - 1}, or raise server.gpusPerReplica to {highest + 1}")


def _cache_faults(model: ModelSpec) -> Iterator[Fault]:
    """Triton takes either half without the other and caches nothing."""
    if model.response_cache and model.server.response_cache_mib is None:
        way_out = "set server.responseCacheMib, the memory for the answers"
        yield Fault(("responseCache",), "needs server.responseCacheMib: a server without a cache stores nothing", way_out)
    if model.server.response_cache_mib is not None and not model.response_cache:
        reason = "reserves memory for a cache that the model does not use"
        yield Fault(("server", "responseCacheMib"), reason, "set responseCache: true, or drop server.responseCacheMib")


def _sequence_faults(model: ModelSpec) -> Iterator[Fault]:
    """The state of a sequence lies in one pod, and requests are spread over all of them."""
    if model.sequence is None or model.sequence.streamed:
        return
    way_out = "let clients send a whole sequence through one gRPC stream and set sequence.streamed: true, or"
    if model.server.replicas > 1:
        reason = f"contradicts sequence: the requests of one sequence would reach {model.server.replicas} pods, and its state lies in one"
        yield Fault(("server", "replicas"), reason, f"{way_out} set server.replicas: 1")
    if model.canary is not None:
        reason = "contradicts sequence: the requests of one sequence would be split between two versions"
        yield Fault(("canary",), reason, f"{way_out} remove canary")


def _delay_faults(model: ModelSpec) -> Iterator[Fault]:
    """A request that may wait as long as it may take misses the objective by waiting alone."""
    delay, objective = model.batching.max_queue_delay_microseconds, model.slo.p99_ms
    if delay >= objective * 1000:
        reason = f"lets a request wait {delay / 1000:g} ms for a batch, and slo.p99Ms is {objective:g}"
        yield Fault(("batching", "maxQueueDelayMicroseconds"), reason, f"lower it below {objective * 1000:g}, or raise slo.p99Ms")
