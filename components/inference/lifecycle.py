"""Times of a server's life: start, probes, drain, and how long an update may wait. Pure arithmetic; all values in seconds."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from components.core.rollout import ReplicaRange, Surge
from components.errors import ManifestError
from components.inference.ports import HTTP_PORT_NAME
from components.inference.spec import ModelFootprint, ServerSpec
from serving.contract import LIVE_PATH

# After the server's own end: closing sockets, the kubelet's housekeeping.
STOP_MARGIN = 5
# Python start and probe granularity on a busy node.
START_MARGIN = 30
# A GPU node from a cloud: instance, drivers and a server image of several GB. Without GPUs only the image.
GPU_PROVISIONING = 600
CPU_PROVISIONING = 120
STARTUP_PERIOD = 2


@dataclass(frozen=True)
class Drain:
    """The end of a pod: `pre_stop`, then up to `exit_timeout` for requests in flight; the sidecar outlives the server, the grace period both."""

    pre_stop: int
    exit_timeout: int
    sidecar: int
    grace_period: int


def plan_drain(server: ServerSpec) -> Drain:
    """Drain of a server; ManifestError when the grace period a person set cuts requests that maxRequestSeconds promises to finish.

    The sidecar gets SIGTERM together with the server's pre-stop hook, so its drain spans the server's whole end (triton-inference-server/server#6939).
    """
    span = server.pre_stop_seconds + server.max_request_seconds + STOP_MARGIN
    least = span + STOP_MARGIN
    grace = least if server.termination_grace_period_seconds is None else server.termination_grace_period_seconds
    if grace < least:
        raise ManifestError(
            f"terminationGracePeriodSeconds {grace} kills pods before a request of maxRequestSeconds {server.max_request_seconds} has ended: "
            f"{server.pre_stop_seconds} (preStopSeconds) + {server.max_request_seconds} + {2 * STOP_MARGIN} (margins) = {least}",
            hint=f"set terminationGracePeriodSeconds to at least {least}, drop it, or lower maxRequestSeconds",
        )
    return Drain(server.pre_stop_seconds, server.max_request_seconds, sidecar=span, grace_period=grace)


def load_seconds(server: ServerSpec, footprints: Sequence[ModelFootprint]) -> int:
    """Longest load of all models of a server that is no fault; the sum, because on a busy node one may load after the other."""
    budget = sum(footprint.load_budget_seconds for footprint in footprints)
    return budget if server.model_load_timeout_seconds is None else server.model_load_timeout_seconds


def build_probes(load: int, ready_path: str) -> dict[str, Any]:
    """Probes of the server container; `ready_path` asks for the served model alone.

    Triton opens its HTTP port after the first load, so the startup probe covers `load`; liveness never looks at readiness, which is false while a
    model loads and stays false when one is broken. Readiness is the model's own: another model that loads or fails takes no traffic from it
    (triton-inference-server/server#7014, #5940).
    """
    return {
        "startupProbe": _probe(LIVE_PATH, period=STARTUP_PERIOD, timeout=2, failures=math.ceil((load + START_MARGIN) / STARTUP_PERIOD)),
        "livenessProbe": _probe(LIVE_PATH, period=10, timeout=5, failures=3),
        "readinessProbe": _probe(ready_path, period=5, timeout=3, failures=2),
    }


def _probe(path: str, *, period: int, timeout: int, failures: int) -> dict[str, Any]:
    return {"httpGet": {"path": path, "port": HTTP_PORT_NAME}, "periodSeconds": period, "timeoutSeconds": timeout, "failureThreshold": failures}


def progress_deadline(server: ServerSpec, load: int, drain: Drain) -> int:
    """Longest time without a pod becoming ready that is no fault: the slot of an old pod, a node, the load."""
    default = CPU_PROVISIONING if server.node_pool is None else GPU_PROVISIONING
    provisioning = default if server.node_provisioning_seconds is None else server.node_provisioning_seconds
    return drain.grace_period + provisioning + load + START_MARGIN


def await_timeout(deadline: int, replicas: ReplicaRange, surge: Surge) -> int:
    """Longest rolling update that is no fault: each batch of pods may take the progress deadline."""
    batches = math.ceil(replicas.maximum / max(surge.max_surge, surge.max_unavailable))
    return deadline * max(batches, 1)


def awaits_ready(replicas: ReplicaRange) -> bool:
    """Whether an update may wait for ready pods: a Deployment that is meant to be at zero never has any (pulumi/pulumi-kubernetes#605)."""
    return replicas.minimum > 0
