"""Which cluster the stack `local` goes to: the local one, or the user's own by its kube context."""

import argparse
import os
import re
from dataclasses import dataclass
from pathlib import Path

from components.core.command_line import CommandLine
from components.naming import content_hash
from tools.cluster.spec import ClusterSpec, Layout
from tools.errors import ToolError
from tools.paths import cache_dir

CLUSTER_VARIABLE = "INFERENCE_PLATFORM_CLUSTER"
DEFAULT_CLUSTER = "local"
# A context may be longer than a file name can be.
FOLDER_NAME_MAX = 100


@dataclass(frozen=True, kw_only=True)
class Target:
    """A cluster and the folder that holds what belongs to it alone: Pulumi's state, the registry and the list of assets.

    `cluster` is the name of the local cluster, None for the user's own: that one is never started, stopped or written to by anything but Pulumi.
    """

    cluster: str | None
    context: str
    kubeconfig: str
    folder: Path

    @property
    def assets(self) -> Path:
        return self.folder / "assets.json"

    @property
    def backend(self) -> Path:
        return self.folder / "pulumi"

    @property
    def registry(self) -> Path:
        return self.folder / "registry" / "mlflow.db"


def local_target(name: str) -> Target:
    layout = Layout.of(name)
    return Target(cluster=name, context=ClusterSpec(name=name).context, kubeconfig=str(layout.kubeconfig), folder=layout.root)


def own_target(context: str) -> Target:
    """The user's cluster by its context: state of another context is never touched, since each context has a folder of its own.

    The folder's name ends in a hash, because `a/b` and `a_b` are two contexts, and `..` may be one. Raises ToolError for a blank name.
    """
    if not context.strip():
        raise ToolError(f"CONTEXT={context!r} names no context", "one of `kubectl config get-contexts -o name`")
    folder = cache_dir() / "contexts" / f"{re.sub(r'[^A-Za-z0-9.-]', '_', context)[:FOLDER_NAME_MAX]}-{content_hash(context)}"
    return Target(cluster=None, context=context, kubeconfig=os.environ.get("KUBECONFIG") or str(Path.home() / ".kube" / "config"), folder=folder)


def command_line(description: str | None) -> argparse.ArgumentParser:
    """The argument every command takes; `target_of` reads it."""
    parser = CommandLine(description=description)
    parser.add_argument("--context", help="your own cluster, by its kube context")
    return parser


def target_of(arguments: argparse.Namespace) -> Target:
    """The target of a command line: `--context`, else the local cluster $INFERENCE_PLATFORM_CLUSTER.

    Only an absent variable means the default: an empty one is a mistake (`make down CLUSTER=$UNSET`) that must not reach another cluster.
    """
    if arguments.context is not None:
        return own_target(arguments.context)
    return local_target(os.environ.get(CLUSTER_VARIABLE, DEFAULT_CLUSTER))
