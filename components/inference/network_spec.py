"""Who may talk to the models' namespace, and to whom its pods may talk, beyond what the platform itself needs."""

import ipaddress
from typing import Annotated

from pydantic import AfterValidator, Field

from components.core.node_pool import LabelKey, LabelValue
from components.core.spec import Spec

Port = Annotated[int, Field(ge=1, le=65_535)]
NamespaceName = Annotated[str, Field(max_length=63, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")]


def _check_cidr(text: str) -> str:
    """The form Kubernetes takes: an address without bits behind the prefix."""
    try:
        ipaddress.ip_network(text)
    except ValueError as error:
        raise ValueError(f"{error}; write a block such as 10.20.0.0/16, or one address with /32") from None
    return text


class PeerSpec(Spec):
    """Pods of a namespace of the cluster."""

    namespace: Annotated[NamespaceName, Field(description="Their namespace.")]
    pod_labels: Annotated[dict[LabelKey, LabelValue], Field(description="Labels they carry; empty: every pod there.")] = Field(default_factory=dict)


class DestinationSpec(Spec):
    """Addresses outside, such as those of an object store."""

    cidr: Annotated[str, AfterValidator(_check_cidr), Field(description="Block of addresses, such as 10.20.0.0/16.")]
    port: Annotated[Port, Field(description="TCP port.")] = 443


class NetworkSpec(Spec):
    """Exceptions from "nothing but the gateway reaches a model"."""

    callers: Annotated[
        tuple[PeerSpec, ...], Field(strict=False, description="Who may call servers past the gateway: neither weights nor limits hold for them.")
    ] = ()
    metrics_from: Annotated[tuple[PeerSpec, ...], Field(strict=False, description="Who may read metrics, such as Prometheus.")] = ()
    destinations: Annotated[
        tuple[DestinationSpec, ...],
        Field(
            strict=False,
            description="Where pods of the namespace may connect to, in place of any address at the ports of their object stores; with a role by annotation "
            "also AWS STS, port 443.",
        ),
    ] = ()
