"""Kubernetes objects of the HTTP front of a model, as plain dicts."""

from dataclasses import dataclass
from typing import Any

from components import labels
from components.core.model_identity import ModelIdentity
from components.core.pods import CONTAINER_SECURITY, TOPOLOGY_KEYS, cpu_quantity, pod_security, spread
from components.front.spec import FrontSpec
from components.naming import content_hash, k8s_name
from serving.contract import FRONT_LIVE_PATH, FRONT_METRICS_PORT, FRONT_PORT, FRONT_READY_PATH, GROUP_ID, USER_ID

CONTAINER = "front"
MODULE = "serving.front"
SETTINGS_FILE = "front.json"
SETTINGS_PATH = "/etc/front"
HTTP_PORT_NAME = "http-front"
METRICS_PORT_NAME = "http-metrics"
# From SIGTERM until connections are refused: until proxies have learnt that the pod takes no new requests.
DRAIN_SECONDS = 5
# From the end of the longest request to SIGKILL.
STOP_MARGIN_SECONDS = 10
REVISION_HISTORY = 2
# Python starts in a second or two; a busy node may take many times that.
START_SECONDS = 60
STARTUP_PERIOD = 1


@dataclass(frozen=True, kw_only=True)
class FrontPlan:
    """A front, planned; `settings` is the text that the process reads."""

    identity: ModelIdentity
    spec: FrontSpec
    settings: str

    @property
    def config_map(self) -> str:
        """Named after the content, so that a change makes a new object and rolls the pods (pulumi/pulumi#2167)."""
        return k8s_name(self.identity.front, "config", content_hash(self.settings))

    @property
    def grace_period(self) -> int:
        return DRAIN_SECONDS + int(self.spec.timeout_seconds) + 1 + STOP_MARGIN_SECONDS


def build_service_account(plan: FrontPlan) -> dict[str, Any]:
    """Identity of the pods; it may do nothing, and no token is mounted."""
    return {"metadata": _metadata(plan, plan.identity.front), "automountServiceAccountToken": False}


def build_service(plan: FrontPlan) -> dict[str, Any]:
    """Service over the front's pods; the route of the model leads to it."""
    ports = ((HTTP_PORT_NAME, FRONT_PORT), (METRICS_PORT_NAME, FRONT_METRICS_PORT))
    return {
        "metadata": _metadata(plan, plan.identity.front),
        "spec": {
            "type": "ClusterIP",
            "selector": labels.front_selector(plan.identity.name),
            "ports": [{"name": name, "port": port, "targetPort": name, "appProtocol": "http", "protocol": "TCP"} for name, port in ports],
        },
    }


def build_config_map(plan: FrontPlan) -> dict[str, Any]:
    """What the process reads when it starts; immutable, because its name changes with its content."""
    return {"metadata": _metadata(plan, plan.config_map), "data": {SETTINGS_FILE: plan.settings}, "immutable": True}


def build_disruption_budget(plan: FrontPlan) -> dict[str, Any]:
    """One pod at a time leaves for a node drain; one that is not ready holds nothing up."""
    return {
        "metadata": _metadata(plan, plan.identity.front),
        "spec": {
            "maxUnavailable": 1,
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
            "selector": {"matchLabels": labels.front_selector(plan.identity.name)},
        },
    }


def build_deployment(plan: FrontPlan, image: Any) -> dict[str, Any]:
    """Deployment of the front. `image` may be unresolved, it is only put in its place."""
    selector = labels.deployment_selector(plan.identity.front)
    return {
        "metadata": _metadata(plan, plan.identity.front),
        "spec": {
            "replicas": plan.spec.replicas,
            "selector": {"matchLabels": selector},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "revisionHistoryLimit": REVISION_HISTORY,
            "template": {"metadata": {"labels": {**labels.front(plan.identity.name), **selector}}, "spec": _pod(plan, image)},
        },
    }


def _pod(plan: FrontPlan, image: Any) -> dict[str, Any]:
    return {
        "serviceAccountName": plan.identity.front,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": plan.grace_period,
        "securityContext": pod_security(USER_ID, GROUP_ID),
        "topologySpreadConstraints": [spread(key, labels.front_selector(plan.identity.name)) for key in TOPOLOGY_KEYS],
        "containers": [_container(plan, image)],
        "volumes": [{"name": "settings", "configMap": {"name": plan.config_map}}],
    }


def _container(plan: FrontPlan, image: Any) -> dict[str, Any]:
    """No pre-stop delay: the process itself goes on serving after SIGTERM, unready, for DRAIN_SECONDS."""
    memory = f"{plan.spec.memory_mib}Mi"
    return {
        "name": CONTAINER,
        "image": image,
        "args": [MODULE, f"{SETTINGS_PATH}/{SETTINGS_FILE}"],
        "ports": [
            {"name": HTTP_PORT_NAME, "containerPort": FRONT_PORT, "protocol": "TCP"},
            {"name": METRICS_PORT_NAME, "containerPort": FRONT_METRICS_PORT, "protocol": "TCP"},
        ],
        "startupProbe": _probe(FRONT_LIVE_PATH, period=STARTUP_PERIOD, failures=START_SECONDS // STARTUP_PERIOD),
        "livenessProbe": _probe(FRONT_LIVE_PATH, period=10, failures=3),
        "readinessProbe": _probe(FRONT_READY_PATH, period=5, failures=2),
        "resources": {
            "requests": {"cpu": cpu_quantity(plan.spec.cpu_request), "memory": memory},
            "limits": {"cpu": cpu_quantity(plan.spec.cpu_limit), "memory": memory},
        },
        "securityContext": CONTAINER_SECURITY,
        "volumeMounts": [{"name": "settings", "mountPath": SETTINGS_PATH, "readOnly": True}],
    }


def _probe(path: str, *, period: int, failures: int) -> dict[str, Any]:
    # Readiness asks the model, for at most two seconds.
    return {"httpGet": {"path": path, "port": HTTP_PORT_NAME}, "periodSeconds": period, "timeoutSeconds": 5, "failureThreshold": failures}


def _metadata(plan: FrontPlan, name: str) -> dict[str, Any]:
    return {"name": name, "namespace": plan.identity.namespace, "labels": labels.front(plan.identity.name)}
