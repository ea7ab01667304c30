"""The variables under which `pulumi` and `kubectl` work on a target; `make env` prints them, the tools run Pulumi with them."""

import os
import shlex
from collections.abc import Mapping

from serving.registry.location import REGISTRY_VARIABLE, Location
from stacks.assets import ASSETS_VARIABLE
from stacks.providers import CONTEXT_OVERRIDE
from tools.pulumi_cli import PulumiStack
from tools.target import CLUSTER_VARIABLE, Target
from tools.toolchain import Toolchain

# The stack `local` keeps no secret, so its passphrase is published; the salt in stacks/Pulumi.local.yaml was made with it.
LOCAL_PASSPHRASE = "inference-platform-local"  # noqa: S105
LOCAL_STACK = "local"


def variables(target: Target, toolchain: Toolchain) -> dict[str, str]:
    """Everything `pulumi up -s local` needs to reach `target`, by variable."""
    named = {} if target.cluster is None else {CLUSTER_VARIABLE: target.cluster}
    return {
        **toolchain.env(),
        "PULUMI_BACKEND_URL": f"file://{target.backend}",
        "PULUMI_CONFIG_PASSPHRASE": LOCAL_PASSPHRASE,
        # Pulumi remembers the selected stack per clone; with this, a command without --stack works in every clone.
        "PULUMI_STACK": LOCAL_STACK,
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "KUBECONFIG": target.kubeconfig,
        ASSETS_VARIABLE: str(target.assets),
        CONTEXT_OVERRIDE: target.context,
        REGISTRY_VARIABLE: Location.of_file(target.registry).uri,
        **named,
    }


def shell_lines(target: Target, toolchain: Toolchain) -> str:
    """The variables as a POSIX shell takes them; PATH is prepended to, so that the line can be evaluated in any shell of any state."""
    exported = variables(target, toolchain)
    exported.pop("PATH")
    path = os.pathsep.join(map(str, toolchain.bin_dirs()))
    lines = [f'export PATH={shlex.quote(path)}{os.pathsep}"$PATH"']
    return "\n".join([*lines, *(f"export {name}={shlex.quote(value)}" for name, value in exported.items())])


def local_stack(environment: Mapping[str, str], toolchain: Toolchain) -> PulumiStack:
    return PulumiStack(env=environment, stack=LOCAL_STACK, pulumi=str(toolchain.path("pulumi")))
