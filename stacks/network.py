"""What the network of the models' namespace must let through for a stack. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from components import labels
from components.core.object_store import ObjectStoreAccessSpec
from components.inference.namespace import ModelsNamespaceArgs
from components.inference.network_manifest import GatewayPods, StoreUser
from components.traffic.gateway_manifest import HTTP_SERVER_PORT, NAMESPACE, SELECTOR

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stacks.config import StackConfig

HTTPS_PORT = 443


def namespace_args(config: StackConfig) -> ModelsNamespaceArgs:
    """The namespace of the models: the gateway and what the stack lists reach it, and its pods the object stores they use."""
    return ModelsNamespaceArgs(
        namespace=config.cluster.namespace,
        gateway=GatewayPods(namespace=NAMESPACE, selector=SELECTOR, port=HTTP_SERVER_PORT),
        network=config.cluster.network,
        stores=tuple(store_users(config)),
    )


def store_users(config: StackConfig) -> Iterator[StoreUser]:
    """Servers and batch jobs that fetch from or write to an object store, with the ports they need there."""
    for name, model in config.models.items():
        if isinstance(model.repository, ObjectStoreAccessSpec):
            yield from (StoreUser(label=labels.MODEL, value=name, port=port) for port in ports(model.repository))
    for name, job in config.batch_jobs.items():
        if "objectStore" in {job.input.kind, job.output.kind}:
            access = job.object_store or ObjectStoreAccessSpec.model_validate({})
            yield from (StoreUser(label=labels.BATCH, value=name, port=port) for port in ports(access))


def ports(access: ObjectStoreAccessSpec) -> set[int]:
    """Port of the endpoint; and that of AWS, which hands out the credentials of a role."""
    if access.endpoint is None:
        return {HTTPS_PORT}
    url = urlsplit(access.endpoint)
    own = url.port or (HTTPS_PORT if url.scheme == "https" else 80)
    return {own, HTTPS_PORT} if access.service_account_annotations else {own}
