"""What the network of the models' namespace must let through for a stack. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from components.inference.namespace import ModelsNamespaceArgs
from components.inference.network_manifest import GatewayPods, RoleUser, StoreUser
from components.traffic.gateway_manifest import HTTP_SERVER_PORT, NAMESPACE, SELECTOR
from stacks.stores import accesses, ports

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stacks.config import StackConfig


def namespace_args(config: StackConfig) -> ModelsNamespaceArgs:
    """The namespace of the models: the gateway and what the stack lists reach it, and its pods the object stores they use."""
    return ModelsNamespaceArgs(
        namespace=config.cluster.namespace,
        gateway=GatewayPods(namespace=NAMESPACE, selector=SELECTOR, port=HTTP_SERVER_PORT),
        network=config.cluster.network,
        stores=tuple(store_users(config)),
        roles=tuple(role_users(config)),
    )


def store_users(config: StackConfig) -> Iterator[StoreUser]:
    """Servers and batch jobs that fetch from or write to an object store, with the ports they need there."""
    for label, name, _, access in accesses(config):
        yield StoreUser(label=label, value=name, ports=ports(access))


def role_users(config: StackConfig) -> Iterator[RoleUser]:
    """Those of them that find their credentials on the node: neither a Secret nor the service account's annotations say where else."""
    for label, name, _, access in accesses(config):
        if access.secret is None and not access.service_account_annotations:
            yield RoleUser(label=label, value=name)
