"""A stand-in for Triton on loopback: HTTP and gRPC, a version per answer, and a switch that freezes it."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count

import grpc
import grpc.aio
from aiohttp import web
from tritonclient.grpc.service_pb2 import ModelInferRequest, ModelInferResponse

from loadtests.address import OwnAddress, own_address
from loadtests.payloads import LENGTH, Signature
from serving.contract import GRPC_SERVICE, JSON_LENGTH_HEADER

SIGNATURE = Signature("magika", "content", "label")


class FakeServer:
    """`version` and `label` decide the answer to the n-th request; `stall(seconds)` lets everything that arrives wait."""

    def __init__(self) -> None:
        self.version: Callable[[int], str] = lambda _: "1"
        self.label = "png"
        self.status = 200
        self.hosts: list[str] = []
        self.http: OwnAddress
        self.grpc: OwnAddress
        self.numbers = count()
        self._resume = 0.0
        self._loop: asyncio.AbstractEventLoop

    def stall(self, seconds: float) -> None:
        self._resume = self._loop.time() + seconds

    async def _answer(self) -> tuple[str, bytes]:
        number = next(self.numbers)
        await asyncio.sleep(max(0.0, self._resume - self._loop.time()))
        return self.version(number), LENGTH.pack(len(self.label)) + self.label.encode() if self.label else b""

    async def _http(self, request: web.Request) -> web.Response:
        self.hosts.append(request.host)
        await request.read()
        version, tensor = await self._answer()
        output = {"name": "label", "datatype": "BYTES", "shape": [1, 1], "parameters": {"binary_data_size": len(tensor)}}
        header = json.dumps({"model_name": "magika", "model_version": version, "outputs": [output]}).encode()
        return web.Response(status=self.status, body=header + tensor, headers={JSON_LENGTH_HEADER: str(len(header))})

    async def _grpc(self, request: bytes, context: object) -> bytes:
        assert ModelInferRequest.FromString(request).model_name == "magika"
        version, tensor = await self._answer()
        response = ModelInferResponse(model_name="magika", model_version=version, raw_output_contents=[tensor])
        response.outputs.add(name="label", datatype="BYTES", shape=[1, 1])
        return bytes(response.SerializeToString())

    async def serve(self, ready: threading.Event, stop: asyncio.Event) -> None:
        self._loop = asyncio.get_running_loop()
        app = web.Application()
        app.router.add_post("/v2/models/magika/infer", self._http)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        server = grpc.aio.server()
        handler = grpc.unary_unary_rpc_method_handler(self._grpc)
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(GRPC_SERVICE, {"ModelInfer": handler}),))
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        self.http, self.grpc = own_address("127.0.0.1", runner.addresses[0][1]), own_address("127.0.0.1", port)
        ready.set()
        await stop.wait()
        await server.stop(0)
        await runner.cleanup()


@contextmanager
def fake_server() -> Iterator[FakeServer]:
    """A running FakeServer on ports of its own."""
    server, ready, stop = FakeServer(), threading.Event(), asyncio.Event()
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(ready, stop)), daemon=True)
    thread.start()
    assert ready.wait(10)
    yield server
    server._loop.call_soon_threadsafe(stop.set)
    thread.join(10)
