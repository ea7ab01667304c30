"""Finding the platform that `make up` left running; `make e2e` brings it up and sets the variables."""

import os
from pathlib import Path

from stacks.assets import ASSETS_VARIABLE, load_assets
from tests.e2e.kube import Kube
from tests.e2e.platform import Platform, copy_of_stack_file
from tools.cluster.spec import Layout
from tools.cluster.state import State
from tools.paths import REPO
from tools.pulumi_cli import PulumiStack

CLUSTER_VARIABLE = "INFERENCE_PLATFORM_CLUSTER"
STACK = "local"
# What `make env` prints: the stack's backend and passphrase, the cluster, and the local charts and images.
VARIABLES = ("PULUMI_BACKEND_URL", "PULUMI_CONFIG_PASSPHRASE", "KUBECONFIG", ASSETS_VARIABLE)


def running_platform(folder: Path) -> Platform:
    """The platform of the cluster in $INFERENCE_PLATFORM_CLUSTER; edits go to a copy of the stack file in `folder`.

    Raises AssertionError where a variable or the cluster is missing: a tier that cannot run has not passed.
    """
    missing = [name for name in VARIABLES if name not in os.environ]
    assert not missing, f'not set: {", ".join(missing)}; run `make e2e`, or `make up` and then: eval "$(make env)"'
    name = os.environ.get(CLUSTER_VARIABLE, "local")
    state = State.read(Layout.of(name))
    assert state is not None, f"there is no local cluster {name!r}; run `make up`"
    return Platform(
        stack=PulumiStack(env={}, stack=STACK, config_file=copy_of_stack_file(REPO / "stacks" / f"Pulumi.{STACK}.yaml", folder)),
        kube=Kube(state.cluster.kubeconfig, state.cluster.context),
        node_address=state.cluster.node_ip,
        images=dict(load_assets().images),
    )
