"""What the network of the models' namespace must let through for a stack. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from components import labels
from components.core.faults import Fault
from components.core.object_store import ObjectStoreAccessSpec
from components.inference.namespace import ModelsNamespaceArgs
from components.inference.network_manifest import GatewayPods, RoleUser, StoreUser
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
        roles=tuple(role_users(config)),
    )


def store_users(config: StackConfig) -> Iterator[StoreUser]:
    """Servers and batch jobs that fetch from or write to an object store, with the ports they need there."""
    for label, name, _, access in _accesses(config):
        yield from (StoreUser(label=label, value=name, port=port) for port in ports(access))


def role_users(config: StackConfig) -> Iterator[RoleUser]:
    """Those of them that find their credentials on the node: neither a Secret nor the service account's annotations say where else."""
    for label, name, _, access in _accesses(config):
        if access.secret is None and not access.service_account_annotations:
            yield RoleUser(label=label, value=name)


def network_faults(config: StackConfig) -> Iterator[Fault]:
    """Destinations, where there are any, are all that the pods reach: AWS, whatever its addresses, answers at one port."""
    listed = {destination.port for destination in config.cluster.network.destinations}
    if not listed or HTTPS_PORT in listed:
        return
    needing = [key for _, _, key, access in _accesses(config) if access.endpoint is None or access.service_account_annotations]
    if needing:
        reason = f"lists no addresses at port {HTTPS_PORT}, where S3 and STS of AWS answer, and {', '.join(needing)} needs them"
        yield Fault(("cluster", "network", "destinations"), reason, "add their addresses with port 443, or leave destinations empty")


def _accesses(config: StackConfig) -> Iterator[tuple[str, str, str, ObjectStoreAccessSpec]]:
    """Label of the pods, its value, the key that says how they reach their store, and what it says."""
    for name, model in config.models.items():
        if isinstance(model.repository, ObjectStoreAccessSpec):
            yield labels.MODEL, name, f"models.{name}.repository", model.repository
    for name, job in config.batch_jobs.items():
        if "objectStore" in {job.input.kind, job.output.kind}:
            yield labels.BATCH, name, f"batchJobs.{name}", job.object_store or ObjectStoreAccessSpec.model_validate({})


def ports(access: ObjectStoreAccessSpec) -> set[int]:
    """Port of the endpoint; and that of AWS, which hands out the credentials of a role."""
    if access.endpoint is None:
        return {HTTPS_PORT}
    url = urlsplit(access.endpoint)
    own = url.port or (HTTPS_PORT if url.scheme == "https" else 80)
    return {own, HTTPS_PORT} if access.service_account_annotations else {own}
