"""How many pods a rolling update may add or take away, so that it can always go on."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class ReplicaRange:
    """How many replicas a Deployment may have; `fixed` is None when a scaler owns the number."""

    minimum: int
    maximum: int
    fixed: int | None = None

    @classmethod
    def of(cls, replicas: int) -> "ReplicaRange":
        """Pulumi owns the number."""
        return cls(minimum=replicas, maximum=replicas, fixed=replicas)

    @classmethod
    def scaled(cls, minimum: int, maximum: int) -> "ReplicaRange":
        """A scaler owns the number, between these two."""
        return cls(minimum=minimum, maximum=maximum)


@dataclass(frozen=True)
class Demand:
    """Slots that one Deployment takes at its largest."""

    replicas: int
    slots_per_replica: int


@dataclass(frozen=True)
class Surge:
    """`rollingUpdate` of a Deployment, and what its owner should know about it."""

    max_surge: int
    max_unavailable: int
    warning: str | None = None


# Without GPUs nothing is scarce: one pod more, none less.
CPU_SURGE = Surge(max_surge=1, max_unavailable=0)


def plan_surge(own: Demand, others: Sequence[Demand], nodes: int, node_slots: int) -> Surge:
    """Rolling update of `own` in a pool of at most `nodes` nodes with `node_slots` slots each, beside the Deployments `others`.

    The default (one more pod, none less) waits for ever for a slot that nobody frees when all are taken. A new pod is allowed beside the old
    ones only if it fits however the scheduler has spread the pods.
    """
    fitting = min(_spare_pods(own, others, nodes, node_slots), own.replicas)
    if fitting >= 1:
        return Surge(max_surge=fitting, max_unavailable=0)
    downtime = "no slot is free at the pool's largest size and there is one replica: every update stops the model until the new pod is ready"
    return Surge(max_surge=0, max_unavailable=1, warning=downtime if own.replicas == 1 else None)


def _spare_pods(own: Demand, others: Sequence[Demand], nodes: int, node_slots: int) -> int:
    """Pods of `own` that fit beside all others, in the worst case.

    A node with `used` slots still holds floor((node_slots - used) / size) pods, which is at least floor(node_slots / size) minus the sum of
    ceil(s / size) over its pods of s slots; summed over the nodes, the bound does not depend on which pod is where.
    """
    size = own.slots_per_replica
    taken = sum(demand.replicas * -(-demand.slots_per_replica // size) for demand in (own, *others))
    return nodes * (node_slots // size) - taken
