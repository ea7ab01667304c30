"""Command lines, configuration files and objects of a cluster; nothing is started."""

import json
import tomllib
from ipaddress import IPv4Network
from pathlib import Path

import yaml

from tools.cluster import addons, node_config, pki
from tools.cluster.node_config import NodeRuntime
from tools.cluster.processes import Endpoints, Plan, ProcessSpec, plan
from tools.cluster.spec import Addresses, ClusterSpec, Layout

ADDRESSES = Addresses(IPv4Network("10.200.0.0/16"))
LAYOUT = Layout(Path("/cache/clusters/x"))
NODE = Endpoints(host="10.200.0.2")
LOOPBACK = Endpoints(host="127.0.0.1", api_port=40001, etcd_port=40002, etcd_peer_port=40003)
RUNTIME = NodeRuntime(pause_image="localhost/pause:1", cni_bin=Path("/usr/lib/cni"), cgroup_root="/inference-platform/x/node-1", cgroup_v2=False)


def binaries(name: str) -> Path:
    return Path("/bin") / name


def full(nodes: int = 1) -> Plan:
    return plan(ClusterSpec(name="x", nodes=nodes), LAYOUT, NODE, ADDRESSES, binaries)


def alone(*, controllers: bool = True) -> Plan:
    return plan(ClusterSpec(name="x", control_plane_only=True, controllers=controllers), LAYOUT, LOOPBACK, None, binaries)


def named(found: Plan, name: str) -> ProcessSpec:
    return next(process for process in found.processes if process.name == name)


def test_what_others_need_starts_first_and_so_stops_last() -> None:
    control_plane = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"]
    assert [process.name for process in full().processes] == [*control_plane, "containerd-1", "kubelet-1", "kube-proxy-1"]
    assert [process.name for process in alone().processes] == control_plane
    assert [process.name for process in alone(controllers=False).processes] == control_plane[:2]


def test_a_second_node_changes_no_process_of_the_first() -> None:
    one, two = full(1).processes, full(2).processes
    assert two[: len(one)] == one
    assert [(process.name, process.node) for process in two[len(one) :]] == [("containerd-2", 2), ("kubelet-2", 2), ("kube-proxy-2", 2)]


def test_a_plan_survives_its_file() -> None:
    assert Plan.from_json(full(2).to_json()) == full(2)


def test_a_control_plane_runs_on_the_host_and_listens_on_loopback_only() -> None:
    for process in alone().processes:
        assert process.node == 0
        line = " ".join(process.argv)
        assert "0.0.0.0" not in line  # noqa: S104
        assert "10.200" not in line
    assert "--bind-address=127.0.0.1" in named(alone(), "kube-apiserver").argv
    assert "--secure-port=40001" in named(alone(), "kube-apiserver").argv
    assert "--listen-client-urls=https://127.0.0.1:40002" in named(alone(), "etcd").argv


def test_etcd_writes_through_to_the_disk_unless_its_cluster_is_a_previews() -> None:
    assert "--unsafe-no-fsync=true" in named(alone(), "etcd").argv
    assert "--unsafe-no-fsync=true" not in named(full(), "etcd").argv


def test_nodes_are_labelled_with_their_own_zone() -> None:
    labels = [next(flag for flag in named(full(2), f"kubelet-{number}").argv if flag.startswith("--node-labels")) for number in (1, 2)]
    assert "topology.kubernetes.io/zone=local-a," in labels[0]
    assert "topology.kubernetes.io/zone=local-b," in labels[1]


def test_the_kubelet_waits_for_its_runtime_and_the_api_server() -> None:
    assert named(full(), "kubelet-1").after == ("unix:/cache/clusters/x/node-1/containerd.sock", "api:10.200.0.2:6443")


def test_containerds_file_is_toml_that_keeps_quotes_in_paths() -> None:
    layout = Layout(Path('/cache/with "quotes"'))
    parsed = tomllib.loads(node_config.containerd_toml(layout, 1, RUNTIME))
    cri = parsed["plugins"]["io.containerd.grpc.v1.cri"]
    assert parsed["root"] == '/cache/with "quotes"/node-1/containerd'
    assert cri["sandbox_image"] == "localhost/pause:1"
    assert cri["restrict_oom_score_adj"] is True


def test_pods_of_a_node_get_addresses_of_that_node_only() -> None:
    plugin = json.loads(node_config.cni_json(ADDRESSES, 2))["plugins"][0]
    assert plugin["ipam"]["ranges"] == [[{"subnet": "10.200.130.0/24"}]]


def test_cgroup_v1_is_asked_for_only_where_it_is_in_use() -> None:
    old = yaml.safe_load(node_config.kubelet_yaml(LAYOUT, ADDRESSES, 1, RUNTIME))
    new = yaml.safe_load(node_config.kubelet_yaml(LAYOUT, ADDRESSES, 1, NodeRuntime(**{**RUNTIME.__dict__, "cgroup_v2": True})))
    assert old["failCgroupV1"] is False
    assert "failCgroupV1" not in new


def test_a_full_disk_evicts_nothing_and_removes_no_image() -> None:
    kubelet = yaml.safe_load(node_config.kubelet_yaml(LAYOUT, ADDRESSES, 1, RUNTIME))
    assert {value for key, value in kubelet["evictionHard"].items() if key.startswith(("nodefs", "imagefs"))} == {"0%"}
    assert kubelet["imageGCHighThresholdPercent"] == 100


def test_kube_proxy_leaves_the_hosts_connection_tracking_alone() -> None:
    proxy = yaml.safe_load(node_config.kube_proxy_yaml(LAYOUT, ADDRESSES, 1))
    assert proxy["mode"] == "nftables"
    assert proxy["conntrack"]["maxPerCore"] == 0


def test_kubeadm_gets_no_loopback_address_and_yet_a_certificate_for_it() -> None:
    spec = ClusterSpec(name="x", control_plane_only=True)
    cluster, init = yaml.safe_load_all(pki.kubeadm_yaml(spec, LAYOUT, LOOPBACK, None, "v1.36.3"))
    assert init["localAPIEndpoint"]["advertiseAddress"] == "192.0.2.1"
    assert cluster["apiServer"]["certSANs"] == ["127.0.0.1"]
    assert cluster["controlPlaneEndpoint"] == "127.0.0.1:40001"


def test_each_node_has_a_kubeconfig_of_its_own_and_a_control_plane_none() -> None:
    assert pki.users(ClusterSpec(name="x", nodes=2))["kubelet-2"] == ("system:node:x-2", ("system:nodes",))
    assert "kube-proxy" not in pki.users(ClusterSpec(control_plane_only=True))


def test_a_kubeconfig_is_named_after_its_cluster_in_every_part() -> None:
    text = yaml.safe_dump(
        {
            "clusters": [{"name": "c", "cluster": {"server": "https://x"}}],
            "contexts": [{"name": "u@c", "context": {"cluster": "c", "user": "u"}}],
            "users": [{"name": "u", "user": {}}],
            "current-context": "u@c",
        }
    )
    found = yaml.safe_load(pki.named(text, "inference-platform-x"))
    assert found["current-context"] == found["contexts"][0]["name"] == found["users"][0]["name"] == "inference-platform-x"
    assert found["contexts"][0]["context"] == {"cluster": "c", "user": "inference-platform-x"}


def test_coredns_takes_the_address_that_the_kubelet_hands_to_pods() -> None:
    service = next(item for item in addons.coredns(ADDRESSES, "localhost/coredns:1") if item["kind"] == "Service")
    kubelet = yaml.safe_load(node_config.kubelet_yaml(LAYOUT, ADDRESSES, 1, RUNTIME))
    assert [service["spec"]["clusterIP"]] == kubelet["clusterDNS"]


def test_the_content_key_of_coredns_follows_its_image() -> None:
    keys = [addons.content_key(addons.coredns(ADDRESSES, image)[-1]) for image in ("a:1", "a:1", "a:2")]
    assert keys[0] == keys[1] != keys[2]
    assert all(keys)
