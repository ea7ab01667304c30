"""The nodes' network: a namespace for each node, joined by a bridge inside the first one, one interface on the host.

The bridge is not on the host: a host with Docker filters bridged packets, and ours are none of its business. So the host sees one interface,
and deleting the first namespace takes it away.
"""

import ipaddress
import json
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from tools.cluster.host import run
from tools.cluster.spec import Addresses, candidate_blocks
from tools.errors import ToolError

BRIDGE = "nodes"
CLEAN_UP = "look at the message; python -m tools.cluster delete takes away what is left"
NETNS_DIR = Path("/run/netns")
Command = tuple[str, ...]


def host_interface(name: str) -> str:
    return f"ip-{name}"


def namespace(name: str, node: int) -> str:
    return f"ip-{name}-{node}"


def choose_block(name: str, used: Iterable[ipaddress.IPv4Network]) -> ipaddress.IPv4Network:
    """The first candidate that overlaps none of the networks the host uses. Raises ToolError when all do."""
    taken = list(used)
    for block in candidate_blocks(name):
        if not any(block.overlaps(network) for network in taken):
            return block
    raise ToolError(
        "no free private address block for the cluster: the host has routes into all of 10.128.0.0/9 and 172.16.0.0/12",
        "drop a VPN's route for the time being, or use your own cluster: make up CONTEXT=<kube context>",
    )


def used_networks(routes: list[dict[str, object]], own_interface: str) -> list[ipaddress.IPv4Network]:
    """Networks of `ip -json -4 route show table all`, without the default route and without those of our own interface."""
    networks = []
    for route in routes:
        destination = str(route["dst"])
        if destination != "default" and route.get("dev") != own_interface:
            network = ipaddress.IPv4Network(destination, strict=False)
            if not network.is_multicast and network.prefixlen > 0:
                networks.append(network)
    return networks


def host_networks(name: str) -> list[ipaddress.IPv4Network]:
    shown = run(("ip", "-json", "-4", "route", "show", "table", "all"), "is the package iproute2 installed?")
    return used_networks(json.loads(shown or "[]"), host_interface(name))


def node_commands(name: str, node: int, addresses: Addresses) -> list[Command]:
    """Commands that make node `node`'s namespace and join it to the cluster's network; the first node's come before the second's."""
    netns = namespace(name, node)
    inside = ("ip", "-n", netns)
    first = ("ip", "-n", namespace(name, 1))
    address = f"{addresses.node(node)}/24"
    commands: list[Command] = [("ip", "netns", "add", netns), (*inside, "link", "set", "lo", "up")]
    if node == 1:
        host = host_interface(name)
        commands += [
            (*inside, "link", "add", BRIDGE, "type", "bridge"),
            (*inside, "address", "add", address, "dev", BRIDGE),
            (*inside, "link", "set", BRIDGE, "up"),
            ("ip", "link", "add", host, "type", "veth", "peer", "name", "host", "netns", netns),
            (*inside, "link", "set", "host", "master", BRIDGE, "up"),
            ("ip", "address", "add", f"{addresses.host}/24", "dev", host),
            ("ip", "link", "set", host, "up"),
            ("ip", "route", "replace", str(addresses.services), "via", addresses.node(1)),
        ]
    else:
        commands += [
            (*first, "link", "add", f"node-{node}", "type", "veth", "peer", "name", BRIDGE, "netns", netns),
            (*first, "link", "set", f"node-{node}", "master", BRIDGE, "up"),
            (*inside, "address", "add", address, "dev", BRIDGE),
            (*inside, "link", "set", BRIDGE, "up"),
            (*first, "route", "replace", str(addresses.node_pods(node)), "via", addresses.node(node)),
            (*inside, "route", "add", str(addresses.node_pods(1)), "via", addresses.node(1)),
        ]
    return [
        *commands,
        # Packets to a service's address need a route before they are rewritten.
        (*inside, "route", "add", "default", "via", addresses.host),
        # The host reaches pods and services as a load balancer would.
        ("ip", "route", "replace", str(addresses.node_pods(node)), "via", addresses.node(node)),
        ("ip", "netns", "exec", netns, "sysctl", "-q", "-w", "net.ipv4.ip_forward=1"),
    ]


def create_node(name: str, node: int, addresses: Addresses) -> None:
    for command in node_commands(name, node, addresses):
        run(command, CLEAN_UP)


def exists(name: str, node: int) -> bool:
    return (NETNS_DIR / namespace(name, node)).exists()


def remove_node(name: str, node: int) -> None:
    if exists(name, node):
        run(("ip", "netns", "delete", namespace(name, node)), CLEAN_UP)
    if node == 1 and Path("/sys/class/net", host_interface(name)).exists():
        # It goes with the namespace, but not at once, and may be gone by now.
        with suppress(ToolError):
            run(("ip", "link", "delete", host_interface(name)), CLEAN_UP)
