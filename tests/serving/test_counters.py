"""Triton's counters around requests that are known: what they count, and in which unit."""

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from components.core.latency import CounterWindow
from tests.e2e.waits import wait_for
from tests.serving.sleepy import BEGINS, MODEL, request_json, sleepy_repository
from tools.triton_process import TritonProcess

pytestmark = pytest.mark.serving

# Long enough for the others to arrive on a machine that is busy with other things.
FIRST_SECONDS = 3.0
WAITING = 4
ITEMS = 2
# From the run of the model to the answer, on a machine that is busy with other things.
SLACK_MS = 3000


@pytest.fixture(scope="module")
def sleepy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TritonProcess]:
    folder = tmp_path_factory.mktemp("sleepy")
    folder.parent.chmod(0o755)
    with TritonProcess(repository=sleepy_repository(folder), log=folder.with_suffix(".log")) as triton:
        triton.wait_ready()
        yield triton


def counters(server: TritonProcess) -> CounterWindow:
    text = httpx.get(server.metrics).text

    def read(name: str) -> float:
        [value] = re.findall(rf'^{name}{{model="{MODEL}",version="1"}} (\S+)$', text, re.MULTILINE)
        return float(value)

    return CounterWindow(
        requests=read("nv_inference_request_success"),
        executions=read("nv_inference_exec_count"),
        inferences=read("nv_inference_count"),
        request_us=read("nv_inference_request_duration_us"),
        queue_us=read("nv_inference_queue_duration_us"),
    )


def infer(server: TritonProcess, seconds: float, items: int) -> None:
    httpx.post(f"{server.http}/v2/models/{MODEL}/infer", json=request_json(seconds, items), timeout=30).raise_for_status()


def runs_begun(server: TritonProcess) -> int:
    return server.log.read_text(errors="replace").count(BEGINS)


def test_requests_executions_items_and_microseconds_are_what_they_are_called(sleepy: TritonProcess) -> None:
    """triton-inference-server/server#7692, #5927: one request of one item runs; four of two items wait for it, then share one run."""
    before, begun = counters(sleepy), runs_begun(sleepy)
    with ThreadPoolExecutor(1 + WAITING) as callers:
        first = callers.submit(infer, sleepy, FIRST_SECONDS, 1)
        wait_for("the first request runs", lambda: runs_begun(sleepy), lambda runs: runs == begun + 1, seconds=30, every=0.01)
        waiting = [callers.submit(infer, sleepy, 0.0, ITEMS) for _ in range(WAITING)]
        for call in (first, *waiting):
            call.result()
    after = counters(sleepy)
    window = CounterWindow(**{name: value - getattr(before, name) for name, value in vars(after).items()})
    assert (window.requests, window.executions, window.inferences) == (1 + WAITING, 2, 1 + WAITING * ITEMS)
    assert window.mean_batch == pytest.approx((1 + WAITING * ITEMS) / 2)
    # One lasted as long as its run, and four stood in the queue behind it, which is part of their time: seconds, told in microseconds.
    assert 0 < window.mean_queue_ms < window.mean_request_ms < FIRST_SECONDS * 1000 + SLACK_MS
    assert window.mean_request_ms > FIRST_SECONDS * 1000 / (1 + WAITING)
