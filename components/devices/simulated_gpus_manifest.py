"""DaemonSet of the GPU simulator, as a plain dict."""

from typing import Any

from components import labels
from components.core.slots import GPU_RESOURCE
from components.devices.spec import SimulatedGpusSpec

NAME = "gpu-simulator"
# The kubelet's socket folder is a host path, which the Pod Security levels baseline and restricted forbid; kube-system is exempt everywhere.
NAMESPACE = "kube-system"
# Where the kubelet listens for device plugins and expects their sockets (pluginapi.DevicePluginPath).
SOCKET_DIR = "/var/lib/kubelet/device-plugins"
# The first start imports an image; on a cluster at hand that is all there is to wait for.
AWAIT_TIMEOUT_SECONDS = 180


def build_simulator(spec: SimulatedGpusSpec, image: Any) -> dict[str, Any]:
    """DaemonSet that offers `spec.count` simulated GPUs on every node. `image` may be unresolved, it is only put in its place."""
    own_labels = {**labels.common("device-plugin"), labels.NAME: NAME}
    return {
        "metadata": {"name": NAME, "namespace": NAMESPACE, "labels": own_labels},
        "spec": {
            "selector": {"matchLabels": labels.deployment_selector(NAME)},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}},
            "template": {"metadata": {"labels": own_labels}, "spec": _pod(spec, image)},
        },
    }


def _pod(spec: SimulatedGpusSpec, image: Any) -> dict[str, Any]:
    return {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "priorityClassName": "system-node-critical",
        "tolerations": [{"operator": "Exists"}],
        "terminationGracePeriodSeconds": 5,
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [
            {
                "name": NAME,
                "image": image,
                "args": [
                    "--count",
                    str(spec.count),
                    "--memory-mib",
                    str(spec.memory_mib),
                    "--numa-nodes",
                    str(spec.numa_nodes),
                    "--resource",
                    GPU_RESOURCE,
                ],
                # What the device ids are made from: every node has its own, and keeps them.
                "env": [{"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
                "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}, "limits": {"cpu": "200m", "memory": "64Mi"}},
                # Root, because the kubelet's folder belongs to root; nothing else of root's powers is left.
                "securityContext": {
                    "runAsUser": 0,
                    "allowPrivilegeEscalation": False,
                    "readOnlyRootFilesystem": True,
                    "capabilities": {"drop": ["ALL"]},
                },
                "volumeMounts": [{"name": "device-plugins", "mountPath": SOCKET_DIR}],
            }
        ],
        "volumes": [{"name": "device-plugins", "hostPath": {"path": SOCKET_DIR, "type": "Directory"}}],
    }
