"""The HTTP front before a real Triton."""

import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from components.core.front import FrontLimitsSpec
from serving.front.settings import ModelTargetSpec
from serving.model_config import BatchingSpec, InstancesSpec, ServingSpec, SignatureSpec
from serving.model_config.batching import PrioritiesSpec
from serving.model_manifest import model_manifest
from tools.bench.serving_models import fixed_cost, write_models
from tools.front_process import FrontProcess
from tools.triton_process import TritonProcess

pytestmark = pytest.mark.serving

COST_MS = 200
LARGEST_BATCH = 8
LEVELS = 2
SIGNATURE = SignatureSpec.model_validate(
    {
        "inputs": [{"name": "content", "datatype": "BYTES", "dims": [-1, 1]}],
        "outputs": [{"name": "call", "datatype": "INT64", "dims": [-1, 1]}, {"name": "label", "datatype": "BYTES", "dims": [-1, 1]}],
    }
)


@pytest.fixture(scope="module")
def triton(tmp_path_factory):
    """`slow` takes 200 ms a call and one request at a time, `quick` 1 ms for a batch of eight; both have two priority levels."""
    repository = tmp_path_factory.mktemp("models")
    models = [fixed_cost(name, serving(batch), cost_ms=cost) for name, batch, cost in (("slow", 1, COST_MS), ("quick", LARGEST_BATCH, 1))]
    write_models(repository, *models)
    with TritonProcess(repository=repository, log=tmp_path_factory.mktemp("log") / "triton.log") as server:
        server.wait_ready()
        yield server


def serving(largest_batch):
    batching = BatchingSpec(max_batch_size=largest_batch, priorities=PrioritiesSpec(levels=LEVELS, default=1))
    return ServingSpec(batching=batching, instances=InstancesSpec(count=1))


def front_of(triton, model, *, batch=1, **limits):
    target = ModelTargetSpec(
        name=model, address=triton.grpc, signature=SIGNATURE, max_batch_size=batch, priorities={"realtime": 1, "batch": LEVELS}, connections=1
    )
    return FrontProcess(target, FrontLimitsSpec.model_validate(limits))


@pytest.fixture(scope="module")
def quick(triton):
    with front_of(triton, "quick", batch=LARGEST_BATCH, maxRequestMib=1) as front:
        front.wait_ready()
        yield front


@pytest.fixture
def slow(triton):
    """Two places: one at the model, one to wait."""
    with front_of(triton, "slow", concurrency=1, maxWaiting=1, maxRequestMib=1) as front:
        front.wait_ready()
        yield front


def metric(front, name, **labels):
    families = text_string_to_metric_families(httpx.get(front.metrics).text)
    return sum(s.value for f in families for s in f.samples if s.name == name and labels.items() <= s.labels.items())


def wait_until(condition):
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_file_is_answered_by_the_model(quick):
    for arguments in ({"files": {"file": b"\x00abc"}}, {"content": b"\x00abc"}):
        answer = httpx.post(f"{quick.url}/predict", **arguments)
        assert answer.status_code == 200, answer.text
        assert (answer.json()["model"], answer.json()["version"]) == ("quick", "1")
        assert set(answer.json()["outputs"]) == {"call", "label"}


@pytest.mark.parametrize(("query", "status"), [("?version=1", 200), ("?version=7", 404), ("?priority=batch", 200), ("?priority=realtime", 200)])
def test_a_version_that_is_not_there_is_not_found_and_both_priorities_are_levels_of_the_model(quick, query, status):
    assert httpx.post(f"{quick.url}/predict{query}", content=b"x").status_code == status


def test_thousands_of_items_stream_through_in_order(quick):
    count = 3_000
    body = b"".join(b'{"id": %d, "text": "item"}\n' % number for number in range(count))
    began = time.monotonic()
    lines = httpx.post(f"{quick.url}/v1/models/quick/batch", content=body, timeout=60).text.splitlines()
    *items, end = [json.loads(line) for line in lines]
    assert [item["id"] for item in items] == list(range(count))
    assert end == {"end": {"items": count, "failed": 0, "complete": True}}
    # Batches are full but for the last ones: 3,000 items are not 3,000 calls of the model.
    assert max(item["outputs"]["call"] for item in items) - min(item["outputs"]["call"] for item in items) < count / 4
    assert time.monotonic() - began < 60


def test_an_answer_comes_while_the_next_item_is_not_sent_yet(quick):
    """Httpx sends all before it reads, so this one speaks HTTP itself."""
    received = b""
    with socket.create_connection(("127.0.0.1", quick.port), timeout=20) as connection:
        connection.sendall(b"POST /v1/models/quick/batch HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        for number in range(5):
            item = b'{"text": "x"}\n'
            connection.sendall(b"%x\r\n%b\r\n" % (len(item), item))
            while received.count(b'"index"') <= number:
                received += connection.recv(65536)
        assert b'"end"' not in received
        connection.sendall(b"0\r\n\r\n")
        while not received.endswith(b"0\r\n\r\n"):
            received += connection.recv(65536)
    assert b'"complete": true' in received


def test_the_next_one_after_a_full_house_is_refused_and_the_others_are_served(slow):
    with ThreadPoolExecutor(2) as pool:
        taken = [pool.submit(httpx.post, f"{slow.url}/predict", content=b"x", timeout=20) for _ in range(2)]
        wait_until(lambda: metric(slow, "front_in_flight") == 1 and metric(slow, "front_waiting") == 1)
        refused = httpx.post(f"{slow.url}/predict", content=b"x")
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
        assert [each.result().status_code for each in taken] == [200, 200]
    assert metric(slow, "front_rejected_total", reason="queue_full") == 1
    assert metric(slow, "front_requests_total", code="200") == 2


def test_a_deadline_that_passes_is_504_and_frees_the_place(slow):
    late = httpx.post(f"{slow.url}/predict?timeout_ms=50", content=b"x")
    assert (late.status_code, late.json()["error"]["code"]) == (504, "deadline_exceeded")
    wait_until(lambda: metric(slow, "front_in_flight") == 0)
    assert httpx.post(f"{slow.url}/predict", content=b"x", timeout=20).status_code == 200


def test_an_item_on_which_the_model_raises_is_502_without_its_stack_trace_and_the_others_are_answered(quick):
    alone = httpx.post(f"{quick.url}/predict", content=b"poison")
    assert (alone.status_code, alone.json()["error"]["code"]) == (502, "model_failed")
    assert "model.py" not in alone.text
    body = b'{"text": "a"}\n{"text": "poison"}\n{"text": "b"}\n'
    *items, end = [json.loads(line) for line in httpx.post(f"{quick.url}/v1/models/quick/batch", content=body).text.splitlines()]
    assert [item.get("error", {}).get("code") for item in items] == [None, "model_failed", None]
    assert end["end"] == {"items": 3, "failed": 1, "complete": True}


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_above_the_limit_is_refused_over_a_real_connection(quick, chunked):
    body = b"x" * (1024 * 1024 + 1)

    def chunks():
        yield body

    answer = httpx.post(f"{quick.url}/predict", content=chunks() if chunked else body)
    assert answer.status_code == 413


def test_on_sigterm_readiness_goes_off_first_and_what_is_under_way_is_answered(slow):
    with ThreadPoolExecutor(1) as pool:
        going = pool.submit(httpx.post, f"{slow.url}/predict", content=b"x", timeout=20)
        wait_until(lambda: metric(slow, "front_in_flight") == 1)
        slow.terminate()
        wait_until(lambda: not slow.is_ready())
        # Whoever has not heard of it yet is served all the same.
        assert httpx.get(f"{slow.url}/health/ready").json()["ready"] is False
        assert httpx.post(f"{slow.url}/predict", content=b"y", timeout=20).status_code == 200
        assert going.result().status_code == 200
    assert slow.wait_end() == 0
    with pytest.raises(httpx.ConnectError):
        httpx.get(slow.url)


def test_a_model_that_is_gone_is_503_with_a_time_to_come_back_and_unready():
    target = ModelTargetSpec(name="quick", address="127.0.0.1:1", signature=SIGNATURE, max_batch_size=1)
    with FrontProcess(target) as front:
        wait_until(lambda: reachable(front))
        answer = httpx.post(f"{front.url}/predict", content=b"x")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
        assert httpx.get(f"{front.url}/health/ready").status_code == 503
        assert httpx.get(f"{front.url}/health/live").status_code == 200


def reachable(front):
    try:
        return httpx.get(f"{front.url}/health/live").status_code == 200
    except httpx.HTTPError:
        return False


def test_magika_says_what_a_file_is(image_server):
    target = ModelTargetSpec(name="magika", address=image_server.grpc, signature=model_manifest("magika").signature)
    with FrontProcess(target) as front:
        front.wait_ready()
        script = b"#!/usr/bin/env python3\nimport sys\nsys.exit(0)\n"
        answer = httpx.post(f"{front.url}/predict", files={"file": ("x.py", script)}).json()
        assert answer["outputs"]["label"] == "python"
        front.terminate()
        assert front.wait_end() == 0
        lines = [json.loads(line) for line in front.log.read_text().splitlines() if line.startswith("{")]
        assert [(line["status"], line["request_id"]) for line in lines] == [(200, answer["request_id"])]
        assert "sys.exit" not in front.log.read_text()
