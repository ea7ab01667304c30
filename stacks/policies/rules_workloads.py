"""Rules about workloads: what every pod template of ours must say outright, because what it leaves out Kubernetes fills in with less.

After the restricted Pod Security Standard (kubernetes.io, "Pod Security Standards"), and beyond it: no token of the API server, a root file system
that nobody writes to, requests and limits of memory, images that are named exactly.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pulumi_policy import ReportViolation, ResourceValidationArgs, ResourceValidationPolicy

# Where the pod template of each kind is.
TEMPLATES = {
    "Deployment": ("template", "spec"),
    "StatefulSet": ("template", "spec"),
    "DaemonSet": ("template", "spec"),
    "ReplicaSet": ("template", "spec"),
    "Job": ("template", "spec"),
    "CronJob": ("jobTemplate", "spec", "template", "spec"),
    "Pod": (),
}
GROUPS = ("apps/", "batch/", "core/")
# Charts bring workloads whose templates are not ours, and node agents need what others must not have.
EXEMPT_NAMESPACES = ("istio-system", "inference-gateway", "kube-system")
# A digest, or a tag that is not the one everybody moves.
EXACT_IMAGE = re.compile(r"[^\s@]+(@sha256:[0-9a-f]{64}|:(?!latest$)[\w][\w.-]*)")


def pod_spec(resource_type: str, props: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The pod of a workload, from its Pulumi type token (`kubernetes:apps/v1:Deployment`) and properties; None for anything else and where exempt."""
    _, _, tail = resource_type.partition(":")
    api, _, kind = tail.rpartition(":")
    if kind not in TEMPLATES or not api.startswith(GROUPS) or (props.get("metadata") or {}).get("namespace") in EXEMPT_NAMESPACES:
        return None
    spec = props.get("spec") or {}
    for key in TEMPLATES[kind]:
        spec = spec.get(key) or {}
    return spec if isinstance(spec, Mapping) else {}


def workload_violations(pod: Mapping[str, Any]) -> Iterator[str]:
    """One sentence per thing that a pod leaves open; `pod` is its spec."""
    yield from _pod_faults(pod)
    containers = [*(pod.get("initContainers") or ()), *(pod.get("containers") or ())]
    if not containers:
        yield "has no container"
    for container in containers:
        where = f"container {container.get('name', '?')!r}"
        yield from (f"{where}: {fault}" for fault in (*_security_faults(pod, container), *_resource_faults(container), *_image_faults(container)))


def _pod_faults(pod: Mapping[str, Any]) -> Iterator[str]:
    if pod.get("automountServiceAccountToken") is not False:
        yield "mounts a token of the API server; write automountServiceAccountToken: false"
    for key in ("hostNetwork", "hostPID", "hostIPC"):
        if pod.get(key):
            yield f"{key} gives it what is the node's; remove it"
    for volume in pod.get("volumes") or ():
        if "hostPath" in volume:
            yield f"volume {volume.get('name', '?')!r} is a folder of the node; use another kind of volume"


def _security_faults(pod: Mapping[str, Any], container: Mapping[str, Any]) -> Iterator[str]:
    """What a container says wins over what its pod says."""
    own = container.get("securityContext") or {}
    both = {**(pod.get("securityContext") or {}), **own}
    if both.get("runAsNonRoot") is not True:
        yield "may run as root; write runAsNonRoot: true"
    if (both.get("seccompProfile") or {}).get("type") not in {"RuntimeDefault", "Localhost"}:
        yield "may make every system call; write seccompProfile.type: RuntimeDefault"
    if own.get("allowPrivilegeEscalation") is not False or own.get("privileged"):
        yield "may gain privileges; write allowPrivilegeEscalation: false"
    if own.get("readOnlyRootFilesystem") is not True:
        yield "may write to its root file system; write readOnlyRootFilesystem: true"
    capabilities = own.get("capabilities") or {}
    if "ALL" not in (capabilities.get("drop") or ()) or set(capabilities.get("add") or ()) - {"NET_BIND_SERVICE"}:
        yield "keeps capabilities; write capabilities.drop: [ALL]"


def _resource_faults(container: Mapping[str, Any]) -> Iterator[str]:
    resources = container.get("resources") or {}
    missing = [
        f"{part}.{name}"
        for part, names in (("requests", ("cpu", "memory")), ("limits", ("memory",)))
        for name in names
        if name not in (resources.get(part) or {})
    ]
    if missing:
        yield f"says no {', '.join(missing)}; without them it takes what the node has"


def _image_faults(container: Mapping[str, Any]) -> Iterator[str]:
    image = container.get("image")
    # Not known before the update: the image of a preview may be an output.
    if isinstance(image, str) and not EXACT_IMAGE.fullmatch(image):
        yield f"image {image!r} means another one tomorrow; name a digest, or a tag that is not latest"


def _validate(args: ResourceValidationArgs, report_violation: ReportViolation) -> None:
    pod = pod_spec(args.resource_type, args.props)
    if pod is not None:
        for violation in workload_violations(pod):
            report_violation(violation, None)


POLICIES = (
    ResourceValidationPolicy(
        name="workloads-are-restricted",
        description="Every pod has a restricted security context, requests and limits, no token, and images that are named exactly.",
        validate=_validate,
    ),
)
