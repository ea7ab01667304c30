"""NetworkPolicies of the models' namespace: nothing is let in or out but what is listed here.

Policies add up, and a pod that any of them selects is closed but for what some policy allows (kubernetes.io, "Network Policies"). Probes need no
rule: traffic between a node and its own pods is always allowed.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from components import labels
from components.inference.network_spec import NetworkSpec, PeerSpec
from serving.contract import FRONT_METRICS_PORT, FRONT_PORT, GRPC_PORT, HTTP_PORT, METRICS_PORT

NAMESPACE_LABEL = "kubernetes.io/metadata.name"
DNS_PORT = 53
# kube-dns is the label of every cluster's resolver, whatever it is; a cache on the node is the node's, which is allowed.
DNS = ("kube-system", {"k8s-app": "kube-dns"})
# Where proxies get their configuration and certificates from; without sidecars nobody asks.
ISTIOD = ("istio-system", {"app": "istiod"})
ISTIOD_PORT = 15_012
# Where AWS hands a pod credentials without a Secret or a federated role, plain HTTP on addresses of the node: the instance metadata service
# ("Retrieve instance metadata", Amazon EC2 User Guide) and the agent of EKS Pod Identity, over IPv4 and IPv6 ("Set up the Amazon EKS Pod Identity
# Agent", Amazon EKS User Guide).
CREDENTIALS = ("169.254.169.254/32", "169.254.170.23/32", "fd00:ec2::23/128")
CREDENTIALS_PORT = 80
SERVER, FRONT, CLIENTS = "model-server", "model-front", ("model-front", "batch-job")


@dataclass(frozen=True, kw_only=True)
class GatewayPods:
    """The pods through which callers come."""

    namespace: str
    selector: Mapping[str, str]
    port: int


@dataclass(frozen=True, kw_only=True)
class StoreUser:
    """Pods, by the value of one label, that read or write an object store at one of `ports`."""

    label: str
    value: str
    ports: Collection[int]


@dataclass(frozen=True, kw_only=True)
class RoleUser:
    """Pods, by the value of one label, whose credentials are those of their node or of EKS Pod Identity."""

    label: str
    value: str


def build_network_policies(
    namespace: str, gateway: GatewayPods, spec: NetworkSpec, stores: Sequence[StoreUser] = (), roles: Sequence[RoleUser] = ()
) -> list[dict[str, Any]]:
    """The policies of `namespace`; a component that nobody listed here is closed in both directions, but for names and certificates."""
    through = [_pods(gateway.namespace, gateway.selector)]
    callers = [_peer(peer) for peer in spec.callers]
    readers = [_peer(peer) for peer in spec.metrics_from]
    everything: dict[str, Any] = {}
    needed = [
        {"to": [_pods(*DNS)], "ports": [_port(DNS_PORT, "UDP"), _port(DNS_PORT, "TCP")]},
        {"to": [_pods(*ISTIOD)], "ports": [_port(ISTIOD_PORT)]},
        *({"to": [{"ipBlock": {"cidr": each.cidr}}], "ports": [_port(each.port)]} for each in spec.destinations),
    ]
    to_gateway = {"to": through, "ports": [_port(gateway.port)]}
    return [
        _policy(namespace, "default-deny", everything, ingress=[], egress=needed),
        _policy(namespace, "servers", _component(SERVER), ingress=_from([*through, *callers], HTTP_PORT, GRPC_PORT) + _from(readers, METRICS_PORT)),
        _policy(namespace, "apps", _component(FRONT), ingress=_from([*through, *callers], FRONT_PORT) + _from(readers, FRONT_METRICS_PORT)),
        _policy(namespace, "clients", _any_of(labels.COMPONENT, CLIENTS), egress=[to_gateway]),
        *([] if spec.destinations else _stores(namespace, stores)),
        *_credentials(namespace, roles),
    ]


def _stores(namespace: str, stores: Sequence[StoreUser]) -> list[dict[str, Any]]:
    """A store is a name, and policies know addresses only: without `destinations` those pods reach its ports anywhere.

    The label's own name is part of the policy's: a model and a batch job may be called alike.
    """
    return [
        _policy(
            namespace,
            f"store-{use.label.rpartition('/')[2]}-{use.value}",
            {"matchLabels": {use.label: use.value}},
            egress=[{"ports": [_port(port) for port in sorted(use.ports)]}],
        )
        for use in sorted(stores, key=lambda use: (use.label, use.value))
    ]


def _credentials(namespace: str, users: Sequence[RoleUser]) -> list[dict[str, Any]]:
    """Also beside `destinations`: the addresses are always the same ones, and reach no further than the node."""
    egress = [{"to": [{"ipBlock": {"cidr": cidr}} for cidr in CREDENTIALS], "ports": [_port(CREDENTIALS_PORT)]}]
    values: dict[str, set[str]] = {}
    for user in users:
        values.setdefault(user.label, set()).add(user.value)
    return [
        _policy(namespace, f"credentials-{label.rpartition('/')[2]}", _any_of(label, sorted(named)), egress=egress)
        for label, named in sorted(values.items())
    ]


def _policy(namespace: str, name: str, selector: Mapping[str, Any], **rules: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """`rules` by direction, `ingress` or `egress`; a direction that is named without a rule is closed."""
    return {
        "metadata": {"name": name, "namespace": namespace, "labels": labels.common("network")},
        "spec": {
            "podSelector": dict(selector),
            "policyTypes": [direction.capitalize() for direction in rules],
            **{direction: list(listed) for direction, listed in rules.items()},
        },
    }


def _component(name: str) -> dict[str, Any]:
    return {"matchLabels": {labels.COMPONENT: name}}


def _any_of(label: str, values: Sequence[str]) -> dict[str, Any]:
    return {"matchExpressions": [{"key": label, "operator": "In", "values": list(values)}]}


def _from(peers: Sequence[dict[str, Any]], *ports: int) -> list[dict[str, Any]]:
    """No rule for no peers: an empty list of peers would mean everyone."""
    return [{"from": list(peers), "ports": [_port(port) for port in ports]}] if peers else []


def _peer(peer: PeerSpec) -> dict[str, Any]:
    return _pods(peer.namespace, peer.pod_labels)


def _pods(namespace: str, pod_labels: Mapping[str, str]) -> dict[str, Any]:
    """Both in one peer: two peers would be any pod of the namespace, and such pods of ours."""
    selector = {"namespaceSelector": {"matchLabels": {NAMESPACE_LABEL: namespace}}}
    return {**selector, "podSelector": {"matchLabels": dict(pod_labels)}} if pod_labels else selector


def _port(port: int, protocol: str = "TCP") -> dict[str, Any]:
    return {"port": port, "protocol": protocol}
