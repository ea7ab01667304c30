"""The stack's one Kubernetes provider: explicit, bound to a named context, equal on every machine."""

import os
from collections.abc import Mapping

import pulumi_kubernetes as kubernetes

from stacks.config import Environment, StackConfig
from stacks.kubeconfig import check_reachable, find_access, kubeconfig_paths

CONTEXT_OVERRIDE = "INFERENCE_PLATFORM_CONTEXT"


def cluster_context(config: StackConfig, environ: Mapping[str, str] = os.environ) -> str:
    """The context of the stack.

    $INFERENCE_PLATFORM_CONTEXT takes the place of `cluster.context` in the environment local alone (`make up CONTEXT=...`): everywhere else a
    variable of the shell must not be able to move a stack to another cluster.
    """
    override = environ.get(CONTEXT_OVERRIDE)
    return override if override and config.environment is Environment.LOCAL else config.cluster.context


def check_cluster(config: StackConfig) -> None:
    """Raise AssetError, before anything is registered, when the context does not exist or its API server cannot be reached."""
    check_reachable(find_access(kubeconfig_paths(config.cluster.kubeconfig), cluster_context(config)))


def kubernetes_provider(config: StackConfig) -> kubernetes.Provider:
    """The provider all Kubernetes resources of the stack use.

    An absent `cluster.kubeconfig` is passed as the empty string: the SDK would put $KUBECONFIG in, which differs between machines and would
    show as a change; the provider takes an empty string as "look at $KUBECONFIG yourself". `cluster_identifier` makes the context the identity
    of the cluster: another context means other objects, a moved kubeconfig or a new API server address does not. Resources of a cluster that
    does not answer are never taken for deleted.
    """
    context = cluster_context(config)
    return kubernetes.Provider(
        "kubernetes",
        context=context,
        cluster_identifier=context,
        kubeconfig=config.cluster.kubeconfig or "",
        enable_server_side_apply=True,
        delete_unreachable=False,
        skip_update_unreachable=False,
        suppress_deprecation_warnings=True,
    )
