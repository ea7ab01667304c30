"""The platform under test, as `make e2e` brought it up."""

import os
from pathlib import Path

from stacks.assets import load_assets
from tests.e2e.kube import Kube
from tests.e2e.platform import Platform
from tools.cluster.spec import Layout
from tools.cluster.state import State
from tools.environment import LOCAL_STACK, variables
from tools.paths import REPO
from tools.pulumi_cli import PulumiStack
from tools.target import CLUSTER_VARIABLE, DEFAULT_CLUSTER, local_target
from tools.toolchain import ensure


def running_platform(folder: Path) -> Platform:
    """The platform of the local cluster $INFERENCE_PLATFORM_CLUSTER; edits go to a copy of the stack file in `folder`.

    Raises AssertionError where it does not run: a tier that cannot run has not passed.
    """
    name = os.environ.get(CLUSTER_VARIABLE) or DEFAULT_CLUSTER
    target, state = local_target(name), State.read(Layout.of(name))
    assert state is not None, f"there is no local cluster {name!r}; run `make e2e`, or `make up CLUSTER={name}` before"
    toolchain = ensure()
    environment = variables(target, toolchain)
    return Platform(
        stack=PulumiStack(env=environment, stack=LOCAL_STACK, pulumi=str(toolchain.path("pulumi")), config_file=copy_of_stack_file(folder)),
        kube=Kube(state.cluster.kubeconfig, state.cluster.context),
        node_address=state.cluster.node_ip,
        images=dict(load_assets(environment).images),
    )


def copy_of_stack_file(folder: Path) -> Path:
    """A copy under the same name, so that no test touches the clone."""
    name = f"Pulumi.{LOCAL_STACK}.yaml"
    copy = folder / name
    copy.write_bytes((REPO / "stacks" / name).read_bytes())
    return copy
