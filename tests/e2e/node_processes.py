"""Processes of containers, found from the host: what a crash of a container is, seen from outside."""

import os
import signal
from pathlib import Path

from tests.e2e.kube import Manifest


def container_id(pod: Manifest, container: str) -> str:
    """Id of a running container as the runtime knows it."""
    [found] = [status["containerID"] for status in pod["status"]["containerStatuses"] if status["name"] == container]
    return str(found).rpartition("://")[2]


def kill_container(pod: Manifest, container: str) -> int:
    """SIGKILL every process of the container, without a word to Kubernetes; returns how many there were."""
    identifier = container_id(pod, container)
    found = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit() and identifier in _cgroups(entry)]
    for process in found:
        os.kill(process, signal.SIGKILL)
    return len(found)


def _cgroups(process: Path) -> str:
    try:
        return (process / "cgroup").read_text(encoding="utf-8")
    except OSError:  # it ended meanwhile
        return ""
