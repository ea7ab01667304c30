"""Kubernetes objects of a Triton server, as plain dicts."""

from base64 import b64encode
from typing import Any

from components import labels
from components.core.model_identity import ModelIdentity, version_label
from components.inference.plan import VersionPlan
from components.inference.pod_manifest import build_pod, config_key, warmup_key
from components.inference.ports import SERVICE_PORTS, check_port_names

SKIP_AWAIT = {"pulumi.com/skipAwait": "true"}
# A pod counts as available once it has been ready this long, so that one that dies at its first request stops the rollout.
MIN_READY_SECONDS = 3
# Pulumi rolls back by applying the former text, so old ReplicaSets are only for reading.
REVISION_HISTORY = 2


def build_service_account(identity: ModelIdentity, annotations: dict[str, str] | None = None) -> dict[str, Any]:
    """Identity of the pods; it may do nothing in the cluster, and no token is mounted. `annotations` give it a role in the cloud."""
    metadata = _metadata(identity.name, identity, labels.model(identity.name))
    return {"metadata": {**metadata, **({"annotations": annotations} if annotations else {})}, "automountServiceAccountToken": False}


def build_service(identity: ModelIdentity, *, awaited: bool) -> dict[str, Any]:
    """Service over all versions of the model; routes tell them apart by subset."""
    check_port_names(SERVICE_PORTS)
    return {
        "metadata": _metadata(identity.service, identity, labels.model(identity.name), awaited=awaited),
        "spec": {"type": "ClusterIP", "selector": labels.model_selector(identity.name), "ports": [dict(port) for port in SERVICE_PORTS]},
    }


def build_config_map(plan: VersionPlan) -> dict[str, Any]:
    """config.pbtxt of every model of the version's server, and what they are warmed up with; immutable, because its name changes with its content."""
    manifest: dict[str, Any] = {
        "metadata": _metadata(plan.config_map, plan.identity, _version_labels(plan)),
        "data": {config_key(model): text for model, text in plan.configs.items()},
        "immutable": True,
    }
    if plan.warmup_files:
        manifest["binaryData"] = {warmup_key(file): b64encode(data).decode() for file, data in plan.warmup_files.items()}
    return manifest


def build_disruption_budget(plan: VersionPlan) -> dict[str, Any]:
    """One pod of the version at a time leaves for a node drain; one that is not ready holds nothing up."""
    return {
        "metadata": _metadata(plan.deployment, plan.identity, _version_labels(plan)),
        "spec": {
            "maxUnavailable": 1,
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
            "selector": {"matchLabels": {**labels.model_selector(plan.identity.name), labels.VERSION: version_label(plan.version)}},
        },
    }


def build_deployment(plan: VersionPlan, image: Any, apps_image: Any = None) -> dict[str, Any]:
    """Deployment of one version. The images may be unresolved, they are only put in their places.

    `spec.replicas` is absent when a scaler owns it: not null, not the minimum (pulumi/pulumi-kubernetes#2491).
    """
    surge = plan.placement.surge
    spec: dict[str, Any] = {
        "selector": {"matchLabels": labels.deployment_selector(plan.deployment)},
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge.max_surge, "maxUnavailable": surge.max_unavailable}},
        "progressDeadlineSeconds": plan.progress_deadline,
        "minReadySeconds": MIN_READY_SECONDS,
        "revisionHistoryLimit": REVISION_HISTORY,
        "template": {
            "metadata": {"labels": _version_labels(plan), "annotations": _pod_annotations(plan)},
            "spec": build_pod(plan, image, apps_image),
        },
    }
    if plan.replicas.fixed is not None:
        spec["replicas"] = plan.replicas.fixed
    return {"metadata": _metadata(plan.deployment, plan.identity, _version_labels(plan), awaited=plan.awaits_ready), "spec": spec}


def _pod_annotations(plan: VersionPlan) -> dict[str, str]:
    # Read by Istio's sidecar injector; without a sidecar it means nothing.
    return {"proxy.istio.io/config": f"terminationDrainDuration: {plan.drain.sidecar}s"}


def _version_labels(plan: VersionPlan) -> dict[str, str]:
    return labels.model_version(plan.identity.name, plan.deployment, version_label(plan.version))


def _metadata(name: str, identity: ModelIdentity, own_labels: dict[str, str], *, awaited: bool = True) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name, "namespace": identity.namespace, "labels": own_labels}
    if not awaited:
        metadata["annotations"] = SKIP_AWAIT
    return metadata
