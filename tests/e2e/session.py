"""The platform under test: what `make up` brings up, and leaves alone where it runs already."""

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
from tools.up import up


def running_platform(folder: Path) -> Platform:
    """The platform of the local cluster $INFERENCE_PLATFORM_CLUSTER; edits go to a copy of the stack file in `folder`.

    Raises ToolError or PlatformError where it cannot be brought up.
    """
    target = local_target(os.environ.get(CLUSTER_VARIABLE) or DEFAULT_CLUSTER)
    up(target)
    toolchain = ensure()
    environment = variables(target, toolchain)
    state = State.read(Layout.of(str(target.cluster)))
    assert state is not None
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
