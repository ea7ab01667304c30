"""Certificates and kubeconfigs, made by kubeadm; what exists stays, so that a restarted cluster keeps its identity."""

import subprocess
from pathlib import Path
from typing import Any

import yaml

from tools.cluster.processes import LOOPBACK, Endpoints
from tools.cluster.spec import Addresses, Binaries, ClusterSpec, Layout
from tools.errors import ToolError
from tools.files import write_atomically

# Nobody renews the certificates of a local cluster, and their keys never leave the cache.
VALIDITY = "87600h"
# kubeadm refuses a loopback address as the API server's own. In a control-plane-only cluster this one (RFC 5737, never routed) only fills the field:
# clients go by controlPlaneEndpoint, and 127.0.0.1 is among the certificate's names.
UNROUTED = "192.0.2.1"

# user of a kubeconfig: (certificate's common name, its organisations)
CONTROL_PLANE_USERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "admin": ("kubernetes-admin", ("kubeadm:cluster-admins",)),
    "super-admin": ("kubernetes-super-admin", ("system:masters",)),
    "controller-manager": ("system:kube-controller-manager", ()),
    "scheduler": ("system:kube-scheduler", ()),
}
NODE_USERS: dict[str, tuple[str, tuple[str, ...]]] = {"kube-proxy": ("system:kube-proxy", ())}


def users(spec: ClusterSpec) -> dict[str, tuple[str, tuple[str, ...]]]:
    """The kubeconfigs a cluster needs."""
    nodes = {f"kubelet-{number}": (f"system:node:{name}", ("system:nodes",)) for number, name in enumerate(spec.node_names, start=1)}
    return {**CONTROL_PLANE_USERS, **(NODE_USERS if nodes else {}), **nodes}


def kubeadm_yaml(spec: ClusterSpec, layout: Layout, endpoints: Endpoints, addresses: Addresses | None, version: str) -> str:
    cluster: dict[str, Any] = {
        "apiVersion": "kubeadm.k8s.io/v1beta4",
        "kind": "ClusterConfiguration",
        "clusterName": spec.context,
        # Stated, since kubeadm asks the internet otherwise.
        "kubernetesVersion": version,
        "certificatesDir": str(layout.pki),
        "controlPlaneEndpoint": f"{endpoints.host}:{endpoints.api_port}",
        # A tenth of a second for all of them; RSA takes seconds.
        "encryptionAlgorithm": "ECDSA-P256",
        "certificateValidityPeriod": VALIDITY,
        "caCertificateValidityPeriod": VALIDITY,
        "networking": {"serviceSubnet": "10.96.0.0/16" if addresses is None else str(addresses.services)},
        "apiServer": {"certSANs": sorted({LOOPBACK, endpoints.host})},
    }
    init: dict[str, Any] = {
        "apiVersion": "kubeadm.k8s.io/v1beta4",
        "kind": "InitConfiguration",
        "localAPIEndpoint": {"advertiseAddress": UNROUTED if addresses is None else endpoints.host},
        # Stated, since kubeadm looks for a container runtime on the host otherwise.
        "nodeRegistration": {"name": f"{spec.name}-1", "criSocket": f"unix://{layout.containerd_socket(1)}"},
    }
    return yaml.safe_dump_all([cluster, init], sort_keys=False)


def named(kubeconfig: str, context: str) -> str:
    """The kubeconfig with its context and user named like its cluster, so that no name meets another cluster's when a tool merges files."""
    data = yaml.safe_load(kubeconfig)
    data["current-context"] = data["contexts"][0]["name"] = context
    data["contexts"][0]["context"]["user"] = data["users"][0]["name"] = context
    return yaml.safe_dump(data, sort_keys=False)


def _kubeadm(binaries: Binaries, *arguments: str) -> str:
    done = subprocess.run((str(binaries("kubeadm")), *arguments), check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise ToolError(
            f"kubeadm {' '.join(arguments[:4])} failed: {done.stderr.strip()}",
            "delete the cluster and start it anew: python -m tools.cluster delete",
        )
    return done.stdout


def _is_current(file: Path, server: str) -> bool:
    return file.exists() and server in file.read_text()


def ensure(spec: ClusterSpec, layout: Layout, endpoints: Endpoints, addresses: Addresses | None, binaries: Binaries) -> None:
    """Makes the certificates and kubeconfigs that are missing or name another server. Raises ToolError with kubeadm's own words."""
    version = _kubeadm(binaries, "version", "--output", "short").strip()
    config = layout.config / "kubeadm.yaml"
    write_atomically(config, kubeadm_yaml(spec, layout, endpoints, addresses, version))
    if not (layout.pki / "sa.pub").exists():
        _kubeadm(binaries, "init", "phase", "certs", "all", "--config", str(config))
    for user, (common_name, organisations) in users(spec).items():
        file = layout.user_kubeconfig(user)
        if not _is_current(file, endpoints.server):
            groups = [argument for organisation in organisations for argument in ("--org", organisation)]
            client = ("kubeconfig", "user", "--client-name", common_name, *groups, "--validity-period", VALIDITY)
            write_atomically(file, _kubeadm(binaries, *client, "--config", str(config)), 0o600)
    if not _is_current(layout.kubeconfig, endpoints.server):
        write_atomically(layout.kubeconfig, named(layout.user_kubeconfig("admin").read_text(), spec.context), 0o600)
