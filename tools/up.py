"""`make up`: from a clone to a served prediction. Every step leaves alone what is there already, so an interrupted run is continued by the next."""

import os
import sys
from pathlib import Path

import yaml

from stacks.apps import APPS_IMAGE, apps_users
from stacks.kubeconfig import check_reachable, find_access
from stacks.loader import load
from tools import cluster
from tools.assets import write_assets
from tools.cli import Steps, run_main
from tools.cluster.spec import ClusterSpec
from tools.endpoint import Endpoint
from tools.environment import LOCAL_STACK, local_stack, variables
from tools.images import IMAGES, ImageArchive, ensure_images
from tools.images.buildah import check_machine
from tools.images.load import bring_images, check_way
from tools.own_cluster import check_vacant
from tools.paths import REPO
from tools.predict import demonstrate_all
from tools.registry import fill, location_of
from tools.target import Target, command_line, target_of
from tools.toolchain import Toolchain, charts, ensure
from tools.toolchain.debian import IMAGE_PACKAGES, PACKAGES, ensure_packages
from tools.toolchain.storage import locked

# Images that only the local cluster's own nodes need.
NODE_IMAGES = ("pause", "coredns")
# The provider names a field manager at random per object and keeps the name in the state. An update that was killed may have made objects that its state
# does not know; the next one would then be in conflict with that name for ever. On the local cluster nobody else's fields are at stake, so it takes them over.
TAKE_OVER = {"PULUMI_K8S_ENABLE_PATCH_FORCE": "true"}


def up(target: Target, registry: str | None = None) -> Endpoint:
    """Bring the platform up on `target` and return where it answers. Raises ToolError or PlatformError."""
    check(target, registry)
    images_of_local_stack()
    # Beside the folder, which `make down` removes. Of two at once the second waits, and finds all done.
    with locked(target.folder, f"make up on {target.context}"):
        return _bring_up(target, registry)


def _bring_up(target: Target, registry: str | None) -> Endpoint:
    steps = Steps(7)
    steps.run("packages of the distribution", lambda: ensure_packages(IMAGE_PACKAGES if target.cluster is None else PACKAGES))
    toolchain = steps.run("toolchain", ensure)
    images = steps.run("images", lambda: ensure_images(toolchain.path, names=images_of_local_stack()))
    refs = steps.run(f"cluster {target.context}", lambda: prepare_cluster(target, toolchain, images, registry))
    write_assets(target.assets, charts(), refs)
    steps.run("registry of versions", lambda: fill(location_of(target)))
    steps.run("stack local: pulumi up", lambda: deploy(target, toolchain))
    return steps.run("prediction", lambda: demonstrate_all(target, toolchain))


def check(target: Target, registry: str | None) -> None:
    """Raise, before the long builds, what would stop the run after them: a machine that cannot carry the cluster, a context that is not there."""
    if target.cluster is None:
        check_reachable(find_access([Path(part) for part in target.kubeconfig.split(os.pathsep)], target.context))
        check_way(target.context, registry)
        check_machine()
    else:
        cluster.check(ClusterSpec(name=target.cluster))


def images_of_local_stack() -> tuple[str, ...]:
    """What the stack file needs, beside what every local stack runs. Raises ConfigError for a stack file with faults, before anything is built."""
    file = REPO / "stacks" / f"Pulumi.{LOCAL_STACK}.yaml"
    config = load(LOCAL_STACK, yaml.safe_load(file.read_text(encoding="utf-8"))["config"])
    return (*IMAGES, *([APPS_IMAGE] if any(apps_users(config)) else []))


def prepare_cluster(target: Target, toolchain: Toolchain, images: dict[str, ImageArchive], registry: str | None) -> dict[str, str]:
    """Start the local cluster, or take the user's own, put the images where its nodes find them, and return the images' references there."""
    if target.cluster is None:
        check_vacant(target, toolchain)
        return bring_images(target.context, {name: image for name, image in images.items() if name not in NODE_IMAGES}, registry)
    node = cluster.NodeImages(pause=images["pause"].ref, coredns=images["coredns"].ref, archives=tuple(images[name].path for name in NODE_IMAGES))
    running = cluster.start(ClusterSpec(name=target.cluster), toolchain.path, node, say=lambda line: print(f"      {line}", flush=True))
    cluster.load_images(running, [image.path for image in images.values()])
    return {name: image.ref for name, image in images.items()}


def deploy(target: Target, toolchain: Toolchain) -> None:
    """`pulumi up`; objects that an interrupted one left unrecorded are taken over, on the local cluster alone. Raises ToolError."""
    stack = local_stack({**variables(target, toolchain), **(TAKE_OVER if target.cluster is not None else {})}, toolchain)
    stack.ensure()
    stack.deploy()


def main() -> int:
    parser = command_line(__doc__)
    parser.add_argument("--registry", help="with --context: push the images there (host, port, path) and let the nodes pull them")
    arguments = parser.parse_args()
    endpoint = up(target_of(arguments), arguments.registry)
    print(endpoint.invitation())
    return 0


if __name__ == "__main__":
    sys.exit(run_main(main))
