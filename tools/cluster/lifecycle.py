"""Start, stop and delete of a local cluster.

Start converges: each step makes what is missing and leaves the rest, so it can be repeated at any time, also after it was interrupted anywhere.
"""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tools.cluster import cgroups, network, node_config, pki, preflight, processes
from tools.cluster.host import find_program
from tools.cluster.identity import ProcessIdentity
from tools.cluster.images import NodeImages
from tools.cluster.node_config import NodeRuntime
from tools.cluster.processes import Endpoints, Plan
from tools.cluster.readiness import BringUp
from tools.cluster.spec import MAX_NODES, Addresses, Binaries, Cluster, ClusterSpec, Layout
from tools.cluster.state import State, locked, loopback_endpoints, merged
from tools.cluster.waiting import Progress
from tools.errors import ToolError
from tools.files import write_atomically
from tools.paths import REPO

# All processes in turn get five seconds at most; nearly all need none.
STOP_SECONDS = 60.0


def start(spec: ClusterSpec, binaries: Binaries, images: NodeImages | None = None, *, say: Callable[[str], None] = lambda _: None) -> Cluster:
    """Starts the cluster, or brings a running one to `spec`; returns when it is ready. `images` are needed by a cluster with nodes.

    Raises ToolError: before anything is changed when the machine cannot carry it, else with the log of what failed.
    """
    layout, progress = Layout.of(spec.name), Progress(say)
    with locked(layout):
        running = ProcessIdentity.read(layout.supervisor)
        previous = State.read(layout)
        spec = merged(spec, previous.spec if previous else None)
        if running is None:
            _preflight(spec, layout)
        state = _resolve(spec, previous, str(binaries("kubectl")), running=running is not None)
        if running is None:
            _remove_leftovers(spec.name)
        supervisor = _converge(state, layout, binaries, images, running)
        BringUp(state, layout, supervisor, progress).run(images)
    return state.cluster


def check(spec: ClusterSpec) -> None:
    """Raises ToolError when this machine cannot carry the cluster; for callers that have long work before start(). Programs may still be missing then."""
    layout = Layout.of(spec.name)
    if ProcessIdentity.read(layout.supervisor) is None:
        preflight.judge(spec, preflight.gather(spec, layout.containerd_socket(MAX_NODES)), layout.root)


def stop(name: str) -> bool:
    """Ends all processes of the cluster and takes its network and control groups away; data and images stay. False when it did not run."""
    layout = Layout.of(name)
    with locked(layout):
        return _stop(name, layout)


def delete(name: str, *, keep_images: bool = True) -> None:
    """Stops the cluster and removes its directory, but for the image stores (they save the next start an import) when `keep_images`."""
    layout = Layout.of(name)
    with locked(layout):
        _stop(name, layout)
        kept = {layout.image_store(number) for number in range(1, MAX_NODES + 1)} if keep_images else set()
        _remove_except(layout.root, kept)


def _preflight(spec: ClusterSpec, layout: Layout) -> None:
    facts = preflight.gather(spec, layout.containerd_socket(MAX_NODES))
    preflight.judge(spec, facts, layout.root)
    if not spec.control_plane_only:
        preflight.judge_programs(facts)


def _resolve(spec: ClusterSpec, previous: State | None, kubectl: str, *, running: bool) -> State:
    """Ports and addresses: a running cluster keeps all, a stopped one its addresses (they are in its data), while loopback ports are chosen anew."""
    if spec.control_plane_only:
        return State(spec=spec, endpoints=_loopback(spec, previous, running=running), block=None, kubectl=kubectl)
    used = network.host_networks(spec.name)
    addresses = previous.addresses if previous is not None else None
    if addresses is None:
        addresses = Addresses(network.choose_block(spec.name, used))
    elif not running and any(addresses.block.overlaps(each) for each in used):
        raise ToolError(
            f"the cluster's addresses {addresses.block} are now used by another network of this machine",
            f"give that network up, or begin afresh on other addresses: python -m tools.cluster delete --name {spec.name}",
        )
    return State(spec=spec, endpoints=Endpoints(host=addresses.node(1)), block=str(addresses.block), kubectl=kubectl)


def _loopback(spec: ClusterSpec, previous: State | None, *, running: bool) -> Endpoints:
    """The ports of before where that is possible, so that a kubeconfig someone copied stays right."""
    if previous is None:
        return loopback_endpoints(spec.api_port)
    kept = previous.endpoints
    same = spec.api_port in {0, kept.api_port}
    if running and not same:
        raise ToolError(f"cluster {spec.name!r} runs on port {kept.api_port}", f"stop it first: python -m tools.cluster stop --name {spec.name}")
    free = not any(preflight.port_taken(port) for port in (kept.api_port, kept.etcd_port, kept.etcd_peer_port))
    return kept if running or (same and free) else loopback_endpoints(spec.api_port)


def _system_or(binaries: Binaries) -> Binaries:
    """Kubernetes and etcd are the toolchain's, containerd is the distribution's."""
    return lambda name: (find_program(name) or Path(name)) if name == "containerd" else binaries(name)


def _converge(state: State, layout: Layout, binaries: Binaries, images: NodeImages | None, running: ProcessIdentity | None) -> ProcessIdentity:
    """Writes the cluster's files, makes what its nodes need of the kernel and hands the plan to the supervisor."""
    state.write(layout)
    pki.ensure(state.spec, layout, state.endpoints, state.addresses, binaries)
    current = Plan.from_json(layout.plan.read_text()) if running else None
    if state.addresses is not None:
        for number in range(1, state.spec.nodes + 1):
            _prepare_node(state.spec.name, number, layout, state.addresses, images, fresh=current is None or current.nodes < number)
    plan = processes.plan(state.spec, layout, state.endpoints, state.addresses, _system_or(binaries))
    if running is not None and plan == current:
        return running
    write_atomically(layout.plan, plan.to_json())
    if running is None:
        return _spawn_supervisor(layout)
    running.signal(signal.SIGHUP)
    return running


def _prepare_node(name: str, number: int, layout: Layout, addresses: Addresses, images: NodeImages | None, *, fresh: bool) -> None:
    if images is None:
        raise ToolError("a cluster with nodes needs the images of pause and CoreDNS", "build them: python -m tools.images")
    cni = preflight.cni_directory()
    if cni is None:
        raise ToolError("the CNI plugins are gone", "install the package containernetworking-plugins")
    runtime = NodeRuntime(pause_image=images.pause, cni_bin=cni, cgroup_root=cgroups.kubelet_root(name, number), cgroup_v2=cgroups.is_v2())
    for file, text in node_config.files(layout, addresses, number, runtime).items():
        write_atomically(file, text)
    if fresh:
        network.remove_node(name, number)
        network.create_node(name, number, addresses)
        cgroups.create_node(name, number)


def _spawn_supervisor(layout: Layout) -> ProcessIdentity:
    command = (sys.executable, "-m", "tools.cluster.supervisor", str(layout.root))
    layout.logs.mkdir(parents=True, exist_ok=True)
    layout.etcd.mkdir(mode=0o700, exist_ok=True)
    layout.supervisor.unlink(missing_ok=True)
    # A session of its own: a terminal's Ctrl-C is for the command that waits, not for the cluster.
    subprocess.run(command, check=False, cwd=REPO, start_new_session=True, stdin=subprocess.DEVNULL)
    started = ProcessIdentity.read(layout.supervisor)
    if started is None:
        raise ToolError("the cluster's supervisor did not start", f"its log says why: {layout.logs / 'supervisor.log'}")
    return started


def _stop(name: str, layout: Layout) -> bool:
    running = ProcessIdentity.read(layout.supervisor)
    if running is not None:
        running.signal(signal.SIGTERM)
        if not running.wait(STOP_SECONDS):
            running.signal(signal.SIGKILL)
            running.wait(5)
    _remove_leftovers(name)
    for file in (layout.supervisor, layout.process_states):
        file.unlink(missing_ok=True)
    return running is not None


def _remove_leftovers(name: str) -> None:
    """Takes away what a cluster that does not run (any more) has in the kernel. Only root can have left anything there."""
    if os.geteuid() != 0:
        return
    left = cgroups.remove(name)
    for number in range(MAX_NODES, 0, -1):
        network.remove_node(name, number)
    if left:
        raise ToolError(
            f"control groups of cluster {name!r} could not be removed: {', '.join(map(str, left))}",
            "a process in them cannot be killed; restart the machine",
        )


def _remove_except(root: Path, kept: set[Path]) -> None:
    """Removes `root` with all it holds, but for the directories in `kept` and their parents."""
    if not root.is_dir():
        return
    for entry in root.iterdir():
        if entry in kept:
            continue
        if entry.is_dir() and not entry.is_symlink():
            if any(path.is_relative_to(entry) for path in kept):
                _remove_except(entry, kept)
            else:
                shutil.rmtree(entry)
        else:
            entry.unlink()
    if not any(root.iterdir()):
        root.rmdir()
