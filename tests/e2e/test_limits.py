"""Request sizes at the live gateway: what is too large is refused, and what is not ends no server."""

import http.client
import os
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import grpc
import httpx
import pytest

from components.core.requests import MIB
from components.traffic.spec import RoutingSpec
from loadtests.payloads import Document, grpc_infer, http_raw, infer_path
from serving.contract import GRPC_SERVICE, JSON_LENGTH_HEADER
from tests.e2e.platform import MODEL, Platform
from tests.e2e.test_prediction import restarts
from tests.e2e.traffic import gateway
from tools.endpoint import SIGNATURE

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

# What the local stack says nothing about.
LIMIT = RoutingSpec().requests.max_request_bytes
LARGEST = RoutingSpec().max_request_mib * MIB
HUGE = 200 * MIB
CALLERS = 96
# A container that ended is counted once the kubelet has seen it.
SEEN_SECONDS = 3


@pytest.fixture(autouse=True)
def no_server_ends(platform: Platform) -> Iterator[None]:
    before = restarts(platform)
    yield
    time.sleep(SEEN_SECONDS)
    # Pods of an earlier rollout may have gone meanwhile: a server that ends keeps its pod.
    assert all(count == before.get(pod, 0) for pod, count in restarts(platform).items())


def over_http(platform: Platform, body: bytes) -> int:
    request = http_raw(SIGNATURE, Document(body))
    headers = {**request.headers, "Host": platform.authority}
    return httpx.post(f"http://{gateway(platform)}{request.path}", content=request.body, headers=headers, timeout=60, trust_env=False).status_code


def over_grpc(platform: Platform, content: bytes, compression: grpc.Compression | None = None) -> grpc.StatusCode:
    options = [
        ("grpc.default_authority", platform.authority),
        ("grpc.enable_http_proxy", 0),
        ("grpc.max_send_message_length", -1),
        ("grpc.use_local_subchannel_pool", 1),
    ]
    with grpc.insecure_channel(str(gateway(platform)), options) as channel:
        call = channel.unary_unary(f"/{GRPC_SERVICE}/ModelInfer", request_serializer=bytes, response_deserializer=bytes)
        try:
            call(grpc_infer(SIGNATURE, Document(content)), timeout=60, compression=compression)
        except grpc.RpcError as error:
            code: grpc.StatusCode = error.code()
            return code
    return grpc.StatusCode.OK


def test_what_is_larger_than_the_limit_is_refused_and_what_is_not_is_answered(platform: Platform) -> None:
    assert over_http(platform, bytes(LARGEST)) == httpx.codes.OK
    assert over_http(platform, bytes(LIMIT + 1)) == httpx.codes.REQUEST_ENTITY_TOO_LARGE
    assert over_grpc(platform, bytes(LARGEST)) is grpc.StatusCode.OK
    assert over_grpc(platform, bytes(LIMIT)) is grpc.StatusCode.RESOURCE_EXHAUSTED


def test_200_mb_in_one_request_reach_no_server(platform: Platform) -> None:
    """Over gRPC they ended a server of 768 MiB, compressed to 200 kB too."""
    assert over_grpc(platform, bytes(HUGE)) is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert over_grpc(platform, bytes(HUGE), grpc.Compression.Gzip) is grpc.StatusCode.UNIMPLEMENTED
    # Refused by its head, whether or not the body follows.
    connection = http.client.HTTPConnection(platform.node_address, platform.gateway_port, timeout=10)
    connection.putrequest("POST", infer_path(MODEL), skip_host=True)
    for name, value in {"Host": platform.authority, "Content-Length": str(HUGE), JSON_LENGTH_HEADER: "0"}.items():
        connection.putheader(name, value)
    connection.endheaders()
    assert connection.getresponse().status == http.client.REQUEST_ENTITY_TOO_LARGE
    connection.close()


def test_many_of_the_largest_requests_at_once_are_all_answered(platform: Platform) -> None:
    body = os.urandom(LARGEST)
    with ThreadPoolExecutor(CALLERS) as callers:
        calls = [callers.submit(over_http if number % 2 else over_grpc, platform, body) for number in range(CALLERS)]
        answers = Counter(call.result() for call in calls)
    assert answers == {200: CALLERS / 2, grpc.StatusCode.OK: CALLERS / 2}
