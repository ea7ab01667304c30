from collections.abc import Iterator

import pytest

from loadtests.grpc_target import GrpcTarget
from loadtests.http_target import HttpTarget
from loadtests.payloads import Document
from tests.unit.loadtests.server import SIGNATURE, FakeServer, fake_server

PNG = Document(b"\x89PNG\r\n\x1a\n", "png")


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with fake_server() as server:
        yield server


@pytest.fixture
def over_http(server: FakeServer) -> HttpTarget:
    return HttpTarget(name="http", address=server.http, authority="magika.inference.test", signature=SIGNATURE, documents=(PNG,))


@pytest.fixture
def over_grpc(server: FakeServer) -> GrpcTarget:
    return GrpcTarget(name="grpc", address=server.grpc, authority="magika.inference.test", signature=SIGNATURE, documents=(PNG,))
