"""What a person may ask for, and the addresses that follow."""

from ipaddress import IPv4Network

import pytest

from tools.cluster.spec import MAX_NAME_LENGTH, Addresses, ClusterSpec, candidate_blocks
from tools.errors import ToolError


@pytest.mark.parametrize("name", ["", "Local", "1st", "a_b", "-a", "a-", "a" * (MAX_NAME_LENGTH + 1), "a/b", "a b"])
def test_a_name_that_cannot_become_an_interface_or_a_node_is_refused(name: str) -> None:
    with pytest.raises(ToolError, match="cannot be used"):
        ClusterSpec(name=name)


@pytest.mark.parametrize("nodes", [0, -1, 3])
def test_a_number_of_nodes_that_cannot_be_started_is_refused(nodes: int) -> None:
    with pytest.raises(ToolError, match="nodes cannot be started"):
        ClusterSpec(nodes=nodes)


def test_each_node_needs_a_zone() -> None:
    with pytest.raises(ToolError, match="2 nodes need 2 zones, got a"):
        ClusterSpec(nodes=2, zones=("a",))


def test_a_control_plane_has_no_nodes() -> None:
    assert ClusterSpec(control_plane_only=True, nodes=2).node_names == ()
    assert ClusterSpec(name="x", nodes=2).node_names == ("x-1", "x-2")


def test_the_parts_of_a_block_do_not_overlap() -> None:
    addresses = Addresses(IPv4Network("10.200.0.0/16"))
    parts = [IPv4Network("10.200.0.0/24"), addresses.services, addresses.pods]
    assert not any(one.overlaps(other) for one in parts for other in parts if one is not other)
    assert addresses.node_pods(1).subnet_of(addresses.pods)
    assert addresses.node_pods(2).subnet_of(addresses.pods)
    assert not addresses.node_pods(1).overlaps(addresses.node_pods(2))
    assert (addresses.host, addresses.node(1), addresses.node(2), addresses.dns) == ("10.200.0.1", "10.200.0.2", "10.200.0.3", "10.200.64.10")


def test_a_cluster_tries_the_same_private_blocks_in_the_same_order_every_time() -> None:
    blocks = candidate_blocks("local")
    assert blocks == candidate_blocks("local")
    assert blocks[0] != candidate_blocks("other")[0]
    assert len(set(blocks)) == len(blocks) == 144
    assert all(block.is_private for block in blocks)
