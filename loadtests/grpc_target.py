"""gRPC: unary ModelInfer over a few connections, without retries."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import grpc
import grpc.aio
from tritonclient.grpc.service_pb2 import ModelInferResponse

from loadtests.address import OwnAddress
from loadtests.payloads import Document, Signature, grpc_infer, judge, read_grpc
from loadtests.samples import DETAIL_MAX, Answer, ErrorKind
from loadtests.target import Send
from serving.contract import GRPC_SERVICE

METHOD = f"/{GRPC_SERVICE}/ModelInfer"
# gRPC reports what happened below it as UNAVAILABLE; its text is the only thing that tells a refused connection from a broken one.
NO_CONNECTION = "failed to connect"


@dataclass(frozen=True, kw_only=True)
class GrpcTarget:
    """Sends the documents in turn, spread over `connections` HTTP/2 connections."""

    name: str
    address: OwnAddress
    authority: str
    signature: Signature
    documents: tuple[Document, ...]
    version: int | None = None
    connections: int = 4

    protocol = "grpc"

    @asynccontextmanager
    async def session(self) -> AsyncIterator[Send]:
        requests = [grpc_infer(self.signature, document, self.version) for document in self.documents]
        async with AsyncExitStack() as stack:
            channels = [
                await stack.enter_async_context(grpc.aio.insecure_channel(str(self.address), self._options())) for _ in range(self.connections)
            ]
            calls = [
                channel.unary_unary(METHOD, request_serializer=bytes, response_deserializer=ModelInferResponse.FromString) for channel in channels
            ]

            async def send(turn: int) -> Answer:
                index = turn % len(requests)
                return await self._call(calls[turn % len(calls)], requests[index], self.documents[index])

            yield send

    def _options(self) -> list[tuple[str, str | int]]:
        """No hidden retries, a connection per channel instead of one for the process, and quick reconnects so that an outage is not seen as longer than it is."""
        return [
            ("grpc.default_authority", self.authority),
            ("grpc.enable_retries", 0),
            ("grpc.use_local_subchannel_pool", 1),
            ("grpc.enable_http_proxy", 0),
            ("grpc.min_reconnect_backoff_ms", 100),
            ("grpc.initial_reconnect_backoff_ms", 100),
            ("grpc.max_reconnect_backoff_ms", 500),
        ]

    async def _call(self, call: "grpc.aio.UnaryUnaryMultiCallable[bytes, ModelInferResponse]", request: bytes, document: Document) -> Answer:
        try:
            response = await call(request)
        except grpc.aio.AioRpcError as error:
            return failed(error.code(), error.details() or "")
        return judge(grpc.StatusCode.OK.value[0], document, lambda: read_grpc(self.signature, response))


def failed(code: grpc.StatusCode, details: str) -> Answer:
    """The Answer that stands for a call which ended with `code`."""
    kind = ErrorKind.CONNECT if code is grpc.StatusCode.UNAVAILABLE and NO_CONNECTION in details.lower() else ErrorKind.STATUS
    return Answer(code.value[0], error=kind, detail=f"{code.name} {details}"[:DETAIL_MAX])
