"""Priority levels of the real server: who is in a hurry passes who is not."""

import re
import threading
import time
import urllib.request

import numpy as np
import pytest
from tritonclient.grpc import InferenceServerClient, InferInput

from serving.model_config import BatchingSpec, InstancesSpec, PrioritiesSpec, ServingSpec
from tools.bench.serving_models import fixed_cost, write_models
from tools.triton_process import TritonProcess

pytestmark = pytest.mark.serving

QUEUED = 20
HIGH, NORMAL = 1, 2
PENDING = re.compile(r'^nv_inference_pending_request_count\{model="slow",version="1"\} (\d+)', re.MULTILINE)


@pytest.fixture(scope="module")
def slow_server(tmp_path_factory):
    """One instance that answers one request in 50 ms, with two priority levels."""
    repository = tmp_path_factory.mktemp("models")
    batching = BatchingSpec(max_batch_size=1, priorities=PrioritiesSpec(levels=2, default=NORMAL))
    write_models(repository, fixed_cost("slow", ServingSpec(batching=batching, instances=InstancesSpec(count=1)), cost_ms=50))
    with TritonProcess(repository=repository, log=tmp_path_factory.mktemp("log") / "triton.log") as triton:
        triton.wait_ready()
        yield triton


def pending(triton):
    with urllib.request.urlopen(triton.metrics) as answer:  # noqa: S310  our own http address
        [number] = PENDING.findall(answer.read().decode())
    return int(number)


def wait_pending(triton, number):
    deadline = time.monotonic() + 10
    while pending(triton) < number:
        assert time.monotonic() < deadline, f"{pending(triton)} requests queued instead of {number}"
        time.sleep(0.01)


def overtaken_by_one(triton, priority):
    """How many of QUEUED normal requests, all waiting when a request of `priority` arrives, are answered after it."""
    order, done = [], threading.Semaphore(0)

    def finished(name):
        def record(result, error):
            order.append((name, error))
            done.release()

        return record

    tensor = InferInput("content", [1, 1], "BYTES")
    tensor.set_data_from_numpy(np.array([[b"x"]], dtype=np.object_))
    with InferenceServerClient(triton.grpc) as client:
        # One more occupies the instance.
        for number in range(QUEUED + 1):
            client.async_infer("slow", [tensor], finished(number), priority=NORMAL)
        wait_pending(triton, QUEUED)
        client.async_infer("slow", [tensor], finished("late"), priority=priority)
        for _ in range(QUEUED + 2):
            assert done.acquire(timeout=30)
    assert [error for _, error in order if error] == []
    names = [name for name, _ in order]
    return len(names) - 1 - names.index("late")


def test_a_request_of_high_priority_overtakes_the_queued_normal_ones(slow_server):
    assert overtaken_by_one(slow_server, HIGH) >= 18


def test_a_request_of_the_same_priority_waits_for_its_turn(slow_server):
    assert overtaken_by_one(slow_server, NORMAL) <= 2
