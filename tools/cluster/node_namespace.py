"""A node's private view of the machine: its own mounts at the paths Kubernetes takes for granted, and its network namespace.

Seen from the host nothing is mounted, and when the last process of the node ends, the kernel takes every mount away.
"""

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tools.cluster import kernel
from tools.cluster.network import NETNS_DIR, namespace
from tools.cluster.spec import Layout

# Directories in which we need mount points that the host may not have, and must not get from us.
MASKED = (Path("/var/lib"), Path("/var/log"), Path("/run"))
# What must not outlive the node's processes: sandboxes, their addresses and network namespaces.
VOLATILE = (Path("/run/containerd"), Path("/run/netns"), Path("/var/lib/cni"))


@dataclass(frozen=True)
class NodeNamespaces:
    """Open descriptors that keep a node's namespaces in being."""

    network: int
    mounts: int

    def enter(self) -> None:
        """Moves the calling process (a fresh fork) into the node."""
        kernel.setns(self.network)
        kernel.setns(self.mounts)


def persistent_mounts(layout: Layout, number: int) -> dict[Path, Path]:
    """Standard paths on a node and the cluster's directories that lie there."""
    node = layout.node(number)
    return {
        Path("/var/lib/kubelet"): node / "kubelet",
        Path("/var/log/pods"): node / "logs" / "pods",
        Path("/var/log/containers"): node / "logs" / "containers",
    }


def _mask(directory: Path) -> None:
    """Lays an empty file system over `directory` and binds every entry back: the same content, in which new mount points leave no trace."""
    below = os.open(directory, os.O_PATH | os.O_DIRECTORY)
    entries = list(directory.iterdir())
    links = {entry.name: entry.readlink() for entry in entries if entry.is_symlink()}
    directories = {entry.name for entry in entries if entry.is_dir()}
    kernel.mount("tmpfs", directory, "tmpfs", data="mode=755")
    for entry in entries:
        if entry.name in links:
            entry.symlink_to(links[entry.name])
            continue
        if entry.name in directories:
            entry.mkdir()
        else:
            entry.touch()
        # What is in /run comes and goes: an entry that went meanwhile is not missed.
        with suppress(FileNotFoundError):
            kernel.mount(f"/proc/self/fd/{below}/{entry.name}", entry, flags=kernel.MS_BIND | kernel.MS_REC)
    os.close(below)


def _populate(layout: Layout, number: int) -> None:
    # Nothing of ours gets out; what the host unmounts goes here as well, so that we keep nobody's file system or network namespace alive.
    kernel.mount("none", Path("/"), flags=kernel.MS_REC | kernel.MS_SLAVE)
    for directory in MASKED:
        _mask(directory)
    for target in VOLATILE:
        target.mkdir(parents=True, exist_ok=True)
        kernel.mount("tmpfs", target, "tmpfs", data="mode=755")
    for target, source in persistent_mounts(layout, number).items():
        source.mkdir(parents=True, exist_ok=True)
        target.mkdir(parents=True, exist_ok=True)
        kernel.mount(str(source), target, flags=kernel.MS_BIND)
    # Shared among the node's own: volumes with mount propagation ask for it.
    kernel.mount("none", Path("/"), flags=kernel.MS_REC | kernel.MS_SHARED)


def open_node(name: str, layout: Layout, number: int) -> NodeNamespaces:
    """Opens node `number`'s network namespace and makes its mount namespace. Raises OSError when the kernel refuses."""
    network = os.open(NETNS_DIR / namespace(name, number), os.O_RDONLY | os.O_CLOEXEC)
    ready_read, ready_write = os.pipe()
    done_read, done_write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(ready_read)
        os.close(done_write)
        try:
            kernel.unshare(kernel.CLONE_NEWNS)
            _populate(layout, number)
            os.write(ready_write, b"1")
            os.read(done_read, 1)
        except OSError as error:
            os.write(ready_write, f"0{error}".encode())
        finally:
            os._exit(0)
    os.close(ready_write)
    os.close(done_read)
    answer = os.read(ready_read, 1000).decode()
    if answer != "1":
        raise OSError(f"node {number}'s mounts cannot be made: {answer[1:]}")
    mounts = os.open(f"/proc/{pid}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
    os.close(done_write)
    os.close(ready_read)
    os.waitpid(pid, 0)
    return NodeNamespaces(network, mounts)
