"""Objects every cluster gets: the bindings `kubeadm init` makes and, on nodes, CoreDNS; pure."""

import hashlib
import json
from typing import Any

from tools.cluster.spec import Addresses

Manifest = dict[str, Any]
CONTENT_KEY = "inference-platform/content"
# Above 1024, so that CoreDNS needs no capability; the service has port 53. Written in the Corefile too.
DNS_PORT = 1053
_LABELS = {"k8s-app": "kube-dns"}
# No `forward`: the nodes reach no outer name server, and a name that is not the cluster's gets a quick NXDOMAIN instead of a time-out.
_COREFILE = """cluster.local:1053 in-addr.arpa:1053 ip6.arpa:1053 {
    errors
    health {
        lameduck 2s
    }
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        pods insecure
        ttl 5
    }
    cache 5
    reload
    loadbalance
}
.:1053 {
    errors
    template ANY ANY {
        rcode NXDOMAIN
    }
}
"""


def _binding(name: str, role: str, subject: Manifest) -> Manifest:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [subject],
    }


def _subject(kind: str, name: str) -> Manifest:
    return {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}


def bindings() -> list[Manifest]:
    """Who may what: the kubeconfig's owner all, the API server the kubelet's logs and exec, kube-proxy its watches."""
    return [
        _binding("kubeadm:cluster-admins", "cluster-admin", _subject("Group", "kubeadm:cluster-admins")),
        _binding("kubeadm:kubelet-api-admin", "system:kubelet-api-admin", _subject("User", "kube-apiserver-kubelet-client")),
    ]


def _coredns_rbac() -> list[Manifest]:
    rules = [
        {"apiGroups": [""], "resources": ["endpoints", "services", "pods", "namespaces"], "verbs": ["list", "watch"]},
        {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list", "watch"]},
    ]
    account = {"kind": "ServiceAccount", "name": "coredns", "namespace": "kube-system"}
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "coredns", "namespace": "kube-system"}},
        {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "system:coredns"}, "rules": rules},
        _binding("system:coredns", "system:coredns", account),
    ]


def _coredns_pod(image: str) -> Manifest:
    def probe(path: str, port: int) -> Manifest:
        return {"httpGet": {"path": path, "port": port}, "periodSeconds": 2, "timeoutSeconds": 5, "failureThreshold": 5}

    container = {
        "name": "coredns",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["coredns", "-conf", "/etc/coredns/Corefile"],
        "ports": [{"name": "dns", "containerPort": DNS_PORT, "protocol": "UDP"}, {"name": "dns-tcp", "containerPort": DNS_PORT, "protocol": "TCP"}],
        "resources": {"requests": {"cpu": "50m", "memory": "70Mi"}, "limits": {"memory": "170Mi"}},
        "readinessProbe": probe("/ready", 8181),
        "livenessProbe": {**probe("/health", 8080), "initialDelaySeconds": 30, "periodSeconds": 10},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "runAsUser": 65532,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "volumeMounts": [{"name": "config", "mountPath": "/etc/coredns", "readOnly": True}],
    }
    return {
        "serviceAccountName": "coredns",
        "priorityClassName": "system-cluster-critical",
        "dnsPolicy": "Default",
        "tolerations": [{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}],
        "containers": [container],
        "volumes": [{"name": "config", "configMap": {"name": "coredns"}}],
    }


def coredns(addresses: Addresses, image: str) -> list[Manifest]:
    """CoreDNS with one replica, at the services block's tenth address; the Deployment, last, carries a key of the content of all."""
    metadata = {"namespace": "kube-system", "labels": _LABELS}
    ports = [
        {"name": "dns", "port": 53, "targetPort": DNS_PORT, "protocol": "UDP"},
        {"name": "dns-tcp", "port": 53, "targetPort": DNS_PORT, "protocol": "TCP"},
    ]
    service = {"selector": _LABELS, "clusterIP": addresses.dns, "ports": ports}
    spec = {
        "replicas": 1,
        "selector": {"matchLabels": _LABELS},
        "template": {"metadata": {"labels": _LABELS}, "spec": _coredns_pod(image)},
    }
    others = [
        *_coredns_rbac(),
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "coredns", **metadata}, "data": {"Corefile": _COREFILE}},
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "kube-dns", **metadata}, "spec": service},
    ]
    key = hashlib.sha256(json.dumps([others, spec], sort_keys=True).encode()).hexdigest()[:12]
    deployment = {"name": "coredns", **metadata, "annotations": {CONTENT_KEY: key}}
    return [*others, {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": deployment, "spec": spec}]


def content_key(deployment: Manifest) -> str:
    """The key that coredns() gave a Deployment; empty when it is not ours."""
    return str(deployment["metadata"].get("annotations", {}).get(CONTENT_KEY, ""))
