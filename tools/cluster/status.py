"""How a cluster fares, seen from the host without changing anything."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from tools.cluster.identity import ProcessIdentity
from tools.cluster.kubectl import Kubectl, has_condition
from tools.cluster.spec import Layout
from tools.cluster.state import State


@dataclass(frozen=True, kw_only=True)
class ProcessStatus:
    """`pid` is the host's number of the process, 0 while it does not run."""

    name: str
    state: str
    pid: int
    restarts: int


@dataclass(frozen=True, kw_only=True)
class NodeStatus:
    name: str
    ip: str
    ready: bool


@dataclass(frozen=True, kw_only=True)
class ClusterStatus:
    """`state` is absent, stopped, starting (runs, but something is not ready) or ready."""

    name: str
    state: str
    context: str = ""
    kubeconfig: str = ""
    server: str = ""
    processes: tuple[ProcessStatus, ...] = ()
    nodes: tuple[NodeStatus, ...] = ()

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=1)


def host_pids(supervisor: int, proc: Path = Path("/proc")) -> dict[int, int]:
    """The supervisor's children: their numbers in its own process namespace, and on the host."""
    found = {}
    for file in proc.glob("[0-9]*/status"):
        try:
            fields = dict(line.split(":", 1) for line in file.read_text().splitlines() if ":" in line)
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields["PPid"]) == supervisor:
            found[int(fields["NSpid"].split()[-1])] = int(fields["Pid"])
    return found


def _processes(layout: Layout, supervisor: ProcessIdentity) -> tuple[ProcessStatus, ...]:
    try:
        recorded = json.loads(layout.process_states.read_text())
    except FileNotFoundError:
        return ()
    pids = host_pids(supervisor.pid)
    return tuple(
        ProcessStatus(name=name, state=each["state"], pid=pids.get(each["pid"], 0), restarts=each["restarts"]) for name, each in recorded.items()
    )


def status(name: str) -> ClusterStatus:
    """The cluster's state; asks its API server when it runs."""
    layout = Layout.of(name)
    state = State.read(layout)
    if state is None:
        return ClusterStatus(name=name, state="absent")
    cluster = state.cluster
    supervisor = ProcessIdentity.read(layout.supervisor)
    if supervisor is None:
        return ClusterStatus(name=name, state="stopped", context=cluster.context, kubeconfig=str(cluster.kubeconfig), server=cluster.server)
    kubectl = Kubectl(Path(state.kubectl), cluster.kubeconfig)
    ips = dict(zip(state.spec.node_names, cluster.node_ips, strict=False))
    nodes = tuple(NodeStatus(name=node, ip=ip, ready=has_condition(kubectl.get("node", node), "Ready")) for node, ip in ips.items())
    running = _processes(layout, supervisor)
    answers = kubectl.try_run("get", "--raw", "/readyz").returncode == 0
    ready = answers and all(node.ready for node in nodes) and all(process.state == "running" for process in running)
    return ClusterStatus(
        name=name,
        state="ready" if ready else "starting",
        context=cluster.context,
        kubeconfig=str(cluster.kubeconfig),
        server=cluster.server,
        processes=running,
        nodes=nodes,
    )
