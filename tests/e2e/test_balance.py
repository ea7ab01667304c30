"""Requests of one gRPC connection are spread over all pods."""

import asyncio
import re
from collections.abc import Iterator

import pytest

from components import labels
from loadtests.grpc_target import GrpcTarget
from loadtests.samples import Answer
from serving.contract import METRICS_PORT
from tests.e2e.kube import Kube, Manifest
from tests.e2e.platform import MODEL, NAMESPACE, Platform
from tests.e2e.traffic import SHORT, gateway
from tests.e2e.waits import wait_for
from tools.endpoint import SIGNATURE

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

REPLICAS = 4
CALLS = 4000
# Calls under way at a time on the one connection.
CONCURRENCY = 16
TOLERANCE = 0.1
READY_SECONDS = 120
COUNTED = re.compile(rf'^nv_inference_request_success{{.*model="{MODEL}".*}} (\d+)', re.MULTILINE)


@pytest.fixture(scope="module")
def pods(platform: Platform) -> Iterator[list[Manifest]]:
    """Version 1 alone, in four pods."""
    selector = {**labels.model_selector(MODEL), labels.VERSION: "v1"}
    with platform.restored():
        edit = platform.edit({f"models.{MODEL}.server.replicas": str(REPLICAS)}, without=(f"models.{MODEL}.canary",))
        assert edit.result.ok, edit.result.log
        ready = wait_for(
            f"{REPLICAS} pods are ready", lambda: platform.kube.ready_pods(NAMESPACE, selector), lambda p: len(p) == REPLICAS, seconds=READY_SECONDS
        )
        yield ready


def answered(kube: Kube, pod: Manifest) -> int:
    """Requests that the pod's Triton says it has answered."""
    return sum(map(int, COUNTED.findall(kube.pod_call("GET", pod, METRICS_PORT, "metrics"))))


async def call_over_one_connection(target: GrpcTarget) -> list[Answer]:
    turns = iter(range(CALLS))
    async with target.session() as send:

        async def caller() -> list[Answer]:
            return [await send(turn) for turn in turns]

        return [answer for answers in await asyncio.gather(*(caller() for _ in range(CONCURRENCY))) for answer in answers]


def test_each_pod_gets_its_share_of_the_calls_of_one_grpc_connection(platform: Platform, pods: list[Manifest]) -> None:
    """istio/istio#7117, ray-project/kuberay#2347: taken for plain TCP, the connection would end in one pod."""
    target = GrpcTarget(name="grpc", address=gateway(platform), authority=platform.authority, signature=SIGNATURE, documents=SHORT, connections=1)
    before = [answered(platform.kube, pod) for pod in pods]
    answers = asyncio.run(call_over_one_connection(target))
    assert not [answer for answer in answers if answer.error]
    shares = [answered(platform.kube, pod) - former for pod, former in zip(pods, before, strict=True)]
    assert sum(shares) == CALLS
    assert shares == pytest.approx([CALLS / REPLICAS] * REPLICAS, rel=TOLERANCE)
