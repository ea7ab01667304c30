"""The user's own cluster: what is there already and not ours stays untouched.

Pulumi creates by server-side apply, which takes over an object of the same name without a word, and a later `make down` would delete it.
"""

import json
import os
import subprocess
from collections.abc import Iterable
from typing import Any

import yaml

from components import labels
from components.addons.istio_values import NAMESPACE as ISTIO_NAMESPACE
from components.core.slots import GPU_RESOURCE
from components.devices.simulated_gpus_manifest import NAME as SIMULATOR
from components.traffic.gateway_manifest import NAMESPACE as GATEWAY_NAMESPACE
from stacks.loader import PROJECT
from tools.environment import LOCAL_STACK
from tools.errors import ToolError
from tools.paths import REPO
from tools.target import Target
from tools.toolchain import Toolchain

Manifest = dict[str, Any]


def check_vacant(target: Target, toolchain: Toolchain) -> None:
    """Raise ToolError when the stack would take something over: a namespace that the platform did not make, or the name of real GPUs."""
    settings = yaml.safe_load((REPO / "stacks" / f"Pulumi.{LOCAL_STACK}.yaml").read_text(encoding="utf-8"))["config"][f"{PROJECT}:cluster"]
    wanted = {ISTIO_NAMESPACE, GATEWAY_NAMESPACE, settings["namespace"]}
    if foreign := foreign_namespaces(items(target, toolchain, "namespaces"), wanted):
        raise ToolError(
            f"namespace {', '.join(foreign)} of context {target.context} was not made by this platform, which would take it over and later delete it",
            "use a cluster that has none of that name",
        )
    if "simulatedGpus" in settings and (nodes := nodes_with_gpus(items(target, toolchain, "nodes"), items(target, toolchain, "daemonsets"))):
        raise ToolError(
            f"node {', '.join(nodes)} of context {target.context} has GPUs, which the simulated ones would hide",
            "drop them from the stack: pulumi config rm --path cluster.simulatedGpus --stack local",
        )


def foreign_namespaces(namespaces: Iterable[Manifest], wanted: set[str]) -> list[str]:
    """Those of `wanted` that are there without the platform's label."""
    foreign = [found["metadata"] for found in namespaces if found["metadata"].get("labels", {}).get(labels.PART_OF) != labels.PLATFORM]
    return sorted(wanted & {metadata["name"] for metadata in foreign})


def nodes_with_gpus(nodes: Iterable[Manifest], daemonsets: Iterable[Manifest]) -> list[str]:
    """Nodes that offer GPUs; none where the simulator runs, for then they are its own."""
    if any(found["metadata"]["name"] == SIMULATOR for found in daemonsets):
        return []
    return sorted(node["metadata"]["name"] for node in nodes if node["status"].get("capacity", {}).get(GPU_RESOURCE, "0") != "0")


def items(target: Target, toolchain: Toolchain, kind: str) -> list[Manifest]:
    """All objects of a kind. Raises ToolError with kubectl's own words."""
    # The variable, since it may name several files, and the flag may not.
    done = subprocess.run(
        [str(toolchain.path("kubectl")), "--context", target.context, "get", kind, "--all-namespaces", "--output", "json"],
        env={**os.environ, "KUBECONFIG": target.kubeconfig},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise ToolError(f"the {kind} of {target.context} cannot be listed: {done.stderr.strip()}", f"kubectl --context {target.context} get {kind}")
    found: list[Manifest] = json.loads(done.stdout)["items"]
    return found
