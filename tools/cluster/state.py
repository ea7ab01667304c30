"""What a cluster was resolved to, kept in its directory so that a later start, stop or status finds the same ports and addresses."""

import fcntl
import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace

from tools.cluster.processes import LOOPBACK, Endpoints
from tools.cluster.spec import Addresses, Cluster, ClusterSpec, Layout
from tools.errors import ToolError
from tools.files import write_atomically


@dataclass(frozen=True, kw_only=True)
class State:
    """A resolved cluster; `block` is None in a control-plane-only one. `kubectl` is the client that fits it."""

    spec: ClusterSpec
    endpoints: Endpoints
    block: str | None
    kubectl: str

    @property
    def addresses(self) -> Addresses | None:
        return None if self.block is None else Addresses.parse(self.block)

    @property
    def cluster(self) -> Cluster:
        addresses = self.addresses
        ips = (LOOPBACK,) if addresses is None else tuple(addresses.node(number) for number in range(1, self.spec.nodes + 1))
        kubeconfig = Layout.of(self.spec.name).kubeconfig
        return Cluster(name=self.spec.name, context=self.spec.context, kubeconfig=kubeconfig, server=self.endpoints.server, node_ips=ips)

    @classmethod
    def read(cls, layout: Layout) -> "State | None":
        """The state in the cluster's directory; None when there is none. Raises ToolError when it cannot be read."""
        try:
            data = json.loads(layout.state.read_text())
            spec = ClusterSpec(**{**data["spec"], "zones": tuple(data["spec"]["zones"])})
            return cls(spec=spec, endpoints=Endpoints(**data["endpoints"]), block=data["block"], kubectl=data["kubectl"])
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError) as error:
            raise ToolError(f"{layout.state} cannot be read: {error}", f"delete the cluster's directory {layout.root} and start anew") from error

    def write(self, layout: Layout) -> None:
        write_atomically(layout.state, json.dumps(asdict(self), indent=1))


def merged(wanted: ClusterSpec, previous: ClusterSpec | None) -> ClusterSpec:
    """The spec a start goes by: a cluster keeps its kind, its nodes and their zones; more nodes may come. Raises ToolError on another kind."""
    if previous is None:
        return wanted
    if wanted.control_plane_only != previous.control_plane_only:
        kind = "a control plane only" if previous.control_plane_only else "a full cluster"
        raise ToolError(
            f"cluster {wanted.name!r} exists as {kind}",
            f"delete it (python -m tools.cluster delete --name {wanted.name}) or use another --name",
        )
    zones = previous.zones[: previous.nodes] + wanted.zones[previous.nodes :]
    return replace(wanted, nodes=max(wanted.nodes, previous.nodes), zones=zones, region=previous.region)


def loopback_endpoints(api_port: int) -> Endpoints:
    """Endpoints on free ports of 127.0.0.1; all are held open while choosing, so that they differ."""
    sockets = [socket.socket() for _ in range(3)]
    try:
        for each in sockets:
            each.bind((LOOPBACK, 0))
        api, etcd, peer = (int(each.getsockname()[1]) for each in sockets)
    finally:
        for each in sockets:
            each.close()
    return Endpoints(host=LOOPBACK, api_port=api_port or api, etcd_port=etcd, etcd_peer_port=peer)


@contextmanager
def locked(layout: Layout) -> Iterator[None]:
    """One start, stop or delete of a cluster at a time; a second one waits. The kernel lifts the lock when its holder ends."""
    file = layout.root.parent / ".locks" / layout.root.name
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield
