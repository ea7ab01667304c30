"""How many pods a rolling update may add or take away, so that it can always go on."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache


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
    """Slots that one Deployment takes at its largest. `name` tells Deployments of a pool apart."""

    replicas: int
    slots_per_replica: int
    name: str = ""


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
    ones only if it fits however the scheduler has spread the pods, and while every other Deployment of the pool rolls too: one new image rolls
    all of them at once.
    """
    fitting = share_free_slots((*others, own), nodes, node_slots)[-1]
    if fitting >= 1:
        return Surge(max_surge=fitting, max_unavailable=0)
    downtime = "no slot is free at the pool's largest size and there is one replica: every update stops the model until the new pod is ready"
    return Surge(max_surge=0, max_unavailable=1, warning=downtime if own.replicas == 1 else None)


@lru_cache(maxsize=1024)
def share_free_slots(demands: tuple[Demand, ...], nodes: int, node_slots: int) -> tuple[int, ...]:
    """Surge pods of each Deployment of a pool, in the order given, such that all of them fit at the same time.

    The same whoever asks: the slots go round by size and name, the smallest Deployment first, which an update without a surge pod would hurt most.
    """
    surges = [0] * len(demands)
    order = sorted(range(len(demands)), key=lambda index: (demands[index].replicas, demands[index].name))
    given = True
    while given:
        given = False
        for index in order:
            if surges[index] < demands[index].replicas and _fits_with_one_more(index, demands, surges, nodes, node_slots):
                surges[index] += 1
                given = True
    return tuple(surges)


def _fits_with_one_more(index: int, demands: Sequence[Demand], surges: Sequence[int], nodes: int, node_slots: int) -> bool:
    """Whether every Deployment that has surge pods still finds room for all of them when the one at `index` gets one more."""
    pods = [demand.replicas + surge + (position == index) for position, (demand, surge) in enumerate(zip(demands, surges, strict=True))]
    sizes = {demand.slots_per_replica for position, demand in enumerate(demands) if surges[position] or position == index}
    return all(_spare_pods(size, demands, pods, nodes, node_slots) >= 0 for size in sizes)


def _spare_pods(size: int, demands: Sequence[Demand], pods: Sequence[int], nodes: int, node_slots: int) -> int:
    """Pods of `size` slots that fit beside all others, in the worst case; below 0 when they may not even fit themselves.

    A node with `used` slots still holds floor((node_slots - used) / size) pods, which is at least floor(node_slots / size) minus the sum of
    ceil(s / size) over its pods of s slots; summed over the nodes, the bound does not depend on which pod is where.
    """
    taken = sum(count * -(-demand.slots_per_replica // size) for demand, count in zip(demands, pods, strict=True))
    return nodes * (node_slots // size) - taken
