"""Node pools: what a person may write, and the slots it means."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from components.core.accelerators import MIG_GEOMETRY, Accelerator, mig_slices
from components.core.node_pool import GpuNodePoolSpec
from components.core.slots import max_slots, resource_name, slot_memory_mib, slot_request, slots_per_node

A100 = {"accelerator": "a100", "cardsPerNode": 8, "cardMemoryMib": 81_920, "minNodes": 0, "maxNodes": 2}


def pool(**changes):
    """As the stack file gives it: through JSON."""
    return GpuNodePoolSpec.model_validate_json(json.dumps({**A100, **changes}))


def mig(strategy, **counts):
    return {"mode": "mig", "strategy": strategy, "profiles": [{"profile": p.replace("_", "."), "count": n} for p, n in counts.items()]}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"minNodes": 3}, "minNodes 3 is above maxNodes 2"),
        ({"minNodes": 1, "desiredNodes": 0}, "desiredNodes 0 is outside minNodes 1 to maxNodes 2"),
        ({"desiredNodes": 3}, "desiredNodes 3 is outside minNodes 0 to maxNodes 2"),
        ({"zones": ["a", "a"]}, "a zone is listed once"),
        ({"taints": [{"key": "gpu"}, {"key": "gpu", "value": "x"}]}, "key and effect together are listed once"),
        ({"labels": {"not a key": "x"}}, "String should match pattern"),
        ({"accelerator": "gtx"}, "Input should be 't4'"),
        ({"cardsPerNode": "8"}, "valid integer"),
        ({"cardsPerNode": True}, "valid integer"),
        ({"cards": 8}, "Extra inputs are not permitted"),
        ({"sharing": {"mode": "time-slicing"}}, "Field required"),
        ({"sharing": {"mode": "time-slicing", "replicas": 1}}, "greater than or equal to 2"),
        ({"sharing": {"mode": "none", "replicas": 4}}, "Extra inputs are not permitted"),
        ({"sharing": {"mode": "fractional"}}, "does not match any of the expected tags"),
    ],
)
def test_a_pool_that_cannot_be_is_refused_with_the_reason(changes, reason):
    with pytest.raises(ValidationError, match=reason):
        pool(**changes)


def test_desired_nodes_at_both_bounds_are_accepted():
    assert [pool(desiredNodes=nodes).desired_nodes for nodes in (0, 2)] == [0, 2]


@pytest.mark.parametrize(
    ("sharing", "resource", "per_node", "memory_mib"),
    [
        ({"mode": "none"}, "nvidia.com/gpu", 8, 81_920),
        ({"mode": "time-slicing", "replicas": 4}, "nvidia.com/gpu", 32, 20_480),
        ({"mode": "time-slicing", "replicas": 4, "rename": True}, "nvidia.com/gpu.shared", 32, 20_480),
        ({"mode": "mps", "replicas": 2}, "nvidia.com/gpu", 16, 40_960),
        (mig("single", **{"1g_10gb": 7}), "nvidia.com/gpu", 56, 10_240),
        (mig("mixed", **{"3g_40gb": 2}), "nvidia.com/mig-3g.40gb", 16, 40_960),
    ],
)
def test_sharing_decides_resource_slots_and_memory(sharing, resource, per_node, memory_mib):
    shared = pool(sharing=sharing)
    assert resource_name(shared) == resource
    assert slots_per_node(shared) == per_node
    assert max_slots(shared) == 2 * per_node
    assert slot_memory_mib(shared) == memory_mib


def test_a_shared_card_gives_one_slot_per_pod():
    """NVIDIA/gpu-operator#386, NVIDIA/k8s-device-plugin#491."""
    with pytest.raises(ValueError, match=r"2 slots per replica, but a pool with sharing\.mode time-slicing gives 1"):
        slot_request(pool(sharing={"mode": "time-slicing", "replicas": 4}), 2)


def test_whole_cards_are_given_as_asked():
    """The unshared half: NVIDIA/k8s-device-plugin#491."""
    assert slot_request(pool(), 2) == {"nvidia.com/gpu": "2"}


def test_a_pod_larger_than_a_node_is_refused():
    with pytest.raises(ValueError, match="no node can ever hold it"):
        slot_request(pool(), 9)


def test_strategy_single_takes_one_profile():
    """NVIDIA/k8s-device-plugin#397."""
    with pytest.raises(ValidationError, match="strategy single takes one profile for the whole node"):
        pool(sharing=mig("single", **{"1g_10gb": 4, "3g_40gb": 1}))


def test_strategy_mixed_asks_for_the_profile_and_for_no_whole_gpu():
    """NVIDIA/gpu-operator#637."""
    mixed = pool(sharing=mig("mixed", **{"1g_10gb": 4, "3g_40gb": 1}))
    assert slot_request(mixed, 1, "1g.10gb") == {"nvidia.com/mig-1g.10gb": "1"}
    assert max_slots(mixed, "1g.10gb") == 64


def test_strategy_single_asks_for_a_plain_gpu():
    """NVIDIA/gpu-operator#637."""
    assert slot_request(pool(sharing=mig("single", **{"1g_10gb": 7})), 1, "1g.10gb") == {"nvidia.com/gpu": "1"}


@pytest.mark.parametrize(
    ("slots", "profile", "reason"),
    [
        (2, "1g.10gb", "gives 1"),
        (1, None, "none of the pool's profiles"),
        (1, "2g.20gb", "none of the pool's profiles"),
        (0, "1g.10gb", "at least 1"),
    ],
)
def test_mig_devices_are_asked_for_one_at_a_time_and_by_name(slots, profile, reason):
    """NVIDIA/k8s-device-plugin#728."""
    with pytest.raises(ValueError, match=reason):
        slot_request(pool(sharing=mig("mixed", **{"1g_10gb": 4, "3g_40gb": 1})), slots, profile)


def test_a_mig_profile_needs_a_mig_pool():
    with pytest.raises(ValueError, match=r"needs a pool with sharing\.mode mig"):
        resource_name(pool(), "1g.10gb")


@pytest.mark.parametrize(
    ("accelerator", "sharing", "reason"),
    [
        ("a100", mig("mixed", **{"1g_10gb": 5, "3g_40gb": 1}), "take 8 compute and 9 memory slices"),
        ("a100", mig("mixed", **{"3g_40gb": 3}), "take 9 compute and 12 memory slices"),
        ("a100", mig("single", **{"5g_40gb": 1}), "does not exist on accelerator a100"),
        ("a100", mig("single", **{"4g_10gb": 1}), "does not exist on accelerator a100"),
        ("a100", mig("single", **{"1g_80gb": 7}), "take 7 compute and 56 memory slices"),
        ("a100", mig("single", half=1), "not of the form"),
        ("l4", mig("single", **{"1g_10gb": 1}), "accelerator l4 has no MIG"),
    ],
)
def test_a_card_that_cannot_hold_the_mig_devices_is_refused(accelerator, sharing, reason):
    """NVIDIA/gpu-operator#637."""
    with pytest.raises(ValidationError, match=reason):
        pool(accelerator=accelerator, sharing=sharing)


@pytest.mark.parametrize(
    ("accelerator", "memory_gib", "profiles"),
    [
        # NVIDIA MIG User Guide, "Supported MIG Profiles", with the number of instances of each.
        ("a30", 24, {"1g.6gb": 4, "2g.12gb": 2, "4g.24gb": 1}),
        ("a100", 40, {"1g.5gb": 7, "1g.10gb": 4, "2g.10gb": 3, "3g.20gb": 2, "4g.20gb": 1, "7g.40gb": 1}),
        ("h100", 80, {"1g.10gb": 7, "1g.20gb": 4, "2g.20gb": 3, "3g.40gb": 2, "4g.40gb": 1, "7g.80gb": 1}),
        ("h200", 141, {"1g.18gb": 7, "1g.35gb": 4, "2g.35gb": 3, "3g.71gb": 2, "4g.71gb": 1, "7g.141gb": 1}),
    ],
)
def test_nvidias_own_profiles_fit_as_often_as_nvidia_says(accelerator, memory_gib, profiles):
    geometry = MIG_GEOMETRY[Accelerator(accelerator)]
    for profile, instances in profiles.items():
        slices = mig_slices(profile, Accelerator(accelerator), memory_gib * 1024)
        assert min(geometry.compute_slices // slices.compute, geometry.memory_slices // slices.memory) == instances, profile


@given(
    cards=st.integers(1, 16),
    nodes=st.integers(1, 50),
    sharing=st.one_of(
        st.just({"mode": "none"}),
        st.builds(lambda n: {"mode": "time-slicing", "replicas": n}, st.integers(2, 64)),
        st.builds(lambda n: {"mode": "mps", "replicas": n}, st.integers(2, 48)),
        st.builds(lambda n: mig("single", **{"1g_10gb": n}), st.integers(1, 7)),
    ),
)
def test_slots_never_promise_more_than_the_cards_have(cards, nodes, sharing):
    shared = pool(cardsPerNode=cards, maxNodes=nodes, sharing=sharing)
    assert max_slots(shared) == nodes * slots_per_node(shared)
    assert slots_per_node(shared) % cards == 0
    assert slots_per_node(shared) * slot_memory_mib(shared) <= cards * shared.card_memory_mib
