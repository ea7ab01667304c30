"""What changes a server is refused by the server itself, whoever asks; what a caller needs is not."""

from pathlib import Path

import grpc
import httpx
import pytest
from tritonclient.grpc import service_pb2

from components.inference.pod_manifest import ADMIN_HEADER
from serving.contract import GRPC_SERVICE
from tests.serving.repository import key_of
from tools.triton_process import TritonProcess

pytestmark = pytest.mark.serving

MODEL = "magika"
CLOSED_HTTP = (
    ("POST", "/v2/repository/index"),
    ("POST", f"/v2/repository/models/{MODEL}/load"),
    ("POST", f"/v2/repository/models/{MODEL}/unload"),
    ("GET", "/v2/systemsharedmemory/status"),
    ("POST", "/v2/systemsharedmemory/region/any/register"),
    ("POST", "/v2/systemsharedmemory/unregister"),
    ("GET", "/v2/cudasharedmemory/status"),
    ("POST", "/v2/cudasharedmemory/region/any/register"),
    ("GET", "/v2/trace/setting"),
    ("POST", f"/v2/models/{MODEL}/trace/setting"),
    ("GET", "/v2/logging"),
    ("POST", "/v2/logging"),
)
CLOSED_GRPC = (
    "RepositoryIndex",
    "RepositoryModelLoad",
    "RepositoryModelUnload",
    "SystemSharedMemoryStatus",
    "SystemSharedMemoryRegister",
    "SystemSharedMemoryUnregister",
    "CudaSharedMemoryStatus",
    "CudaSharedMemoryRegister",
    "CudaSharedMemoryUnregister",
    "TraceSetting",
    "LogSettings",
)
OPEN_HTTP = ("/v2", "/v2/health/live", "/v2/health/ready", f"/v2/models/{MODEL}", f"/v2/models/{MODEL}/config", f"/v2/models/{MODEL}/stats")
OPEN_GRPC = ("ServerLive", "ServerReady", "ServerMetadata", "ModelReady", "ModelMetadata", "ModelConfig", "ModelStatistics")


def call(server: TritonProcess, method: str, metadata: tuple[tuple[str, str], ...] = ()) -> None:
    named = method.startswith("Model")
    request = service_pb2.ModelReadyRequest(name=MODEL).SerializeToString() if named else b""
    with grpc.insecure_channel(server.grpc) as channel:
        channel.unary_unary(f"/{GRPC_SERVICE}/{method}", request_serializer=bytes, response_deserializer=bytes)(
            request, timeout=10, metadata=metadata
        )


@pytest.mark.parametrize("value", [None, "", "00000000-0000-0000-0000-000000000000"])
@pytest.mark.parametrize(("method", "path"), CLOSED_HTTP)
def test_what_changes_the_server_is_refused_over_http(image_server: TritonProcess, method: str, path: str, value: str | None) -> None:
    headers = {} if value is None else {ADMIN_HEADER: value}
    assert httpx.request(method, f"{image_server.http}{path}", json={}, headers=headers).status_code == httpx.codes.FORBIDDEN


@pytest.mark.parametrize("value", [None, "", "00000000-0000-0000-0000-000000000000"])
@pytest.mark.parametrize("method", CLOSED_GRPC)
def test_what_changes_the_server_is_refused_over_grpc(image_server: TritonProcess, method: str, value: str | None) -> None:
    metadata = () if value is None else ((f"triton-grpc-protocol-{ADMIN_HEADER}", value),)
    with pytest.raises(grpc.RpcError, match="This protocol is restricted") as raised:
        call(image_server, method, metadata)
    assert raised.value.code() is grpc.StatusCode.UNAVAILABLE


@pytest.mark.parametrize("path", OPEN_HTTP)
def test_what_a_caller_needs_stays_open_over_http(image_server: TritonProcess, path: str) -> None:
    assert httpx.get(f"{image_server.http}{path}").status_code == httpx.codes.OK


@pytest.mark.parametrize("method", OPEN_GRPC)
def test_what_a_caller_needs_stays_open_over_grpc(image_server: TritonProcess, method: str) -> None:
    call(image_server, method)


def test_the_refusal_is_the_missing_value_and_nothing_else(image_server: TritonProcess) -> None:
    """With it the same request is answered: so every path above is one that exists and would have worked."""
    key = key_of(image_server)
    for method, path in (("POST", "/v2/repository/index"), ("GET", "/v2/systemsharedmemory/status"), ("GET", "/v2/logging")):
        assert httpx.request(method, f"{image_server.http}{path}", headers={ADMIN_HEADER: key}).status_code == httpx.codes.OK
    call(image_server, "RepositoryIndex", ((f"triton-grpc-protocol-{ADMIN_HEADER}", key),))


def test_the_value_is_another_one_at_each_start_and_in_no_log(image_server: TritonProcess, tmp_path: Path) -> None:
    with TritonProcess(arguments=["--log-verbose=1"], log=tmp_path / "triton.log") as other:
        other.wait_ready()
        keys = [key_of(image_server), key_of(other)]
        assert keys[0] != keys[1]
        assert all(len(key) == len("00000000-0000-0000-0000-000000000000") for key in keys)
        httpx.get(f"{other.http}/v2/logging")
        assert keys[1] not in other.log.read_text()
