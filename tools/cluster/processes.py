"""Command lines of everything a cluster runs; pure. The supervisor gets them as one plan and keeps them running."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from tools.cluster.host import SYSTEM_PATH
from tools.cluster.spec import Addresses, Binaries, ClusterSpec, Layout

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, kw_only=True)
class ProcessSpec:
    """One process: started when all addresses in `after` are of use (see waiting.accepts), in the namespaces of node `node` (0 = those of the host)."""

    name: str
    argv: tuple[str, ...]
    node: int = 0
    after: tuple[str, ...] = ()
    path: str = ""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a supervisor runs, in order of start, and the cluster it belongs to."""

    name: str
    root: str
    nodes: int
    processes: tuple[ProcessSpec, ...]

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=1)

    @classmethod
    def from_json(cls, text: str) -> "Plan":
        data = json.loads(text)
        processes = tuple(ProcessSpec(**{**item, "argv": tuple(item["argv"]), "after": tuple(item["after"])}) for item in data.pop("processes"))
        return cls(**data, processes=processes)


@dataclass(frozen=True, kw_only=True)
class Endpoints:
    """Where the control plane listens."""

    host: str
    api_port: int = 6443
    etcd_port: int = 2379
    etcd_peer_port: int = 2380

    @property
    def server(self) -> str:
        return f"https://{self.host}:{self.api_port}"

    @property
    def api(self) -> str:
        return f"api:{self.host}:{self.api_port}"


def _flags(values: Mapping[str, object]) -> tuple[str, ...]:
    return tuple(f"--{name}={value}" for name, value in values.items())


def etcd(layout: Layout, endpoints: Endpoints, binary: Path, *, node: int) -> ProcessSpec:
    pki = layout.pki / "etcd"
    client, peer = f"https://{LOOPBACK}:{endpoints.etcd_port}", f"https://{LOOPBACK}:{endpoints.etcd_peer_port}"
    values: dict[str, object] = {
        "name": "etcd",
        "data-dir": layout.etcd,
        "listen-client-urls": client,
        "advertise-client-urls": client,
        "listen-peer-urls": peer,
        "initial-advertise-peer-urls": peer,
        "initial-cluster": f"etcd={peer}",
        "cert-file": pki / "server.crt",
        "key-file": pki / "server.key",
        "client-cert-auth": "true",
        "trusted-ca-file": pki / "ca.crt",
        "peer-cert-file": pki / "peer.crt",
        "peer-key-file": pki / "peer.key",
        "peer-client-cert-auth": "true",
        "peer-trusted-ca-file": pki / "ca.crt",
        "log-level": "warn",
    }
    if node == 0:
        # A preview's cluster lives for one test: it need not survive a power failure.
        values["unsafe-no-fsync"] = "true"
    return ProcessSpec(name="etcd", argv=(str(binary), *_flags(values)), node=node)


def kube_apiserver(layout: Layout, endpoints: Endpoints, services: str, binary: Path, *, node: int) -> ProcessSpec:
    pki = layout.pki
    values: dict[str, object] = {
        "advertise-address": endpoints.host,
        "bind-address": endpoints.host,
        "secure-port": endpoints.api_port,
        "allow-privileged": "true",
        "authorization-mode": "Node,RBAC",
        "enable-admission-plugins": "NodeRestriction",
        "service-cluster-ip-range": services,
        "client-ca-file": pki / "ca.crt",
        "tls-cert-file": pki / "apiserver.crt",
        "tls-private-key-file": pki / "apiserver.key",
        "etcd-servers": f"https://{LOOPBACK}:{endpoints.etcd_port}",
        "etcd-cafile": pki / "etcd" / "ca.crt",
        "etcd-certfile": pki / "apiserver-etcd-client.crt",
        "etcd-keyfile": pki / "apiserver-etcd-client.key",
        "kubelet-client-certificate": pki / "apiserver-kubelet-client.crt",
        "kubelet-client-key": pki / "apiserver-kubelet-client.key",
        "kubelet-preferred-address-types": "InternalIP",
        "proxy-client-cert-file": pki / "front-proxy-client.crt",
        "proxy-client-key-file": pki / "front-proxy-client.key",
        "requestheader-client-ca-file": pki / "front-proxy-ca.crt",
        "requestheader-allowed-names": "front-proxy-client",
        "requestheader-extra-headers-prefix": "X-Remote-Extra-",
        "requestheader-group-headers": "X-Remote-Group",
        "requestheader-username-headers": "X-Remote-User",
        "service-account-issuer": "https://kubernetes.default.svc.cluster.local",
        "service-account-key-file": pki / "sa.pub",
        "service-account-signing-key-file": pki / "sa.key",
        # A clean stop need not wait for the longest watch.
        "shutdown-delay-duration": "0s",
    }
    if node == 0:
        # The API server refuses to publish a loopback address as the endpoint of the service `kubernetes`.
        values["endpoint-reconciler-type"] = "none"
    return ProcessSpec(name="kube-apiserver", argv=(str(binary), *_flags(values)), node=node)


def kube_controller_manager(layout: Layout, endpoints: Endpoints, addresses: Addresses | None, binary: Path, *, node: int) -> ProcessSpec:
    kubeconfig = layout.user_kubeconfig("controller-manager")
    values: dict[str, object] = {
        "kubeconfig": kubeconfig,
        "authentication-kubeconfig": kubeconfig,
        "authorization-kubeconfig": kubeconfig,
        "bind-address": LOOPBACK,
        "client-ca-file": layout.pki / "ca.crt",
        "cluster-signing-cert-file": layout.pki / "ca.crt",
        "cluster-signing-key-file": layout.pki / "ca.key",
        "root-ca-file": layout.pki / "ca.crt",
        "requestheader-client-ca-file": layout.pki / "front-proxy-ca.crt",
        "service-account-private-key-file": layout.pki / "sa.key",
        "use-service-account-credentials": "true",
        "leader-elect": "false",
    }
    if addresses is None:
        values["secure-port"] = 0
    else:
        values["cluster-cidr"] = addresses.pods
    return ProcessSpec(name="kube-controller-manager", argv=(str(binary), *_flags(values)), node=node, after=(endpoints.api,))


def kube_scheduler(layout: Layout, endpoints: Endpoints, binary: Path, *, node: int) -> ProcessSpec:
    kubeconfig = layout.user_kubeconfig("scheduler")
    values: dict[str, object] = {
        "kubeconfig": kubeconfig,
        "authentication-kubeconfig": kubeconfig,
        "authorization-kubeconfig": kubeconfig,
        "bind-address": LOOPBACK,
        "leader-elect": "false",
    }
    if node == 0:
        values["secure-port"] = 0
    return ProcessSpec(name="kube-scheduler", argv=(str(binary), *_flags(values)), node=node, after=(endpoints.api,))


def node_processes(
    spec: ClusterSpec, layout: Layout, endpoints: Endpoints, addresses: Addresses, binaries: Binaries, number: int
) -> list[ProcessSpec]:
    """containerd, kubelet and kube-proxy of node `number`."""
    config = layout.node(number)
    name = spec.node_names[number - 1]
    labels = f"topology.kubernetes.io/zone={spec.zones[number - 1]},topology.kubernetes.io/region={spec.region}"
    kubelet = {
        "config": config / "kubelet.yaml",
        "kubeconfig": layout.user_kubeconfig(f"kubelet-{number}"),
        "hostname-override": name,
        "node-ip": addresses.node(number),
        "node-labels": labels,
    }
    proxy = {"config": config / "kube-proxy.yaml", "hostname-override": name}
    # runc and the CNI plugins are looked up on containerd's PATH.
    return [
        ProcessSpec(
            name=f"containerd-{number}",
            argv=(str(binaries("containerd")), *_flags({"config": config / "containerd.toml"})),
            node=number,
            path=SYSTEM_PATH,
        ),
        ProcessSpec(
            name=f"kubelet-{number}",
            argv=(str(binaries("kubelet")), *_flags(kubelet)),
            node=number,
            after=(f"unix:{layout.containerd_socket(number)}", endpoints.api),
            path=SYSTEM_PATH,
        ),
        ProcessSpec(
            name=f"kube-proxy-{number}", argv=(str(binaries("kube-proxy")), *_flags(proxy)), node=number, after=(endpoints.api,), path=SYSTEM_PATH
        ),
    ]


def plan(spec: ClusterSpec, layout: Layout, endpoints: Endpoints, addresses: Addresses | None, binaries: Binaries) -> Plan:
    """All processes of the cluster in order of start; without `addresses` the control plane alone, on the host's loopback."""
    node = 0 if addresses is None else 1
    services = "10.96.0.0/16" if addresses is None else str(addresses.services)
    processes = [
        etcd(layout, endpoints, binaries("etcd"), node=node),
        kube_apiserver(layout, endpoints, services, binaries("kube-apiserver"), node=node),
    ]
    if addresses is not None or spec.controllers:
        processes += [
            kube_controller_manager(layout, endpoints, addresses, binaries("kube-controller-manager"), node=node),
            kube_scheduler(layout, endpoints, binaries("kube-scheduler"), node=node),
        ]
    if addresses is not None:
        numbers = range(1, spec.nodes + 1)
        processes += [process for number in numbers for process in node_processes(spec, layout, endpoints, addresses, binaries, number)]
    return Plan(name=spec.name, root=str(layout.root), nodes=0 if addresses is None else spec.nodes, processes=tuple(processes))
