"""Rolling updates where slots are scarce."""

from hypothesis import assume, given
from hypothesis import strategies as st

from components.core.rollout import CPU_SURGE, Demand, plan_surge


def test_a_full_pool_gives_a_pod_before_it_takes_one():
    """defilantech/LLMKube#192, ai-runway/airunway#400."""
    surge = plan_surge(Demand(4, 1), (), nodes=1, node_slots=4)
    assert (surge.max_surge, surge.max_unavailable, surge.warning) == (0, 1, None)


def test_free_slots_are_used_and_no_more_than_there_are():
    """6 slots."""
    surge = plan_surge(Demand(4, 1), (), nodes=1, node_slots=6)
    assert (surge.max_surge, surge.max_unavailable) == (2, 0)


def test_one_replica_on_the_only_slot_is_updated_with_a_warning():
    """The update cannot be without downtime, and says so."""
    surge = plan_surge(Demand(1, 1), (), nodes=1, node_slots=1)
    assert (surge.max_surge, surge.max_unavailable) == (0, 1)
    assert surge.warning is not None
    assert "every update stops the model" in surge.warning


def test_stable_and_canary_are_counted_together():
    """The canary's pods take slots of the same pool."""
    assert plan_surge(Demand(4, 1), (Demand(2, 1),), nodes=1, node_slots=6).max_surge == 0


def test_two_free_slots_on_two_nodes_hold_no_pod_of_two_slots():
    assert plan_surge(Demand(2, 2), (), nodes=2, node_slots=3).max_surge == 0


def test_without_gpus_one_pod_more_and_none_less():
    assert (CPU_SURGE.max_surge, CPU_SURGE.max_unavailable, CPU_SURGE.warning) == (1, 0, None)


def test_stable_and_canary_share_the_free_slots_because_a_new_image_rolls_both():
    """Each of them alone would fit twice, both together once each."""
    stable, canary = Demand(3, 1, "m-v1"), Demand(3, 1, "m-v2")
    assert plan_surge(stable, (canary,), nodes=1, node_slots=8).max_surge == 1
    assert plan_surge(canary, (stable,), nodes=1, node_slots=8).max_surge == 1


def test_the_only_free_slot_is_given_once_and_to_the_one_replica():
    """Whoever asks, and in whatever order; without it the lone replica would stop at every update."""
    many, lone = Demand(3, 1, "a"), Demand(1, 1, "b")
    assert plan_surge(lone, (many,), nodes=1, node_slots=5).max_surge == 1
    assert plan_surge(many, (lone,), nodes=1, node_slots=5).max_surge == 0


POOL_NAMES = ("a-v1", "a-v2", "b-v1", "c-v1")
demands = st.builds(Demand, st.integers(1, 6), st.integers(1, 4))
pools = st.lists(demands, min_size=1, max_size=4).map(
    lambda drawn: [Demand(each.replicas, each.slots_per_replica, name) for each, name in zip(drawn, POOL_NAMES, strict=False)]
)


def surges_of(pool, nodes, node_slots):
    """What each Deployment works out for itself, which is how it is used."""
    return [plan_surge(own, [other for other in pool if other is not own], nodes, node_slots) for own in pool]


@given(pool=pools, nodes=st.integers(1, 5), node_slots=st.integers(1, 8), data=st.data())
def test_every_surge_pod_fits_wherever_the_others_are_while_all_deployments_roll_at_once(pool, nodes, node_slots, data):
    """For the whole pool: surge pods of all Deployments come in any order, and none waits for a slot."""
    surges = surges_of(pool, nodes, node_slots)
    assert all(surge.max_surge + surge.max_unavailable > 0 for surge in surges)  # Kubernetes refuses 0 and 0
    free = [node_slots] * nodes

    def put(slots):
        fitting = [node for node, left in enumerate(free) if left >= slots]
        if fitting:
            free[data.draw(st.sampled_from(fitting))] -= slots
        return bool(fitting)

    assume(all(put(slots) for slots in data.draw(st.permutations([d.slots_per_replica for d in pool for _ in range(d.replicas)]))))
    rolling = [d.slots_per_replica for d, surge in zip(pool, surges, strict=True) for _ in range(surge.max_surge)]
    assert all(put(slots) for slots in data.draw(st.permutations(rolling)))


@given(pool=pools, nodes=st.integers(1, 5), node_slots=st.integers(1, 8), data=st.data())
def test_the_shares_do_not_depend_on_who_asks_or_in_which_order(pool, nodes, node_slots, data):
    shuffled = data.draw(st.permutations(pool))
    found = {d.name: surge for d, surge in zip(shuffled, surges_of(shuffled, nodes, node_slots), strict=True)}
    assert [found[d.name] for d in pool] == surges_of(pool, nodes, node_slots)
    together = sum(d.slots_per_replica * (d.replicas + found[d.name].max_surge) for d in pool if found[d.name].max_surge)
    assert together <= nodes * node_slots
