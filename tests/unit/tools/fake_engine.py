"""The engine's side of a Python program: the two services it calls, recording what they are told."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

import grpc
from google.protobuf import empty_pb2, json_format
from pulumi.runtime.proto import engine_pb2, engine_pb2_grpc, resource_pb2, resource_pb2_grpc


@dataclass
class FakeEngine:
    """`address` serves both the resource monitor and the engine's log."""

    address: str = ""
    errors: list[str] = field(default_factory=list)
    outputs: list[dict[str, object]] = field(default_factory=list)


class _Monitor(resource_pb2_grpc.ResourceMonitorServicer):
    def __init__(self, engine: FakeEngine) -> None:
        self._engine = engine

    def GetDeploymentInfo(self, request, context):  # noqa: N802
        return resource_pb2.DeploymentInfo()

    def RegisterResource(self, request, context):  # noqa: N802
        return resource_pb2.RegisterResourceResponse(urn=f"urn:pulumi:dev::demo::{request.type}::{request.name}")

    def RegisterResourceOutputs(self, request, context):  # noqa: N802
        self._engine.outputs.append(json_format.MessageToDict(request.outputs))
        return empty_pb2.Empty()

    def SignalAndWaitForShutdown(self, request, context):  # noqa: N802
        return empty_pb2.Empty()


class _Log(engine_pb2_grpc.EngineServicer):
    def __init__(self, engine: FakeEngine) -> None:
        self._engine = engine

    def Log(self, request, context):  # noqa: N802
        if request.severity == engine_pb2.ERROR:
            self._engine.errors.append(request.message)
        return empty_pb2.Empty()


@contextmanager
def fake_engine() -> Iterator[FakeEngine]:
    engine = FakeEngine()
    server = grpc.server(ThreadPoolExecutor(max_workers=8))
    resource_pb2_grpc.add_ResourceMonitorServicer_to_server(_Monitor(engine), server)
    engine_pb2_grpc.add_EngineServicer_to_server(_Log(engine), server)
    engine.address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    yield engine
    server.stop(0).wait()
