"""Kubernetes' rules about NetworkPolicies as a function: who reaches whom, given the policies.

After kubernetes.io, "Network Policies", and the API's own words: a pod that no policy selects for a direction is open in it; else a connection needs
a rule of one of the policies that select it; both ends must allow it. A rule without peers or ports means any; peers and ports of one rule must both
fit; a podSelector alone means the policy's own namespace, with a namespaceSelector both must fit.
"""

import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Policy = Mapping[str, Any]
NAME = "kubernetes.io/metadata.name"


@dataclass(frozen=True)
class Pod:
    """An end of a connection; one without a namespace is an address outside the cluster."""

    namespace: str
    labels: Mapping[str, str] = field(default_factory=dict)
    address: str = "10.0.0.1"


def reaches(policies: Sequence[Policy], source: Pod, target: Pod, port: int, protocol: str = "TCP") -> bool:
    """Whether a connection from `source` to `port` of `target` is allowed."""
    leaves = _allowed(policies, "egress", source, target, port, protocol)
    enters = _allowed(policies, "ingress", target, source, port, protocol)
    return leaves and enters


def _allowed(policies: Iterable[Policy], direction: str, own: Pod, other: Pod, port: int, protocol: str) -> bool:
    selecting = [
        policy
        for policy in policies
        if policy["metadata"]["namespace"] == own.namespace
        and direction.capitalize() in policy["spec"]["policyTypes"]
        and selects(policy["spec"]["podSelector"], own.labels)
    ]
    if not selecting:
        return True
    rules = [rule for policy in selecting for rule in policy["spec"].get(direction) or ()]
    peers = "to" if direction == "egress" else "from"
    return any(_peers_fit(rule.get(peers), own.namespace, other) and _ports_fit(rule.get("ports"), port, protocol) for rule in rules)


def _peers_fit(peers: Sequence[Mapping[str, Any]] | None, own_namespace: str, other: Pod) -> bool:
    return not peers or any(_peer_fits(peer, own_namespace, other) for peer in peers)


def _peer_fits(peer: Mapping[str, Any], own_namespace: str, other: Pod) -> bool:
    if "ipBlock" in peer:
        block = peer["ipBlock"]
        address = ipaddress.ip_address(other.address)
        return address in ipaddress.ip_network(block["cidr"]) and not any(address in ipaddress.ip_network(hole) for hole in block.get("except") or ())
    if not other.namespace:
        return False
    in_namespace = other.namespace == own_namespace
    if "namespaceSelector" in peer:
        in_namespace = selects(peer["namespaceSelector"], {NAME: other.namespace})
    return in_namespace and ("podSelector" not in peer or selects(peer["podSelector"], other.labels))


def _ports_fit(ports: Sequence[Mapping[str, Any]] | None, port: int, protocol: str) -> bool:
    return not ports or any(
        entry.get("protocol", "TCP") == protocol and ("port" not in entry or entry["port"] <= port <= entry.get("endPort", entry["port"]))
        for entry in ports
    )


def selects(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Whether a label selector fits; an empty one fits everything."""
    exact = all(labels.get(key) == value for key, value in (selector.get("matchLabels") or {}).items())
    return exact and all(_expression_fits(expression, labels) for expression in selector.get("matchExpressions") or ())


def _expression_fits(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    value, values = labels.get(expression["key"]), expression.get("values") or ()
    match expression["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    raise AssertionError(f"no operator of Kubernetes: {expression['operator']!r}")
