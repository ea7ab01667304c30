"""Request sizes at the gateway, with the real Envoy and the real Triton: what is too large is refused, and what is not never ends a server."""

import os
import shutil
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import grpc
import httpx
import pytest
from tritonclient.grpc.service_pb2 import ModelInferResponse, ModelStreamInferResponse

from components.core.requests import MIB
from components.inference.memory import memory_parts, plan_shared_memory
from components.inference.spec import ModelFootprint, ServerSpec
from components.traffic.spec import RoutingSpec
from loadtests.payloads import Document, grpc_infer, http_raw
from serving.contract import CONFIG_FILE, GRPC_SERVICE, REPOSITORY_PATH
from serving.model_config import BatchingSpec, InstancesSpec, ServingSpec, model_manifest, render_config
from tests.serving.gateway import Gateway, gateway
from tests.serving.memory import peak, resident_mib
from tools.endpoint import SIGNATURE
from tools.triton_process import TritonProcess, serving_rootfs

pytestmark = pytest.mark.serving

BATCH = 16
ROUTING = RoutingSpec(max_request_mib=2, max_in_flight=128)
SERVING = ServingSpec(batching=BatchingSpec(max_batch_size=BATCH), instances=InstancesSpec(count=1))
MANIFEST = model_manifest(SIGNATURE.model)
FOOTPRINT = ModelFootprint(
    instances=1,
    memory_mib=MANIFEST.version(1).memory_mib,
    shared_memory_mib=MANIFEST.shared_memory_mib,
    load_budget_seconds=MANIFEST.load_budget_seconds,
    max_batch=BATCH,
    max_rows=BATCH,
    python_backend="python",
)
SHM_MIB = plan_shared_memory(SIGNATURE.model, ServerSpec(), [FOOTPRINT], ROUTING.requests) or 0
MEMORY_MIB = sum(memory_parts(SIGNATURE.model, ServerSpec(), [FOOTPRINT], ROUTING.requests, SHM_MIB).values())
LIMIT = ROUTING.requests.max_request_bytes
# More callers than requests may be under way, over both protocols.
CALLERS = 160
# Envoy with hundreds of connections, each of which it reads ahead a little; far from what the requests weigh together.
GATEWAY_MIB = 200
HUGE = 64 * MIB


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TritonProcess]:
    """The image's model in batches, with the shared memory that a stack gives it."""
    folder = tmp_path_factory.mktemp("repository")
    model = folder / SIGNATURE.model
    shutil.copytree(serving_rootfs().path / REPOSITORY_PATH.lstrip("/") / SIGNATURE.model, model)
    (model / CONFIG_FILE).write_text(render_config(MANIFEST, 1, SERVING, "cpu"))
    folder.chmod(0o755)
    with TritonProcess(repository=folder, shm_mib=SHM_MIB, log=tmp_path_factory.mktemp("log") / "triton.log") as triton:
        triton.wait_ready()
        yield triton


@pytest.fixture(scope="module")
def front(server: TritonProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with gateway(server, ROUTING, tmp_path_factory.mktemp("gateway")) as found:
        yield found


@contextmanager
def channel(front: Gateway) -> Iterator[grpc.Channel]:
    options = [("grpc.max_send_message_length", -1), ("grpc.use_local_subchannel_pool", 1)]
    with grpc.insecure_channel(front.grpc, options) as opened:
        yield opened


def message(size: int) -> bytes:
    """A request of exactly `size` bytes. What is around the content has lengths of its own, which vary by a byte or two."""
    around = len(grpc_infer(SIGNATURE, Document(bytes(size)))) - size
    return next(made for more in range(8) if len(made := grpc_infer(SIGNATURE, Document(bytes(size - around + more)))) == size)


def infer(front: Gateway, request: bytes, compression: grpc.Compression | None = None) -> ModelInferResponse:
    with channel(front) as opened:
        call = opened.unary_unary(f"/{GRPC_SERVICE}/ModelInfer", request_serializer=bytes, response_deserializer=ModelInferResponse.FromString)
        answer: ModelInferResponse = call(request, timeout=60, compression=compression)
        return answer


def refused(code: grpc.StatusCode, call: Callable[[], object]) -> str:
    with pytest.raises(grpc.RpcError) as raised:
        call()
    assert raised.value.code() is code, raised.value
    return str(raised.value.details())


def test_a_message_at_the_limit_is_answered_and_one_byte_more_is_refused(front: Gateway) -> None:
    largest = message(LIMIT)
    assert len(largest) == LIMIT
    assert infer(front, largest).model_name == SIGNATURE.model
    assert refused(grpc.StatusCode.RESOURCE_EXHAUSTED, lambda: infer(front, message(LIMIT + 1))) == f"a message is limited to {LIMIT} bytes"


def test_a_huge_message_is_refused_and_held_by_nobody(front: Gateway, server: TritonProcess) -> None:
    """Without a limit, 200 MB in one message ended a server of 768 MiB."""
    before = resident_mib(server)
    with peak(lambda: front.memory_mib) as envoy, peak(lambda: resident_mib(server)) as triton:
        refused(grpc.StatusCode.RESOURCE_EXHAUSTED, lambda: infer(front, message(HUGE)))
    assert max(envoy) < HUGE / MIB / 2
    assert max(triton) - before < HUGE / MIB / 2


def test_messages_that_hide_their_size_are_refused(front: Gateway) -> None:
    """200 MB of zeros are 200 kB when compressed."""
    details = refused(grpc.StatusCode.UNIMPLEMENTED, lambda: infer(front, message(LIMIT), grpc.Compression.Gzip))
    assert details == "send messages uncompressed"


def test_a_stream_goes_on_while_its_messages_fit_and_ends_at_the_first_that_does_not(front: Gateway) -> None:
    """Nothing waits for the end of the stream: every answer is there before the next message is sent."""
    sizes = [100, LIMIT, 5000, LIMIT - 1, LIMIT + 1]
    with channel(front) as opened:
        answered = threading.Semaphore(1)

        def messages() -> Iterator[bytes]:
            for size in sizes:
                assert answered.acquire(timeout=30)
                yield message(size)

        call = opened.stream_stream(
            f"/{GRPC_SERVICE}/ModelStreamInfer", request_serializer=bytes, response_deserializer=ModelStreamInferResponse.FromString
        )
        stream = iter(call(messages(), timeout=60))
        for _ in sizes[:-1]:
            assert next(stream).infer_response.model_name == SIGNATURE.model
            answered.release()
        refused(grpc.StatusCode.RESOURCE_EXHAUSTED, lambda: next(stream))


def test_many_small_messages_in_one_piece_of_the_stream_are_counted_one_by_one(front: Gateway) -> None:
    """They arrive together, cut anywhere, so that the five bytes before a message are in two pieces now and then."""
    contents = [bytes((7 * number) % 400) for number in range(300)]
    with channel(front) as opened:
        call = opened.stream_stream(
            f"/{GRPC_SERVICE}/ModelStreamInfer", request_serializer=bytes, response_deserializer=ModelStreamInferResponse.FromString
        )
        stream = call((grpc_infer(SIGNATURE, Document(content)) for content in contents), timeout=60)
        assert sum(answer.infer_response.model_name == SIGNATURE.model for answer in stream) == len(contents)


def test_a_body_without_a_length_is_not_passed_on(front: Gateway) -> None:
    """The routes refuse POSTs of that kind; with any other method the body stays at the gateway."""

    def pieces() -> Iterator[bytes]:
        for _ in range(HUGE // MIB):
            yield bytes(MIB)

    with peak(lambda: front.memory_mib) as envoy:
        answer = httpx.request("GET", f"{front.http}/v2/health/live", content=pieces(), headers={"Transfer-Encoding": "chunked"}, timeout=60)
    assert answer.status_code == httpx.codes.OK
    assert max(envoy) < HUGE / MIB / 2


def test_many_largest_requests_at_once_are_all_answered_within_the_memory_of_the_rule(front: Gateway, server: TritonProcess) -> None:
    """More than may be under way: the rest waits at the gateway. A container with exactly the memory that the rule asks for would hold it."""
    raw, request = http_raw(SIGNATURE, Document(os.urandom(LIMIT))), message(LIMIT)

    def over_http() -> str:
        answer = httpx.post(f"{front.http}{raw.path}", content=raw.body, headers=raw.headers, timeout=60)
        return f"http {answer.status_code}"

    def over_grpc() -> str:
        return f"grpc {infer(front, request).model_name}"

    with (
        ThreadPoolExecutor(CALLERS) as callers,
        peak(lambda: resident_mib(server)) as triton,
        peak(lambda: front.memory_mib) as envoy,
    ):
        calls = [callers.submit(over_http if number % 2 else over_grpc) for number in range(CALLERS)]
        answers = Counter(call.result() for call in calls)
    assert answers == {"http 200": CALLERS / 2, f"grpc {SIGNATURE.model}": CALLERS / 2}
    assert max(triton) < MEMORY_MIB, f"{max(triton):.0f} MiB, the rule says {MEMORY_MIB}"
    assert max(envoy) < GATEWAY_MIB
