"""What every pod of ours has in common: the restricted Pod Security Standard, quantities as the API server stores them, spreading."""

from typing import Any

CONTAINER_SECURITY: dict[str, Any] = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}
TOPOLOGY_KEYS = ("topology.kubernetes.io/zone", "kubernetes.io/hostname")


def pod_security(user: int, group: int) -> dict[str, Any]:
    """Security context of a pod that runs as `user` and owns its volumes as `group`."""
    return {"runAsNonRoot": True, "runAsUser": user, "runAsGroup": group, "fsGroup": group, "seccompProfile": {"type": "RuntimeDefault"}}


def cpu_quantity(cores: float) -> str:
    """The form in which the API server stores it, so that nothing reads as a difference."""
    millicores = round(cores * 1000)
    return str(millicores // 1000) if millicores % 1000 == 0 else f"{millicores}m"


def spread(topology_key: str, selector: dict[str, str]) -> dict[str, Any]:
    """A wish, not a demand: one node must be able to run everything."""
    return {
        "maxSkew": 1,
        "topologyKey": topology_key,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": selector},
        "matchLabelKeys": ["pod-template-hash"],
    }
