"""Programs that come as distribution packages: container runtime, network tools, image builder."""

import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tools.errors import ToolError
from tools.toolchain.progress import Progress

# Package -> something of it that must be there: a program, or one of several files (distributions differ in where they put CNI plugins).
CLUSTER_PACKAGES: dict[str, tuple[str, ...]] = {
    "containerd": ("containerd",),
    "runc": ("runc",),
    "containernetworking-plugins": ("/usr/lib/cni/bridge", "/opt/cni/bin/bridge", "/usr/libexec/cni/bridge"),
    "iproute2": ("ip",),
    "nftables": ("nft",),
    "procps": ("sysctl",),
    "iptables": ("iptables",),
    "conntrack": ("conntrack",),
    "mount": ("mount",),
    "util-linux": ("nsenter",),
}
IMAGE_PACKAGES: dict[str, tuple[str, ...]] = {"buildah": ("buildah",), "debootstrap": ("debootstrap",)}
PACKAGES = CLUSTER_PACKAGES | IMAGE_PACKAGES

# A person's PATH may leave these out.
SYSTEM_FOLDERS = ("/usr/local/sbin", "/usr/sbin", "/sbin")
LOCK_TIMEOUT_SECONDS = 120
INSTALL = ("apt-get", "install", "-y", "-q", "--no-install-recommends", "-o", f"DPkg::Lock::Timeout={LOCK_TIMEOUT_SECONDS}")
POLICY = Path("/usr/sbin/policy-rc.d")
REPORTED_CHARACTERS = 2000


def missing_packages(packages: Mapping[str, tuple[str, ...]]) -> list[str]:
    """Those of `packages` that left no trace on this machine, whoever installed them."""
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), *SYSTEM_FOLDERS])
    return [package for package, traces in packages.items() if not any(_present(trace, path) for trace in traces)]


def _present(trace: str, path: str) -> bool:
    return Path(trace).exists() if trace.startswith("/") else shutil.which(trace, path=path) is not None


def ensure_packages(packages: Mapping[str, tuple[str, ...]] = PACKAGES) -> None:
    """Install what is missing: with apt-get as root on a Debian-like system. Raises ToolError that names the packages everywhere else."""
    missing = missing_packages(packages)
    if not missing:
        return
    names = " ".join(missing)
    if not shutil.which("apt-get"):
        raise ToolError(f"these programs are missing: {names} (the names are Debian's)", "install them with this system's package manager")
    if os.geteuid() != 0:
        raise ToolError(f"these packages are missing: {names}", f"run `sudo apt-get install --no-install-recommends {names}`, or run this as root")
    with Progress(f"installing {names}"), _no_services():
        _install(missing)
    still_missing = missing_packages(packages)
    if still_missing:
        raise ToolError(f"apt-get installed {' '.join(still_missing)}, but their programs are not there", "reinstall them by hand")


def _install(packages: Iterable[str]) -> None:
    """A first try with the package lists as they are; if that fails, finish what an interrupted dpkg left, fetch new lists and try again."""
    if not _apt([*INSTALL, *packages]).returncode:
        return
    _apt(["dpkg", "--configure", "-a"])
    update = _apt(["apt-get", "update", "-q"])
    done = _apt([*INSTALL, *packages])
    if done.returncode:
        output = (update.stdout if update.returncode else "") + done.stdout
        raise ToolError(
            f"apt-get could not install {' '.join(packages)}:\n{output.strip()[-REPORTED_CHARACTERS:]}",
            "check the network and /etc/apt, then run it again",
        )


def _apt(command: list[str]) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    return subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False
    )


@contextmanager
def _no_services() -> Iterator[None]:
    """Keep packages from starting their services: the cluster runs its own containerd, the machine's must not change. A policy of the machine's own stays."""
    if POLICY.exists():
        yield
        return
    POLICY.write_text("#!/bin/sh\nexit 101\n")
    POLICY.chmod(0o755)
    try:
        yield
    finally:
        POLICY.unlink(missing_ok=True)
