"""Predictions through the gateway, as a caller outside the cluster makes them."""

import json
import time
from collections.abc import Iterator

import grpc
import httpx
import pytest
from tritonclient.grpc import service_pb2

from components import labels
from loadtests.engine import Load
from loadtests.payloads import Document, grpc_infer, http_json, http_raw, infer_path, read_grpc, read_http
from serving.contract import GRPC_SERVICE, JSON_LENGTH_HEADER
from tests.e2e.platform import MODEL, NAMESPACE, Platform
from tests.e2e.traffic import DOCUMENTS, PYTHON, assert_no_failures, counting_plan, gateway, over_grpc, over_http
from tools.endpoint import SIGNATURE

pytestmark = pytest.mark.e2e

BATCH = 4
FORM_BYTES = 5 * 1024 * 1024
FORM_SECONDS = 3


@pytest.fixture
def http(platform: Platform) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"http://{gateway(platform)}", headers={"Host": platform.authority}, trust_env=False, timeout=10) as client:
        yield client


@pytest.fixture
def channel(platform: Platform) -> Iterator[grpc.Channel]:
    options = [("grpc.default_authority", platform.authority), ("grpc.enable_http_proxy", 0)]
    with grpc.insecure_channel(str(gateway(platform)), options) as channel:
        yield channel


def call(channel: grpc.Channel, method: str, request: bytes) -> bytes:
    return bytes(channel.unary_unary(f"/{GRPC_SERVICE}/{method}", request_serializer=bytes, response_deserializer=bytes)(request, timeout=10))


@pytest.mark.parametrize("version", [None, 1, 2])
@pytest.mark.parametrize("document", DOCUMENTS, ids=["png", "python"])
def test_a_file_as_the_body_is_classified_over_http(http: httpx.Client, document: Document, version: int | None) -> None:
    """What the printed curl does. A version in the path is the version asked, whatever the weights."""
    request = http_raw(SIGNATURE, document, version)
    answer = http.post(request.path, content=request.body, headers=request.headers)
    assert answer.status_code == httpx.codes.OK, answer.text
    length = answer.headers.get(JSON_LENGTH_HEADER)
    prediction = read_http(SIGNATURE, None if length is None else int(length), answer.content)
    assert prediction.label == document.label
    assert prediction.version == str(version) if version else prediction.version in {"1", "2"}


def test_json_is_classified_over_http(http: httpx.Client) -> None:
    request = http_json(SIGNATURE, PYTHON)
    answer = http.post(request.path, content=request.body, headers=request.headers)
    assert read_http(SIGNATURE, None, answer.content).label == "python"


@pytest.mark.parametrize("document", DOCUMENTS, ids=["png", "python"])
def test_a_file_is_classified_over_grpc(channel: grpc.Channel, document: Document) -> None:
    response = service_pb2.ModelInferResponse.FromString(call(channel, "ModelInfer", grpc_infer(SIGNATURE, document)))
    assert read_grpc(SIGNATURE, response).label == document.label


def test_unversioned_requests_are_answered_by_both_versions_over_both_protocols(platform: Platform) -> None:
    with Load(counting_plan(50, 20), [over_http(platform), over_grpc(platform)]) as load:
        report = load.finish().raise_if_invalid()
    assert_no_failures(report)
    for protocol in ("http", "grpc"):
        assert set(report.protocol(protocol).versions) == {"1", "2"}, str(report.protocol(protocol))


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v2/repository/index"),
        ("POST", f"/v2/repository/models/{MODEL}/load"),
        ("POST", f"/v2/repository/models/{MODEL}/unload"),
        ("GET", "/v2/systemsharedmemory/status"),
        ("GET", "/v2/trace/setting"),
        ("POST", "/v2/logging"),
        ("POST", "/v2/models/other/infer"),
    ],
)
def test_what_controls_the_server_is_not_exposed_over_http(http: httpx.Client, method: str, path: str) -> None:
    assert http.request(method, path, json={}).status_code == httpx.codes.NOT_FOUND


@pytest.mark.parametrize(
    "method", ["RepositoryIndex", "RepositoryModelLoad", "RepositoryModelUnload", "SystemSharedMemoryStatus", "TraceSetting", "LogSettings"]
)
def test_what_controls_the_server_is_not_exposed_over_grpc(channel: grpc.Channel, method: str) -> None:
    with pytest.raises(grpc.RpcError) as raised:
        call(channel, method, b"")
    assert raised.value.code() is grpc.StatusCode.UNIMPLEMENTED


def test_a_batch_has_its_own_axis_in_the_shape_of_a_request(http: httpx.Client) -> None:
    """triton-inference-server/server#1338, #7056: the first axis counts the items, and a shape without it is the caller's error."""
    path = infer_path(MODEL)
    tensor = {"name": SIGNATURE.input, "datatype": "BYTES"}
    batch = http.post(path, json={"inputs": [{**tensor, "shape": [BATCH, 1], "data": ["hello"] * BATCH}]})
    assert batch.status_code == httpx.codes.OK, batch.text
    [answers] = [output["data"] for output in batch.json()["outputs"] if output["name"] == SIGNATURE.output]
    assert answers == ["txt"] * BATCH
    single = http.post(path, json={"inputs": [{**tensor, "shape": [1], "data": ["hello"]}]})
    assert httpx.codes.is_client_error(single.status_code), f"{single.status_code} {single.text}"


def test_a_form_is_refused_before_it_reaches_a_server(platform: Platform, http: httpx.Client) -> None:
    """What curl sends unless told otherwise. Of this size and type, it would end the server by SIGSEGV."""
    before = restarts(platform)
    answer = http.post(infer_path(MODEL), content=bytes(FORM_BYTES), headers={"Content-Type": "application/x-www-form-urlencoded"})
    assert answer.status_code == httpx.codes.UNSUPPORTED_MEDIA_TYPE
    assert "application/octet-stream" in answer.text
    # A container that ended is counted once the kubelet has seen it.
    time.sleep(FORM_SECONDS)
    assert restarts(platform) == before


def restarts(platform: Platform) -> dict[str, int]:
    """Restarts of each of the model's pods."""
    pods = platform.kube.find("pods", NAMESPACE, labels.model_selector(MODEL))
    return {pod["metadata"]["uid"]: pod["status"]["containerStatuses"][0]["restartCount"] for pod in pods}


def test_a_host_that_is_no_model_of_ours_is_not_served(http: httpx.Client) -> None:
    assert http.get(f"/v2/models/{MODEL}", headers={"Host": "other.inference.test"}).status_code == httpx.codes.NOT_FOUND


def test_each_server_has_loaded_its_own_version_alone(http: httpx.Client) -> None:
    seen = {tuple(json.loads(http.get(f"/v2/models/{MODEL}").content)["versions"]) for _ in range(100)}
    assert seen <= {("1",), ("2",)}
