"""Where a server's pods run: GPU slots, nodes, tolerations, and what a rolling update may do there."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from components.core.model_identity import ModelIdentity
from components.core.node_pool import GpuNodePoolSpec
from components.core.rollout import CPU_SURGE, Demand, Surge, plan_surge
from components.core.slots import slot_request, slots_per_node
from components.errors import ManifestError
from components.inference.spec import ModelVersion, ServerSpec


@dataclass(frozen=True, kw_only=True)
class PoolUse:
    """A node pool and what other models take of it."""

    name: str
    spec: GpuNodePoolSpec
    others: tuple[Demand, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Placement:
    """Parts of a pod and of its Deployment that depend on the pool."""

    resources: dict[str, str]
    node_selector: dict[str, str]
    tolerations: list[dict[str, str]]
    surge: Surge


CPU_PLACEMENT = Placement(resources={}, node_selector={}, tolerations=[], surge=CPU_SURGE)


def place(identity: ModelIdentity, server: ServerSpec, pool: PoolUse | None, version: ModelVersion, siblings: Sequence[ModelVersion]) -> Placement:
    """Placement of one version of a model; `siblings` are its other versions, which take slots of the same pool.

    ManifestError names model and pool when the pool cannot give the slots.
    """
    if server.node_pool is None:
        return CPU_PLACEMENT
    model = identity.name
    if pool is None or pool.name != server.node_pool:
        raise ManifestError(f"model {model!r}: node pool {server.node_pool!r} does not exist", hint="add it to nodePools, or correct server.nodePool")
    try:
        resources = slot_request(pool.spec, server.gpus_per_replica, server.mig_profile)
    except ValueError as error:
        raise ManifestError(
            f"model {model!r} on node pool {pool.name!r}: {error}", hint="change server.gpusPerReplica or server.migProfile, or choose another pool"
        ) from error
    return Placement(
        resources=resources,
        node_selector=dict(pool.spec.labels),
        tolerations=[_toleration(taint.key, taint.value, taint.effect.value) for taint in pool.spec.taints],
        surge=plan_surge(
            _demand(identity, server, version),
            (*pool.others, *(_demand(identity, server, sibling) for sibling in siblings)),
            pool.spec.max_nodes,
            slots_per_node(pool.spec, server.mig_profile),
        ),
    )


def _demand(identity: ModelIdentity, server: ServerSpec, version: ModelVersion) -> Demand:
    return Demand(version.replicas.maximum, server.gpus_per_replica, identity.deployment(version.version))


def _toleration(key: str, value: str, effect: str) -> dict[str, Any]:
    return {"key": key, "operator": "Equal", "value": value, "effect": effect}
