"""What a machine must offer, looked at before anything is changed: facts are gathered in one place and judged by a pure function."""

import os
import platform
import shutil
import socket
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tools.cluster import cgroups
from tools.cluster.host import find_program
from tools.cluster.processes import LOOPBACK
from tools.cluster.spec import ClusterSpec
from tools.errors import ToolError

OWN_CLUSTER = "use your own cluster: make up CONTEXT=<kube context>"
# Of the wheels that hold Envoy and Triton.
PROCESSORS = frozenset({"x86_64", "AMD64"})
# Measured: control plane and node agents hold 0.6 GiB, Istio and two Triton servers 0.2 GiB; their programs' pages, another 1.2 GiB, are in steady use.
MEMORY_MIB = 2048
CONTROL_PLANE_MEMORY_MIB = 512
# Measured: 1.6 GiB of images for the default platform, unpacked; as much again for their next versions, and room for etcd and logs.
DISK_MIB = 4096
CONTROL_PLANE_DISK_MIB = 512
PROGRAMS = {
    "containerd": "containerd",
    "ctr": "containerd",
    "containerd-shim-runc-v2": "containerd",
    "runc": "runc",
    "ip": "iproute2",
    "nft": "nftables",
    "sysctl": "procps",
}
CNI_DIRECTORIES = (Path("/usr/lib/cni"), Path("/opt/cni/bin"), Path("/usr/libexec/cni"))
CNI_PLUGINS = ("ptp", "host-local")
# unix(7): sun_path holds 108 bytes with the closing zero.
SOCKET_PATH_LIMIT = 107


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What the machine has."""

    system: str
    processor: str
    root: bool
    memory_mib: int
    disk_mib: int
    file_system: str
    overlay: bool
    controllers: frozenset[str]
    missing_programs: tuple[str, ...]
    cni: Path | None
    port_taken: bool
    socket_path_length: int


def judge(spec: ClusterSpec, facts: Facts, directory: Path) -> None:
    """Raises ToolError with one sentence and the way out when the cluster cannot run on a machine like that."""
    if facts.system != "Linux":
        raise ToolError(f"a local cluster needs Linux, this is {facts.system}", OWN_CLUSTER)
    if not spec.control_plane_only and facts.processor not in PROCESSORS:
        raise ToolError(f"the images of a local cluster are for x86_64, this machine is {facts.processor}", "run it on an x86_64 machine")
    if not spec.control_plane_only and not facts.root:
        raise ToolError("a local cluster with nodes needs root: it makes network and mount namespaces", f"run as root, or {OWN_CLUSTER}")
    memory = CONTROL_PLANE_MEMORY_MIB if spec.control_plane_only else MEMORY_MIB
    if facts.memory_mib < memory:
        raise ToolError(f"{facts.memory_mib} MiB of memory are available, the cluster needs {memory} MiB", f"end other programs, or {OWN_CLUSTER}")
    disk = CONTROL_PLANE_DISK_MIB if spec.control_plane_only else DISK_MIB
    if facts.disk_mib < disk:
        raise ToolError(
            f"{facts.disk_mib} MiB are free on the disk of {directory}, the cluster needs {disk} MiB",
            "make room, or move the cache to another disk with INFERENCE_PLATFORM_CACHE=<directory>",
        )
    if facts.port_taken:
        raise ToolError(
            f"port {spec.api_port} on {LOOPBACK} is taken by another program", "leave --api-port away to get a free one, or end that program"
        )
    if not spec.control_plane_only:
        _judge_kernel(facts, directory)


def judge_programs(facts: Facts) -> None:
    """Raises ToolError when a node's programs are not installed."""
    if facts.missing_programs:
        packages = sorted({PROGRAMS[program] for program in facts.missing_programs})
        raise ToolError(f"not installed: {', '.join(facts.missing_programs)}", f"install the packages {' '.join(packages)}, or {OWN_CLUSTER}")
    if facts.cni is None:
        raise ToolError(
            f"the CNI plugins {' and '.join(CNI_PLUGINS)} are in none of {', '.join(map(str, CNI_DIRECTORIES))}",
            f"install the package containernetworking-plugins, or {OWN_CLUSTER}",
        )


def _judge_kernel(facts: Facts, directory: Path) -> None:
    if not facts.overlay:
        raise ToolError("the kernel has no overlay file system, which container images need", OWN_CLUSTER)
    if facts.file_system == "overlay":
        raise ToolError(
            f"{directory} is itself on an overlay file system, on which container images cannot be unpacked",
            "move the cache to a volume with INFERENCE_PLATFORM_CACHE=<directory>",
        )
    missing = sorted(set(cgroups.REQUIRED) - facts.controllers)
    if missing:
        raise ToolError(f"the kernel offers no cgroup controller for {', '.join(missing)}", f"mount it under {cgroups.ROOT}, or {OWN_CLUSTER}")
    if facts.socket_path_length > SOCKET_PATH_LIMIT:
        raise ToolError(
            f"the path of containerd's socket below {directory} has {facts.socket_path_length} characters, a socket's path may have {SOCKET_PATH_LIMIT}",
            "move the cache to a shorter path with INFERENCE_PLATFORM_CACHE=<directory>",
        )


def cni_directory() -> Path | None:
    """Where the CNI plugins are installed, None when nowhere."""
    return next((directory for directory in CNI_DIRECTORIES if all((directory / plugin).exists() for plugin in CNI_PLUGINS)), None)


def file_system(path: Path, mounts: str) -> str:
    """Type of the file system that holds `path`, by the text of /proc/self/mounts; later lines lie over earlier ones."""
    best, kind = Path("/"), "unknown"
    for line in mounts.splitlines():
        _, target, found, *_ = line.split(" ")
        point = Path(target.replace("\\040", " "))
        if path.is_relative_to(point) and len(point.parts) >= len(best.parts):
            best, kind = point, found
    return kind


def _has_overlay() -> bool:
    if "\toverlay\n" in Path("/proc/filesystems").read_text():
        return True
    modprobe = find_program("modprobe")
    return modprobe is not None and subprocess.run((str(modprobe), "--dry-run", "overlay"), check=False, capture_output=True).returncode == 0


def _memory_mib() -> int:
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith("MemAvailable:"))


def port_taken(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return True
    return False


def gather(spec: ClusterSpec, socket_path: Path) -> Facts:
    """Looks at this machine; a directory that does not exist yet is judged by its nearest parent."""
    existing = next(parent for parent in (socket_path, *socket_path.parents) if parent.exists())
    linux = platform.system() == "Linux"
    return Facts(
        system=platform.system(),
        processor=platform.machine(),
        root=os.geteuid() == 0,
        memory_mib=_memory_mib() if linux else 0,
        disk_mib=shutil.disk_usage(existing).free // 1024**2,
        file_system=file_system(existing.resolve(), Path("/proc/self/mounts").read_text()) if linux else "unknown",
        overlay=linux and _has_overlay(),
        controllers=frozenset(cgroups.available()),
        missing_programs=tuple(program for program in PROGRAMS if find_program(program) is None),
        cni=cni_directory(),
        port_taken=spec.api_port != 0 and port_taken(spec.api_port),
        socket_path_length=len(str(socket_path)),
    )
