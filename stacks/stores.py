"""Which pods of a stack use an object store, how they reach it, and the faults in that. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from components import labels
from components.core.faults import Fault
from components.core.object_store import ObjectStoreAccessSpec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stacks.config import StackConfig

HTTPS_PORT = 443


def accesses(config: StackConfig) -> Iterator[tuple[str, str, str, ObjectStoreAccessSpec]]:
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


def store_faults(config: StackConfig) -> Iterator[Fault]:
    """Destinations, where there are any, are all that the pods reach: AWS, whatever its addresses, answers at one port."""
    listed = {destination.port for destination in config.cluster.network.destinations}
    if not listed or HTTPS_PORT in listed:
        return
    needing = [key for _, _, key, access in accesses(config) if access.endpoint is None or access.service_account_annotations]
    if needing:
        reason = f"lists no addresses at port {HTTPS_PORT}, where S3 and STS of AWS answer, and {', '.join(needing)} needs them"
        yield Fault(("cluster", "network", "destinations"), reason, "add their addresses with port 443, or leave destinations empty")
