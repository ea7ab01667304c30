"""`make status`: the cluster, its processes, the models with their weights, and what the registry says about their versions."""

import sys
from typing import Any

from serving.registry.lookup import read
from serving.registry.table import show, version_table
from tools import cluster
from tools.cli import run_main
from tools.environment import local_stack, variables
from tools.registry import location_of
from tools.target import Target, command_line, target_of
from tools.toolchain import ensure


def describe_cluster(target: Target) -> tuple[list[str], bool]:
    """Lines about the cluster, and whether it runs."""
    if target.cluster is None:
        return [f"cluster {target.context} (yours)"], target.backend.exists()
    found = cluster.status(target.cluster)
    lines = [f"cluster {target.cluster}: {found.state}"]
    lines += [f"  node {node.name} {node.ip} {'ready' if node.ready else 'NOT READY'}" for node in found.nodes]
    lines += [f"  {process.name}: {process.state}, restarted {process.restarts} times" for process in found.processes if process.restarts]
    return lines, found.state == "ready" and target.backend.exists()


def describe_models(outputs: dict[str, Any]) -> list[str]:
    """One line per model: versions, weights and host name."""
    lines = []
    for name, model in outputs.get("models", {}).items():
        weights = ", ".join(f"{version} {weight} %" for version, weight in model["weights"].items())
        lines.append(f"  {name}: {weights}   (Host: {model['host']})")
    return lines or ["  none; run make up"]


def main() -> int:
    target = target_of(command_line(__doc__).parse_args())
    lines, running = describe_cluster(target)
    print("\n".join(lines))
    if not running:
        print("the platform does not run: make up")
        return 1
    toolchain = ensure()
    print("models")
    print("\n".join(describe_models(local_stack(variables(target, toolchain), toolchain).outputs())))
    versions = read(location_of(target)).models
    if versions:
        show(version_table(versions))
    return 0


if __name__ == "__main__":
    sys.exit(run_main(main))
