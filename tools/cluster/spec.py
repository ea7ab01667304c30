"""What a local cluster is made of: the wish (`ClusterSpec`), where its files lie (`Layout`) and its addresses (`Addresses`)."""

import hashlib
import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tools.errors import ToolError
from tools.paths import cluster_dir

Binaries = Callable[[str], Path]
"""Gives the path of a Kubernetes binary or etcd by name."""

MAX_NODES = 2
# A Linux interface name holds 15 characters; ours is "ip-" + name.
MAX_NAME_LENGTH = 12
_NAME = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?")


@dataclass(frozen=True, kw_only=True)
class ClusterSpec:
    """A local cluster as a person asks for it. `api_port` (control plane only; 0 = any free one) is the API server's port on 127.0.0.1;
    `controllers` (control plane only) adds the scheduler and the controller manager.

    Raises ToolError when a value cannot work.
    """

    name: str = "local"
    control_plane_only: bool = False
    nodes: int = 1
    zones: tuple[str, ...] = ("local-a", "local-b")
    region: str = "local"
    api_port: int = 0
    controllers: bool = True

    def __post_init__(self) -> None:
        if len(self.name) > MAX_NAME_LENGTH or not _NAME.fullmatch(self.name):
            raise ToolError(
                f"cluster name {self.name!r} cannot be used: it becomes part of a network interface's and of the nodes' names",
                f"use at most {MAX_NAME_LENGTH} lower-case letters, digits and dashes, beginning with a letter",
            )
        if not 1 <= self.nodes <= MAX_NODES:
            raise ToolError(f"{self.nodes} nodes cannot be started", f"use 1 to {MAX_NODES} nodes")
        if len(self.zones) < self.nodes:
            raise ToolError(f"{self.nodes} nodes need {self.nodes} zones, got {', '.join(self.zones) or 'none'}", "name a zone for each node")

    @property
    def context(self) -> str:
        return f"inference-platform-{self.name}"

    @property
    def node_names(self) -> tuple[str, ...]:
        """Names of the nodes that run pods; none in a control-plane-only cluster."""
        return () if self.control_plane_only else tuple(f"{self.name}-{number}" for number in range(1, self.nodes + 1))


@dataclass(frozen=True)
class Layout:
    """Where the files of one cluster lie."""

    root: Path

    @classmethod
    def of(cls, name: str) -> "Layout":
        return cls(cluster_dir(name))

    @property
    def kubeconfig(self) -> Path:
        return self.root / "kubeconfig"

    @property
    def pki(self) -> Path:
        return self.root / "pki"

    @property
    def config(self) -> Path:
        return self.root / "config"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def etcd(self) -> Path:
        return self.root / "etcd"

    @property
    def state(self) -> Path:
        return self.root / "cluster.json"

    @property
    def plan(self) -> Path:
        return self.root / "plan.json"

    @property
    def supervisor(self) -> Path:
        return self.root / "supervisor.json"

    @property
    def process_states(self) -> Path:
        return self.root / "processes.json"

    def user_kubeconfig(self, user: str) -> Path:
        return self.config / f"{user}.kubeconfig"

    def node(self, number: int) -> Path:
        return self.root / f"node-{number}"

    def image_store(self, number: int) -> Path:
        """The root of containerd: survives stop, and delete unless told otherwise."""
        return self.node(number) / "containerd"

    def containerd_socket(self, number: int) -> Path:
        return self.node(number) / "containerd.sock"


@dataclass(frozen=True)
class Addresses:
    """All addresses of one cluster, carved from one /16: .0/24 nodes, .64/18 services, .128/17 pods (a /24 for each node)."""

    block: ipaddress.IPv4Network

    @classmethod
    def parse(cls, text: str) -> "Addresses":
        return cls(ipaddress.IPv4Network(text))

    def _subnet(self, third: int, prefix: int) -> ipaddress.IPv4Network:
        return ipaddress.IPv4Network((int(self.block.network_address) + (third << 8), prefix))

    @property
    def host(self) -> str:
        """The host's end: the nodes' gateway."""
        return str(self.block.network_address + 1)

    def node(self, number: int) -> str:
        return str(self.block.network_address + 1 + number)

    @property
    def services(self) -> ipaddress.IPv4Network:
        return self._subnet(64, 18)

    @property
    def dns(self) -> str:
        return str(self.services.network_address + 10)

    @property
    def pods(self) -> ipaddress.IPv4Network:
        return self._subnet(128, 17)

    def node_pods(self, number: int) -> ipaddress.IPv4Network:
        return self._subnet(128 + number, 24)


def candidate_blocks(name: str) -> list[ipaddress.IPv4Network]:
    """Private /16 blocks in the order a cluster of this name tries them: a stable start from the name, so that two clusters rarely meet."""
    blocks = [ipaddress.IPv4Network(f"10.{second}.0.0/16") for second in range(128, 256)]
    blocks += [ipaddress.IPv4Network(f"172.{second}.0.0/16") for second in range(16, 32)]
    start = int(hashlib.sha256(name.encode()).hexdigest(), 16) % len(blocks)
    return blocks[start:] + blocks[:start]


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """A running cluster. `node_ips` has an address for each node (127.0.0.1 alone in a control-plane-only cluster)."""

    name: str
    context: str
    kubeconfig: Path
    server: str
    node_ips: tuple[str, ...]

    @property
    def node_ip(self) -> str:
        return self.node_ips[0]
