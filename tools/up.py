"""`make up`: from a clone to a served prediction. Every step leaves alone what is there already, so an interrupted run is continued by the next."""

import sys
from dataclasses import replace
from pathlib import Path

from stacks.kubeconfig import check_reachable, find_access
from tools import cluster
from tools.assets import write_assets
from tools.cli import Steps, run_main
from tools.cluster import preflight
from tools.cluster.spec import ClusterSpec, Layout
from tools.endpoint import Endpoint, find_endpoint
from tools.environment import local_stack, variables
from tools.images import ImageArchive, ensure_images
from tools.images.load import load_into_context
from tools.predict import demonstrate
from tools.target import Target, command_line, target_of
from tools.toolchain import Toolchain, charts, ensure
from tools.toolchain.debian import ensure_packages

# Images that only the local cluster's own nodes need.
NODE_IMAGES = ("pause", "coredns")


def up(target: Target) -> Endpoint:
    """Bring the platform up on `target` and return where it answers. Raises ToolError or PlatformError."""
    check(target)
    steps = Steps(6)
    if target.cluster is not None:
        steps.run("packages of the distribution", ensure_packages)
    toolchain = steps.run("toolchain", ensure)
    images = steps.run("images", lambda: ensure_images(toolchain.path))
    steps.run(f"cluster {target.context}", lambda: prepare_cluster(target, toolchain, images))
    write_assets(target.assets, charts(), {name: image.ref for name, image in images.items()})
    steps.run("stack local: pulumi up", lambda: deploy(target, toolchain))
    return steps.run("prediction", lambda: demonstrate(find_endpoint(target, toolchain)))


def check(target: Target) -> None:
    """Raise, before the long builds, what would stop the run after them: a machine that cannot carry the cluster, a context that is not there."""
    if target.cluster is None:
        check_reachable(find_access([Path(part) for part in target.kubeconfig.split(":")], target.context))
        return
    spec, layout = ClusterSpec(name=target.cluster), Layout.of(target.cluster)
    # Programs that are missing now are installed by the toolchain step.
    facts = replace(preflight.gather(spec, layout.containerd_socket(1)), missing_programs=(), cni=layout.root)
    preflight.judge(spec, facts, layout.root)


def prepare_cluster(target: Target, toolchain: Toolchain, images: dict[str, ImageArchive]) -> None:
    """Start the local cluster, or check the user's own, and put the images where its nodes find them."""
    if target.cluster is None:
        load_into_context(target.context, [image for name, image in images.items() if name not in NODE_IMAGES])
        return
    node = cluster.NodeImages(pause=images["pause"].ref, coredns=images["coredns"].ref, archives=tuple(images[name].path for name in NODE_IMAGES))
    running = cluster.start(ClusterSpec(name=target.cluster), toolchain.path, node, say=lambda line: print(f"      {line}", flush=True))
    cluster.load_images(running, [image.path for image in images.values()])


def deploy(target: Target, toolchain: Toolchain) -> None:
    stack = local_stack(variables(target, toolchain), toolchain)
    stack.ensure()
    stack.deploy()


def main() -> int:
    endpoint = up(target_of(command_line(__doc__).parse_args()))
    print(endpoint.invitation())
    return 0


if __name__ == "__main__":
    sys.exit(run_main(main))
