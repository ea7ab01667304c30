"""From running processes to a usable cluster: API server, bindings, images, nodes, CoreDNS."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tools.cluster import addons, logs
from tools.cluster.identity import ProcessIdentity
from tools.cluster.images import NodeImages, load_images
from tools.cluster.kubectl import Kubectl, node_ready_since, pod_ready_since, rolled_out
from tools.cluster.spec import Addresses, Layout
from tools.cluster.state import State
from tools.cluster.waiting import Progress, accepts, wait_for

RUNTIME_SECONDS = 30.0
API_SECONDS = 60.0
NODE_SECONDS = 90.0
DNS_SECONDS = 90.0
_COREDNS = ("deployment", "coredns", "--namespace", "kube-system")


@dataclass(frozen=True)
class BringUp:
    """Waits until a cluster is ready, making on the way what its API server must hold. Quick when all is there already."""

    state: State
    layout: Layout
    supervisor: ProcessIdentity
    progress: Progress

    @property
    def kubectl(self) -> Kubectl:
        return Kubectl(Path(self.state.kubectl), self.layout.kubeconfig)

    def run(self, images: NodeImages | None) -> None:
        """Raises ToolError with the ends of the logs concerned when a part does not get ready."""
        addresses = self.state.addresses
        if images is None or addresses is None:
            self._control_plane()
            return
        self._images(images)
        self._control_plane()
        self._coredns(addresses, images.coredns)

    def _wait(self, what: str, ready: Callable[[], bool], seconds: float, *processes: str) -> None:
        wait_for(what, ready, seconds=seconds, explain=partial(self._explain, processes), alive=self.supervisor.alive)
        self.progress.done(f"{what} ready")

    def _explain(self, processes: tuple[str, ...]) -> str:
        files = [self.layout.logs / f"{name}.log" for name in ("supervisor", *processes)]
        return "".join(f"\n--- {file}\n{text}" for file in files if (text := logs.tail(file)))

    def _images(self, images: NodeImages) -> None:
        for number in range(1, self.state.spec.nodes + 1):
            socket = f"unix:{self.layout.containerd_socket(number)}"
            self._wait(f"container runtime {number}", partial(accepts, socket), RUNTIME_SECONDS, f"containerd-{number}")
        if load_images(self.state.cluster, images.archives):
            self.progress.done("images of the nodes loaded")

    def _control_plane(self) -> None:
        api = self.state.endpoints.api
        self._wait(f"API server {self.state.endpoints.server}", partial(accepts, api), API_SECONDS, "etcd", "kube-apiserver")
        if self.kubectl.try_run("auth", "can-i", "*", "*").returncode != 0:
            Kubectl(Path(self.state.kubectl), self.layout.user_kubeconfig("super-admin")).apply(addons.bindings())

    def _coredns(self, addresses: Addresses, image: str) -> None:
        found = self.kubectl.get(*_COREDNS)
        wanted = addons.coredns(addresses, image)
        if found is None or addons.content_key(found) != addons.content_key(wanted[-1]):
            self.kubectl.apply(wanted)
        for number, node in enumerate(self.state.spec.node_names, start=1):
            self._wait(f"node {node}", partial(self._node_ready, node), NODE_SECONDS, f"containerd-{number}", f"kubelet-{number}")
        self._wait("CoreDNS", self._dns_ready, DNS_SECONDS, "kubelet-1")

    def _node_ready(self, node: str) -> bool:
        return node_ready_since(self.kubectl.get("node", node), self.supervisor.started_at())

    def _dns_ready(self) -> bool:
        pods = self.kubectl.get("pods", "--namespace", "kube-system", "--selector", "k8s-app=kube-dns") or {"items": []}
        since = self.supervisor.started_at()
        return rolled_out(self.kubectl.get(*_COREDNS)) and any(pod_ready_since(pod, since) for pod in pods["items"])
