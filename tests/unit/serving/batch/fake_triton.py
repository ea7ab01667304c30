"""A v2 gRPC server that answers at once: one input, BYTES or a vector, its length and its text as outputs; what goes wrong is chosen by the test."""

import asyncio
import random
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import grpc
import grpc.aio
from tritonclient.grpc import service_pb2 as pb

from serving.contract import GRPC_SERVICE

MAX_BATCH = 8
LEVELS = 2


class FakeTriton:
    """`faults` looks at a request's contents before it is answered and may raise Refuse; `asked` counts the answers given to each content."""

    def __init__(self) -> None:
        self.asked: Counter[bytes] = Counter()
        self.sizes: list[int] = []
        self.priorities: list[int] = []
        self.requests = 0
        self.seen: list[tuple[pb.ModelInferRequest, dict[str, str]]] = []
        # Every request of any kind, by method and headers.
        self.headers: list[tuple[str, dict[str, str]]] = []
        # Answered with instead of the method's own answer, by method; the number of times.
        self.refusals: dict[str, list[grpc.StatusCode]] = {}
        self.faults: Callable[[list[bytes]], None] = lambda _: None
        self.on_request: Callable[[int], None] = lambda _: None
        self.delay_seconds: Callable[[], float] = lambda: 0.0
        self.ready = True
        self.config_readable = True
        self.empty = False
        self.datatype, self.shape = "BYTES", [-1, 1]
        self.address = ""
        self.loop: asyncio.AbstractEventLoop

    async def infer(self, request: pb.ModelInferRequest, context: "grpc.aio.ServicerContext[object, object]") -> pb.ModelInferResponse:
        self.requests += 1
        self.on_request(self.requests)
        self.seen.append((pb.ModelInferRequest.FromString(request.SerializeToString()), headers_of(context)))
        [raw] = request.raw_input_contents
        contents = unpack(raw) if self.datatype == "BYTES" else [raw]
        self.sizes.append(len(contents))
        self.priorities.append(request.parameters["priority"].uint64_param)
        await asyncio.sleep(self.delay_seconds())
        try:
            self.faults(contents)
        except Refuse as refusal:
            await context.abort(refusal.code, refusal.text)
        self.asked.update(contents)
        response = pb.ModelInferResponse(model_name=request.model_name, model_version="1")
        rows = [] if self.empty else contents
        response.outputs.add(name="length", datatype="INT32", shape=[len(rows), 1])
        response.outputs.add(name="text", datatype="BYTES", shape=[len(rows), 1])
        response.raw_output_contents.append(b"".join(len(content).to_bytes(4, "little") for content in rows))
        response.raw_output_contents.append(b"".join(len(content).to_bytes(4, "little") + content for content in rows))
        return response

    async def metadata(self, request: pb.ModelMetadataRequest, context: "grpc.aio.ServicerContext[object, object]") -> pb.ModelMetadataResponse:
        if request.name != "echo":
            await context.abort(grpc.StatusCode.NOT_FOUND, f"unknown model {request.name}")
        response = pb.ModelMetadataResponse(name="echo", versions=["1"])
        response.inputs.add(name="content", datatype=self.datatype, shape=self.shape)
        response.outputs.add(name="length", datatype="INT32", shape=[-1, 1])
        response.outputs.add(name="text", datatype="BYTES", shape=[-1, 1])
        return response

    async def config(self, request: pb.ModelConfigRequest, context: "grpc.aio.ServicerContext[object, object]") -> pb.ModelConfigResponse:
        if not self.config_readable:
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, "RBAC: access denied")
        response = pb.ModelConfigResponse()
        response.config.max_batch_size = MAX_BATCH
        response.config.dynamic_batching.priority_levels = LEVELS
        return response

    async def model_ready(self, request: pb.ModelReadyRequest, context: object) -> pb.ModelReadyResponse:
        return pb.ModelReadyResponse(ready=self.ready)

    def noted(self, name: str, method: Callable[[Any, Any], Awaitable[Any]]) -> Callable[[Any, Any], Awaitable[Any]]:
        """The method, noted, and refused as often as the test says."""

        async def answer(request: Any, context: Any) -> Any:
            self.headers.append((name, headers_of(context)))
            if codes := self.refusals.get(name):
                await context.abort(codes.pop(0), "as told")
            return await method(request, context)

        return answer

    async def serve(self, started: threading.Event, stop: asyncio.Event) -> None:
        self.loop = asyncio.get_running_loop()
        server = grpc.aio.server()
        methods = {
            "ModelInfer": (self.infer, pb.ModelInferRequest),
            "ModelMetadata": (self.metadata, pb.ModelMetadataRequest),
            "ModelConfig": (self.config, pb.ModelConfigRequest),
            "ModelReady": (self.model_ready, pb.ModelReadyRequest),
        }
        handlers = {
            name: grpc.unary_unary_rpc_method_handler(self.noted(name, method), kind.FromString, lambda message: message.SerializeToString())
            for name, (method, kind) in methods.items()
        }
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(GRPC_SERVICE, handlers),))
        self.address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
        await server.start()
        started.set()
        await stop.wait()
        await server.stop(0)


class Refuse(Exception):  # noqa: N818  (an instruction to the fake)
    def __init__(self, code: grpc.StatusCode, text: str = "") -> None:
        self.code, self.text = code, text


def headers_of(context: Any) -> dict[str, str]:
    return {name: value for name, value in context.invocation_metadata() or () if isinstance(value, str)}


def unpack(tensor: bytes) -> list[bytes]:
    contents, at = [], 0
    while at < len(tensor):
        size = int.from_bytes(tensor[at : at + 4], "little")
        contents.append(tensor[at + 4 : at + 4 + size])
        at += 4 + size
    return contents


def poison(*bad: bytes) -> Callable[[list[bytes]], None]:
    """Fail every request that holds one of `bad`, as a Python model does that raises."""

    def fault(contents: list[bytes]) -> None:
        if found := set(bad) & set(contents):
            raise Refuse(grpc.StatusCode.INTERNAL, f"Failed to process the request(s): {sorted(found)}")

    return fault


def sheds(share: float, seed: int, code: grpc.StatusCode = grpc.StatusCode.UNAVAILABLE) -> Callable[[list[bytes]], None]:
    """Refuse a share of the requests, as a full queue does."""
    draw = random.Random(seed)  # noqa: S311  (a reproducible fault)

    def fault(contents: list[bytes]) -> None:
        if draw.random() < share:
            raise Refuse(code, "Exceeds maximum queue size")

    return fault


@contextmanager
def fake_triton() -> Iterator[FakeTriton]:
    """A running FakeTriton on a port of its own."""
    server, started, stop = FakeTriton(), threading.Event(), asyncio.Event()
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(started, stop)), daemon=True)
    thread.start()
    assert started.wait(10)
    yield server
    server.loop.call_soon_threadsafe(stop.set)
    thread.join(10)
