"""The node-local model cache, as plain dicts.

Pods of the models may mount no host path (restricted Pod Security Standard), but they may mount a claim. A PersistentVolume of type hostPath without
node affinity is that folder on whatever node the pod runs; a DaemonSet outside their namespace gives it to their user, because the kubelet
makes it for root and sets no group on host paths.
"""

from collections.abc import Sequence
from itertools import product
from typing import Any

from components import labels
from components.core.model_repository import NodeCache
from components.core.node_pool import GpuNodePoolSpec
from serving.contract import GROUP_ID, USER_ID

# Host paths are allowed here everywhere; see the simulator of GPUs.
DAEMON_NAMESPACE = "kube-system"
FOLDER = "/cache"
AWAIT_TIMEOUT_SECONDS = 180


def build_cache_volume(cache: NodeCache, namespace: str) -> dict[str, Any]:
    """PersistentVolume bound to the one claim in `namespace`; what is cached stays when it goes."""
    return {
        "metadata": {"name": cache.volume(namespace), "labels": labels.common("model-cache")},
        "spec": {
            "capacity": {"storage": f"{cache.spec.size_gib}Gi"},
            "accessModes": ["ReadWriteMany"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": "",
            "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": namespace, "name": cache.claim},
            "hostPath": {"path": cache.spec.path, "type": "DirectoryOrCreate"},
        },
    }


def build_cache_claim(cache: NodeCache, namespace: str) -> dict[str, Any]:
    """The claim that pods mount."""
    return {
        "metadata": {"name": cache.claim, "namespace": namespace, "labels": labels.common("model-cache")},
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "resources": {"requests": {"storage": f"{cache.spec.size_gib}Gi"}},
            # Empty, not absent: no storage class may make another volume for it.
            "storageClassName": "",
            "volumeName": cache.volume(namespace),
        },
    }


def build_cache_daemon(
    cache: NodeCache, namespace: str, pool: GpuNodePoolSpec | None, image: Any, other_pools: Sequence[GpuNodePoolSpec] = ()
) -> dict[str, Any]:
    """DaemonSet that gives the folder to the models' user on every node of the pool. `image` may be unresolved.

    Without a pool: on every node that is in none of `other_pools`, as far as their labels tell.
    """
    name = cache.volume(namespace)
    own_labels = {**labels.common("model-cache"), labels.NAME: name}
    pod: dict[str, Any] = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "priorityClassName": "system-node-critical",
        "tolerations": [{"operator": "Exists"}],
        "terminationGracePeriodSeconds": 5,
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [_preparing(image)],
        "volumes": [{"name": "cache", "hostPath": {"path": cache.spec.path, "type": "DirectoryOrCreate"}}],
    }
    if pool is not None and pool.labels:
        pod["nodeSelector"] = dict(pool.labels)
    if pool is None and (terms := _outside(other_pools)):
        pod["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    return {
        "metadata": {"name": name, "namespace": DAEMON_NAMESPACE, "labels": own_labels},
        "spec": {
            "selector": {"matchLabels": labels.deployment_selector(name)},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}},
            "template": {"metadata": {"labels": own_labels}, "spec": pod},
        },
    }


def _preparing(image: Any) -> dict[str, Any]:
    return {
        "name": "prepare",
        "image": image,
        "args": ["serving.repository", "prepare", FOLDER, "--user", str(USER_ID), "--group", str(GROUP_ID), "--stay"],
        "resources": {"requests": {"cpu": "5m", "memory": "48Mi"}, "limits": {"cpu": "200m", "memory": "64Mi"}},
        # Root, because the kubelet makes the folder for root; of root's powers only that of giving it away.
        "securityContext": {
            "runAsUser": 0,
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"], "add": ["CHOWN"]},
        },
        "volumeMounts": [{"name": "cache", "mountPath": FOLDER}],
    }


def _outside(pools: Sequence[GpuNodePoolSpec]) -> list[dict[str, Any]]:
    """Node selector terms for the nodes of no pool. A node of a pool has all of its labels, so it is outside when one is absent or has another value.

    Terms are alternatives and the expressions of one hold together (Kubernetes documentation, "Node affinity"), so there is a term for each choice of one
    label per pool; NotIn holds for a node without the label too. A pool without labels cannot be told from other nodes.
    """
    choices = product(*(sorted(pool.labels.items()) for pool in pools if pool.labels))
    return [{"matchExpressions": [{"key": key, "operator": "NotIn", "values": [value]} for key, value in choice]} for choice in choices if choice]
