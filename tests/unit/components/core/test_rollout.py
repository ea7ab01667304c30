"""Rolling updates where slots are scarce."""

from hypothesis import assume, given
from hypothesis import strategies as st

from components.core.rollout import CPU_SURGE, Demand, plan_surge


def test_a_full_pool_gives_a_pod_before_it_takes_one():
    """C14: defilantech/LLMKube#192, ai-runway/airunway#400."""
    surge = plan_surge(Demand(4, 1), (), nodes=1, node_slots=4)
    assert (surge.max_surge, surge.max_unavailable, surge.warning) == (0, 1, None)


def test_free_slots_are_used_and_no_more_than_there_are():
    """C14, 6 slots."""
    surge = plan_surge(Demand(4, 1), (), nodes=1, node_slots=6)
    assert (surge.max_surge, surge.max_unavailable) == (2, 0)


def test_one_replica_on_the_only_slot_is_updated_with_a_warning():
    """C14: the update cannot be without downtime, and says so."""
    surge = plan_surge(Demand(1, 1), (), nodes=1, node_slots=1)
    assert (surge.max_surge, surge.max_unavailable) == (0, 1)
    assert surge.warning is not None
    assert "every update stops the model" in surge.warning


def test_stable_and_canary_are_counted_together():
    """C14: the canary's pods take slots of the same pool."""
    assert plan_surge(Demand(4, 1), (Demand(2, 1),), nodes=1, node_slots=6).max_surge == 0


def test_two_free_slots_on_two_nodes_hold_no_pod_of_two_slots():
    assert plan_surge(Demand(2, 2), (), nodes=2, node_slots=3).max_surge == 0


def test_without_gpus_one_pod_more_and_none_less():
    assert (CPU_SURGE.max_surge, CPU_SURGE.max_unavailable, CPU_SURGE.warning) == (1, 0, None)


demands = st.builds(Demand, st.integers(1, 6), st.integers(1, 4))


@given(own=demands, others=st.lists(demands, max_size=3), nodes=st.integers(1, 5), node_slots=st.integers(1, 8), data=st.data())
def test_every_surge_pod_fits_wherever_the_scheduler_put_the_others(own, others, nodes, node_slots, data):
    surge = plan_surge(own, others, nodes, node_slots)
    assert surge.max_surge + surge.max_unavailable > 0  # Kubernetes refuses 0 and 0
    free = [node_slots] * nodes
    pods = data.draw(st.permutations([d.slots_per_replica for d in (own, *others) for _ in range(d.replicas)]))
    for slots in pods:
        fitting = [node for node, left in enumerate(free) if left >= slots]
        assume(fitting)
        free[data.draw(st.sampled_from(fitting))] -= slots
    assert surge.max_surge <= sum(left // own.slots_per_replica for left in free)
