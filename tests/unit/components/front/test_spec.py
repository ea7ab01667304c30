"""What a person may say about a front, and what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from components.front.spec import BASE_MIB, COPIES, FrontSpec


def front(**keys):
    return FrontSpec.model_validate(keys)


@given(memory=st.integers(BASE_MIB, 4096), request_mib=st.integers(1, 1024))
def test_the_bodies_it_holds_at_once_always_fit_into_its_memory(memory, request_mib):
    try:
        spec = front(memoryMib=memory, maxRequestMib=request_mib)
    except ValidationError:
        assert BASE_MIB + COPIES * 2 * request_mib > memory
    else:
        assert 2 * spec.max_request_mib <= spec.body_memory_mib
        assert BASE_MIB + COPIES * spec.body_memory_mib <= memory


def test_memory_that_cannot_hold_an_item_of_a_batch_beside_a_request_says_what_would():
    with pytest.raises(ValidationError, match="set memoryMib to at least 640, or lower maxRequestMib"):
        front(maxRequestMib=64)


@pytest.mark.parametrize(
    "keys",
    [
        {"concurrency": 0},
        {"maxWaiting": -1},
        {"timeoutSeconds": 0},
        {"replicas": 0},
        {"batchStreams": 0},
        {"cpuRequest": 2.0},
        {"queue": 1},
        {"replicas": True},
    ],
)
def test_what_cannot_be_is_refused(keys):
    with pytest.raises(ValidationError):
        front(**keys)
