"""The cluster's own control groups, on version 1 (also hybrid) and version 2 hosts: made before the start, gone after the stop."""

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
PARENT = "inference-platform"
# kubelet and runc cannot do without these; hugetlb and others are used when there.
REQUIRED = ("cpu", "cpuset", "memory", "pids")


def is_v2(root: Path = ROOT) -> bool:
    return (root / "cgroup.controllers").exists()


def available(root: Path = ROOT) -> set[str]:
    """Names of the controllers that can be used."""
    if is_v2(root):
        return set((root / "cgroup.controllers").read_text().split())
    if not root.is_dir():
        return set()
    return {entry.name for entry in root.iterdir() if (entry / "cgroup.procs").exists()}


def hierarchies(root: Path = ROOT) -> list[Path]:
    """Mount points in which a cluster has a directory: one on version 2, one for each controller on version 1."""
    if is_v2(root):
        return [root]
    if not root.is_dir():
        return []
    # Links such as cpu -> cpu,cpuacct name the same hierarchy twice.
    return [entry for entry in sorted(root.iterdir()) if not entry.is_symlink() and (entry / "cgroup.procs").exists()]


def kubelet_root(name: str, node: int) -> str:
    """The group under which a node's pods live, as the kubelet's `cgroupRoot` wants it."""
    return f"/{PARENT}/{name}/node-{node}"


def _create(hierarchy: Path, parts: tuple[str, ...]) -> Path:
    directory = hierarchy
    for part in parts:
        if is_v2(hierarchy):
            for controller in (directory / "cgroup.controllers").read_text().split():
                # One at a time: a controller that cannot be passed on (cpu, while a real-time process has it) must not hold back the others.
                with contextlib.suppress(OSError):
                    (directory / "cgroup.subtree_control").write_text(f"+{controller}")
        parent, directory = directory, directory / part
        directory.mkdir(exist_ok=True)
        for file in ("cpuset.cpus", "cpuset.mems"):
            # A new version 1 cpuset is empty, and an empty one takes no process.
            if not is_v2(hierarchy) and (directory / file).exists() and not (directory / file).read_text().strip():
                (directory / file).write_text((parent / file).read_text())
    return directory


def create_node(name: str, node: int) -> None:
    for hierarchy in hierarchies():
        _create(hierarchy, (PARENT, name, f"node-{node}"))


def join(name: str) -> None:
    """Moves the calling process, and what it will start, into the cluster's group for its own processes."""
    for hierarchy in hierarchies():
        (_create(hierarchy, (PARENT, name, "daemons")) / "cgroup.procs").write_text(str(os.getpid()))


@contextlib.contextmanager
def limited_memory(name: str, mib: int) -> Iterator[Path]:
    """A group whose processes have `mib` MiB of memory together, as those of a container; removed afterwards with all that runs in it."""
    hierarchy = ROOT if is_v2() else ROOT / "memory"
    group = _create(hierarchy, (PARENT, name, "limited"))
    (group / ("memory.max" if is_v2() else "memory.limit_in_bytes")).write_text(str(mib * 2**20))
    try:
        yield group
    finally:
        remove(name)


def _processes(directory: Path) -> set[int]:
    found: set[int] = set()
    for file in directory.rglob("cgroup.procs"):
        # A group may go, and on version 2 be of a kind that has no list, while we look.
        with contextlib.suppress(OSError):
            found.update(int(pid) for pid in file.read_text().split())
    return found


def node_processes(name: str, node: int) -> set[int]:
    """Processes of the pods on a node, numbered as the caller's process namespace sees them."""
    return {pid for hierarchy in hierarchies() for pid in _processes(hierarchy / PARENT / name / f"node-{node}") if pid}


def signal_node(name: str, node: int, number: signal.Signals) -> None:
    for pid in node_processes(name, node):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def remove(name: str, *, seconds: float = 20) -> list[Path]:
    """Ends what still runs in the cluster's groups and removes them; answers with what could not be removed in time."""
    trees = [hierarchy / PARENT / name for hierarchy in hierarchies()]
    deadline = time.monotonic() + seconds
    while left := [tree for tree in trees if tree.exists()]:
        for tree in left:
            for pid in _processes(tree):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            _remove_tree(tree)
        if time.monotonic() > deadline:
            break
        time.sleep(0.02)
    for hierarchy in hierarchies():
        # Fails while another cluster is there, as it should.
        with contextlib.suppress(OSError):
            (hierarchy / PARENT).rmdir()
    return [tree for tree in trees if tree.exists()]


def _remove_tree(tree: Path) -> None:
    directories = [Path(path) for path, _, _ in os.walk(tree, topdown=False)]
    for directory in directories:
        with contextlib.suppress(OSError):
            directory.rmdir()
