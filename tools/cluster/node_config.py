"""Configuration files of a node: containerd, CNI, kubelet and kube-proxy; pure."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tools.cluster.spec import Addresses, Layout

# A pod of ours needs ~10 MiB at least: the limit is a guard against a runaway controller, not a size.
MAX_PODS = 200


@dataclass(frozen=True, kw_only=True)
class NodeRuntime:
    """What a node's configuration takes from the machine: the sandbox image's reference, the folder of CNI plugins and the pods' control group."""

    pause_image: str
    cni_bin: Path
    cgroup_root: str
    cgroup_v2: bool


def containerd_toml(layout: Layout, number: int, runtime: NodeRuntime) -> str:
    """In the format of containerd 1.6 (version 2), which 1.7 and 2.x read as well. JSON strings are TOML strings."""
    node = layout.node(number)

    def text(value: object) -> str:
        return json.dumps(str(value))

    return f"""version = 2
root = {text(layout.image_store(number))}
state = "/run/containerd"
[grpc]
  address = {text(layout.containerd_socket(number))}
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = {text(runtime.pause_image)}
  # Without CAP_SYS_RESOURCE, as in many containers and CI machines, a score cannot be lowered and every pod would fail.
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = {text(runtime.cni_bin)}
    conf_dir = {text(node / "cni")}
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
"""


def cni_json(addresses: Addresses, number: int) -> str:
    """Each pod gets its own point-to-point link. With a bridge, pods of one node would answer each other past the node's connection tracking,
    and services would need the host's br_netfilter module.
    """
    plugin = {
        "type": "ptp",
        "ipMasq": False,
        "ipam": {"type": "host-local", "ranges": [[{"subnet": str(addresses.node_pods(number))}]], "routes": [{"dst": "0.0.0.0/0"}]},
    }
    return json.dumps({"cniVersion": "0.4.0", "name": "pods", "plugins": [plugin]}, indent=1)


def _component(api_version: str, kind: str, body: dict[str, Any]) -> str:
    return yaml.safe_dump({"apiVersion": api_version, "kind": kind, **body}, sort_keys=False)


def kubelet_yaml(layout: Layout, addresses: Addresses, number: int, runtime: NodeRuntime) -> str:
    """The kubelet's configuration. A nearly full disk evicts nothing and removes no image: there is no registry to pull it from again."""
    body: dict[str, Any] = {
        "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": True}, "x509": {"clientCAFile": str(layout.pki / "ca.crt")}},
        "authorization": {"mode": "Webhook"},
        "address": addresses.node(number),
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": runtime.cgroup_root,
        "clusterDNS": [addresses.dns],
        "clusterDomain": "cluster.local",
        "containerRuntimeEndpoint": f"unix://{layout.containerd_socket(number)}",
        "failSwapOn": False,
        "resolvConf": str(layout.node(number) / "resolv.conf"),
        "maxPods": MAX_PODS,
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "0%", "nodefs.inodesFree": "0%", "imagefs.available": "0%"},
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "makeIPTablesUtilChains": False,
        "oomScoreAdj": 0,
        "rotateCertificates": False,
        "volumePluginDir": "/var/lib/kubelet/volumeplugins",
        # The defaults (60 s, 10 s) spare the API server of a big cluster; here a changed ConfigMap shall reach its pods soon.
        "syncFrequency": "10s",
        "nodeStatusUpdateFrequency": "4s",
    }
    if not runtime.cgroup_v2:
        # Kubernetes 1.35 and newer refuse cgroup v1 unless told otherwise.
        body["failCgroupV1"] = False
    return _component("kubelet.config.k8s.io/v1beta1", "KubeletConfiguration", body)


def kube_proxy_yaml(layout: Layout, addresses: Addresses, number: int) -> str:
    """In nftables mode; connection tracking limits stay as they are, since they belong to the host and not to the namespace."""
    untouched = {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"}
    body: dict[str, Any] = {
        "mode": "nftables",
        "clientConnection": {"kubeconfig": str(layout.user_kubeconfig("kube-proxy"))},
        "clusterCIDR": str(addresses.pods),
        "detectLocalMode": "ClusterCIDR",
        "conntrack": untouched,
        "oomScoreAdj": 0,
        "nodePortAddresses": [f"{addresses.node(number)}/32"],
        "healthzBindAddress": "127.0.0.1:10256",
        "metricsBindAddress": "127.0.0.1:10249",
    }
    return _component("kubeproxy.config.k8s.io/v1alpha1", "KubeProxyConfiguration", body)


def files(layout: Layout, addresses: Addresses, number: int, runtime: NodeRuntime) -> dict[Path, str]:
    """Every configuration file of node `number` with its content."""
    node = layout.node(number)
    return {
        node / "containerd.toml": containerd_toml(layout, number, runtime),
        node / "cni" / "10-pods.conflist": cni_json(addresses, number),
        node / "kubelet.yaml": kubelet_yaml(layout, addresses, number, runtime),
        node / "kube-proxy.yaml": kube_proxy_yaml(layout, addresses, number),
        # The nodes reach nothing outside, so pods get no name server but CoreDNS.
        node / "resolv.conf": "",
    }
