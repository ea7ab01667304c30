"""Which addresses a cluster takes, and the commands that make its network."""

from ipaddress import IPv4Network

import pytest

from tools.cluster.network import choose_block, host_interface, namespace, node_commands, used_networks
from tools.cluster.spec import MAX_NAME_LENGTH, Addresses, candidate_blocks
from tools.errors import ToolError

ADDRESSES = Addresses(IPv4Network("10.200.0.0/16"))


def test_a_block_that_any_route_of_the_host_touches_is_skipped() -> None:
    first, second, third, *_ = candidate_blocks("local")
    inside = IPv4Network((int(first.network_address) + 256, 30))
    assert choose_block("local", []) == first
    assert choose_block("local", [inside]) == second
    assert choose_block("local", [inside, second]) == third


def test_a_route_into_all_private_blocks_is_an_error_with_a_way_out() -> None:
    with pytest.raises(ToolError, match="no free private address block") as error:
        choose_block("local", [IPv4Network("10.0.0.0/8"), IPv4Network("172.16.0.0/12")])
    assert "CONTEXT" in error.value.hint


def test_the_whole_of_10_taken_by_a_vpn_leaves_the_other_private_range() -> None:
    assert choose_block("local", [IPv4Network("10.0.0.0/8")]).subnet_of(IPv4Network("172.16.0.0/12"))


def test_default_route_and_own_interface_do_not_count_as_used() -> None:
    routes: list[dict[str, object]] = [
        {"dst": "default", "dev": "eth0"},
        {"dst": "10.214.0.0/24", "dev": "ip-local"},
        {"dst": "192.0.2.7", "dev": "eth0", "table": "local"},
        {"dst": "10.9.0.0/16", "dev": "wg0"},
        {"dst": "10.11.12.0/24", "type": "blackhole"},
    ]
    assert used_networks(routes, "ip-local") == [IPv4Network("192.0.2.7/32"), IPv4Network("10.9.0.0/16"), IPv4Network("10.11.12.0/24")]


def test_the_longest_name_fits_an_interface() -> None:
    assert len(host_interface("a" * MAX_NAME_LENGTH)) == 15


@pytest.mark.parametrize("node", [1, 2])
def test_every_command_acts_on_the_clusters_own_namespaces_or_interface(node: int) -> None:
    for command in node_commands("x", node, ADDRESSES):
        line = " ".join(command)
        own = any(namespace("x", number) in line for number in (1, 2)) or host_interface("x") in command
        routed_to_own = command[:3] == ("ip", "route", "replace") and IPv4Network(command[3]).subnet_of(ADDRESSES.block)
        assert own or routed_to_own, line


def test_the_second_node_adds_no_interface_to_the_host() -> None:
    assert not [command for command in node_commands("x", 2, ADDRESSES) if command[:3] == ("ip", "link", "add")]
