"""Values of Istio's charts `base` and `istiod`."""

from dataclasses import dataclass
from typing import Any

from components import labels
from components.addons.spec import IstioSpec
from components.errors import ManifestError

NAMESPACE = "istio-system"


@dataclass(frozen=True, kw_only=True)
class IstioImages:
    """Whole references of images built from the Go module; their proxy is a plain Envoy, without Istio's own filters."""

    pilot: str
    proxyv2: str

    def __post_init__(self) -> None:
        # The charts take a value without "/" for a name, and put their hub and tag around it.
        for image in (self.pilot, self.proxyv2):
            if "/" not in image:
                raise ManifestError(f"image {image!r} is no whole reference", hint="write <registry>/<repository>:<tag>")


# Istiod itself writes these two fields into its webhooks when it is up: the certificate, and `Fail` in place of the charts' `Ignore`. With
# `Fail` from the start nothing of ours changes behind our back, so a second `pulumi up` finds no difference; the certificate is no field of ours.
FAIL_CLOSED = {"validationFailurePolicy": "Fail"}

# How soon a change reaches the proxies. A push waits until events have been quiet for 20 ms; while pods come and go they are not, and the
# default is to wait up to 10 s. Endpoints do not wait at all, so that a dead pod is gone as soon as Kubernetes says so. A version that loses its
# weight and then its pods needs the route first: its endpoints were seen to go half a second after the route was changed, so 300 ms is the limit.
PROMPT_PUSH = {"PILOT_DEBOUNCE_AFTER": "20ms", "PILOT_DEBOUNCE_MAX": "300ms", "PILOT_ENABLE_EDS_DEBOUNCE": "false"}

# istiod looks once, at its start, whether there is something to inject, and serves no injector for as long as it lives when it is too early. The
# provider makes a chart's objects all at once unless this annotation says what comes first (sigs.k8s.io/cli-utils pkg/object/dependson).
NEEDS_FIRST = ("istio", "istio-sidecar-injector")
DEPENDS_ON = {"config.kubernetes.io/depends-on": ",".join(f"/namespaces/{NAMESPACE}/ConfigMap/{name}" for name in NEEDS_FIRST)}

# A plain Envoy refuses a listener with a filter it does not know; these two are in Istio's build only.
PLAIN_ENVOY = {"PILOT_ENABLE_METADATA_EXCHANGE": "false", "PILOT_ENABLE_ALPN_FILTER": "false"}


def build_namespace() -> dict[str, Any]:
    """Metadata of the control plane's namespace; its pods meet the restricted pod security standard."""
    return {"name": NAMESPACE, "labels": {**labels.common("service-mesh"), **labels.RESTRICTED}}


def build_base_values() -> dict[str, Any]:
    """Values of the chart with the custom resource definitions and the default revision's validation."""
    return {"base": FAIL_CLOSED}


def build_istiod_values(spec: IstioSpec, images: IstioImages | None) -> dict[str, Any]:
    """Values of the control plane's chart; without `images` the chart's own are used.

    Istio's own telemetry is off for every proxy alike: the platform reads Envoy's cluster statistics, which every build of the proxy has.
    """
    return {
        "autoscaleEnabled": False,
        "replicaCount": spec.replicas,
        # No limit of CPU: one would delay pushes just when there are many.
        "resources": {
            "requests": {"cpu": f"{round(spec.cpu_request * 1000)}m", "memory": f"{spec.memory_mib}Mi"},
            "limits": {"memory": f"{spec.memory_mib}Mi"},
        },
        "seccompProfile": {"type": "RuntimeDefault"},
        "deploymentAnnotations": DEPENDS_ON,
        "env": {**PROMPT_PUSH, **({} if images is None else PLAIN_ENVOY)},
        "telemetry": {"enabled": False},
        "meshConfig": {"enablePrometheusMerge": False},
        "base": FAIL_CLOSED,
        **_images(images),
    }


def _images(images: IstioImages | None) -> dict[str, Any]:
    if images is None:
        return {}
    return {"image": images.pilot, "global": {"imagePullPolicy": "IfNotPresent", "proxy": {"image": images.proxyv2}}}
