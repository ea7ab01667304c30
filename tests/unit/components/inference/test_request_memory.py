"""No request that the gateway lets pass may end a server: memory, request size and requests under way are one sum."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.core.requests import RequestLimits
from components.errors import ManifestError
from components.inference.memory import memory_parts
from components.inference.plan import plan_versions
from tests.unit.components.inference.models import IDENTITY, server, version


def planned(memory, limits, **footprint):
    [plan] = plan_versions(IDENTITY, server(memoryMib=memory), None, (version(**footprint),), limits=limits)
    return plan


ONE = {"instances": 1, "memory_mib": 256, "shared_memory_mib": 64, "max_batch": 16}


def test_the_sum_is_stated_and_holds_to_the_mebibyte():
    """256 of the model + 128 of /dev/shm + 64 of the server + (128 under way + 3 copies of a batch of 16) x 2 MiB."""
    limits = RequestLimits(max_request_mib=2, max_in_flight=128)
    reason = r"799 is too small: 256 for models \(memoryMib of model.yaml\) \+ 128 for shared memory \+ 352 for 128 requests .* of 2 MiB .* \+ 64 for the server itself = 800 MiB"
    with pytest.raises(ManifestError, match=reason):
        planned(799, limits, **ONE)
    assert planned(800, limits, **ONE).shm_mib == 128


def test_shared_memory_grows_with_the_largest_batch_and_not_below_what_an_instance_starts_with():
    """Without room for it every request of the batch would be answered 500."""
    small, large = RequestLimits(max_request_mib=4), RequestLimits(max_request_mib=8)
    assert planned(4096, small, **ONE).shm_mib == 64 + 64
    assert planned(4096, large, **ONE).shm_mib == 16 * 8 + 64


def test_a_batch_is_never_counted_larger_than_what_is_under_way():
    limits = RequestLimits(max_request_mib=1, max_in_flight=4)
    [plan] = plan_versions(IDENTITY, server(memoryMib=4096), None, (version(**ONE),), limits=limits)
    parts = memory_parts("magika", plan.server, [model.footprint for model in plan.models], limits, plan.shm_mib)
    assert [size for name, size in parts.items() if "4 requests" in name] == [4 + 3 * 4]


@given(mib=st.integers(1, 64), in_flight=st.integers(1, 512), batch=st.integers(1, 64), instances=st.integers(1, 8), memory=st.integers(128, 65_536))
def test_what_is_accepted_holds_the_requests_beside_everything_else(mib, in_flight, batch, instances, memory):
    limits = RequestLimits(max_request_mib=mib, max_in_flight=in_flight)
    try:
        plan = planned(memory, limits, instances=instances, memory_mib=10, max_batch=batch)
    except ManifestError:
        return
    assert memory >= instances * 10 + plan.shm_mib + in_flight * mib + 3 * mib * min(in_flight, instances * batch)
    assert plan.shm_mib >= instances * batch * mib


# Of a step that makes far more of a row than its request weighs.
HEAVY = {**ONE, "max_rows": 16, "memory_mib_per_row": 40, "shared_memory_mib_per_row": 13, "waiting_mib_per_row": 2}


def test_a_row_that_weighs_more_than_its_request_is_counted_for_the_largest_batch():
    """Scores of every character for a wide line are 10 MiB, of a picture of 2 kB."""
    limits = RequestLimits(max_request_mib=2, max_in_flight=32)
    shared = 16 * (2 + 13) + 64
    needed = 256 + 16 * 40 + 32 * 16 * 2 + shared + (32 + 3 * 16) * 2 + 64
    assert planned(needed, limits, **HEAVY).shm_mib == shared
    reason = rf"{needed - 1} is too small: .* 640 for rows at work \(memoryMibPerRow .* x batching.maxBatchSize\) \+ 1024 for rows that wait"
    with pytest.raises(ManifestError, match=reason):
        planned(needed - 1, limits, **HEAVY)


@pytest.mark.parametrize("key", ["memory_mib_per_row", "shared_memory_mib_per_row", "waiting_mib_per_row"])
def test_rows_that_take_memory_must_be_bounded(key):
    """Without a batch axis a request of 2 MiB holds thousands of small pictures."""
    with pytest.raises(ManifestError, match=r"batching.maxBatchSize 0 lets a request have any number of rows, .* takes: \w+MibPerRow 3") as raised:
        planned(65_536, RequestLimits(), **ONE, max_rows=None, **{key: 3})
    assert raised.value.keys == ("batching", "maxBatchSize")
    assert planned(65_536, RequestLimits(), **ONE, max_rows=None)
