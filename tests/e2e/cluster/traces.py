"""What a cluster leaves behind on the host, looked for where it could be."""

import json
import subprocess
from pathlib import Path

from tools.cluster import cgroups
from tools.cluster.network import host_interface, namespace
from tools.cluster.spec import MAX_NODES, Layout


def _links() -> set[str]:
    return {entry.name for entry in Path("/sys/class/net").iterdir()}


def traces(name: str) -> list[str]:
    """Processes, control groups, namespaces, interfaces, mounts and routes of the cluster on the host; empty when it left nothing."""
    root = str(Layout.of(name).root)
    found = [f"interface {host_interface(name)}"] if host_interface(name) in _links() else []
    found += [f"namespace {netns}" for number in range(1, MAX_NODES + 1) if Path("/run/netns", netns := namespace(name, number)).exists()]
    found += [f"mount {line}" for line in Path("/proc/mounts").read_text().splitlines() if root in line or f"/ip-{name}-" in line]
    found += [f"group {tree}" for hierarchy in cgroups.hierarchies() if (tree := hierarchy / cgroups.PARENT / name).exists()]
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            continue
        found += [f"process {process.name}: {command}"] if f"{root}/" in command else []
    return found


def host_rules() -> str:
    """The host's packet filter rules and, without those of clusters, routes: to be the same after as before."""
    rules = subprocess.run(("nft", "list", "ruleset"), check=True, capture_output=True, text=True).stdout
    routes = json.loads(subprocess.run(("ip", "-json", "route"), check=True, capture_output=True, text=True).stdout)
    return rules + json.dumps([route for route in routes if not str(route.get("dev", "")).startswith("ip-")])
