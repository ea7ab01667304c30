"""Requests that are none: each gets a clear refusal, and the server answers the next one."""

import json
import struct
from collections.abc import Iterator
from typing import Any

import grpc
import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tritonclient.grpc import service_pb2

from serving.contract import GRPC_SERVICE, JSON_LENGTH_HEADER
from serving.model_config import ServingSpec
from tests.serving.repository import deploy, infer, outputs, tensor
from tools.triton_process import TritonProcess

pytestmark = pytest.mark.serving

SERVING = ServingSpec.model_validate({"batching": {"maxBatchSize": 4}, "instances": {"count": 1}})
GOOD = tensor("content", "BYTES", [1, 1], ["import os\nimport sys\n\nprint(os.environ, sys.argv)\n"])
LARGE_MIB = 100
MIB = 1024 * 1024


@pytest.fixture(scope="module")
def magika(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TritonProcess]:
    with deploy(tmp_path_factory.mktemp("magika"), "magika", 1, SERVING) as server:
        server.wait_ready()
        yield server


@pytest.fixture(autouse=True)
def the_server_answers_afterwards(magika: TritonProcess) -> Iterator[None]:
    before = magika.pid
    yield
    assert outputs(infer(magika, "magika", GOOD))["label"] == ["python"]
    assert magika.pid == before


@pytest.fixture(scope="module")
def http(magika: TritonProcess) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=magika.http, trust_env=False, timeout=60) as client:
        yield client


def post(http: httpx.Client, body: bytes, json_length: int | None = None, **headers: str) -> httpx.Response:
    length = {} if json_length is None else {JSON_LENGTH_HEADER: str(json_length)}
    content = {"Content-Type": "application/octet-stream", **length, **headers}
    return http.post("/v2/models/magika/infer", content=body, headers=content)


def binary(described: dict[str, Any], data: bytes) -> tuple[bytes, int]:
    """A body with binary tensor data, and the length of its JSON."""
    head = json.dumps({"inputs": [described]}).encode()
    return head + data, len(head)


BAD_REQUEST, SERVER_ERROR = httpx.codes.BAD_REQUEST, httpx.codes.INTERNAL_SERVER_ERROR
# Triton calls JSON that it cannot take apart an error of its own.
WRONG = {
    "another datatype": ([tensor("content", "FP32", [1, 1], [1.0])], BAD_REQUEST, "data-type is 'FP32', but model 'magika' expects 'BYTES'"),
    "a datatype that there is not": ([tensor("content", "TEXT", [1, 1], ["a"])], BAD_REQUEST, "invalid datatype for input content"),
    "another rank": ([tensor("content", "BYTES", [1], ["a"])], BAD_REQUEST, "Expected [-1,1], got [1]"),
    "another size": ([tensor("content", "BYTES", [1, 2], ["a", "b"])], BAD_REQUEST, "Expected [-1,1], got [1,2]"),
    "a negative size": ([tensor("content", "BYTES", [1, -1], ["a"])], SERVER_ERROR, "Unable to parse 'shape'"),
    "a batch above the largest": ([tensor("content", "BYTES", [5, 1], ["a"] * 5)], BAD_REQUEST, "batch-size must be <= 4"),
    "fewer values than the shape": ([tensor("content", "BYTES", [2, 1], ["a"])], BAD_REQUEST, "expected 2 string elements"),
    "more values than the shape": ([tensor("content", "BYTES", [1, 1], ["a", "b"])], BAD_REQUEST, "unexpected number of string elements 2"),
    "an input that there is not": ([GOOD, tensor("more", "BYTES", [1, 1], ["a"])], BAD_REQUEST, "expected 1 inputs but got 2"),
    "no input": ([], BAD_REQUEST, "expected 1 inputs but got 0"),
    "another input instead": ([tensor("more", "BYTES", [1, 1], ["a"])], BAD_REQUEST, "unexpected inference input 'more'"),
    "an input twice": ([GOOD, GOOD], BAD_REQUEST, "input 'content' already exists"),
    "numbers for text": ([tensor("content", "BYTES", [1, 1], [1])], SERVER_ERROR, "attempt to access JSON non-string as string"),
}


@pytest.mark.parametrize(("inputs", "status", "reason"), WRONG.values(), ids=WRONG)
def test_tensors_that_are_not_the_models_are_refused_with_the_reason(
    magika: TritonProcess, inputs: list[dict[str, Any]], status: int, reason: str
) -> None:
    answer = infer(magika, "magika", *inputs)
    assert (answer.status_code, reason in answer.json()["error"]) == (status, True), answer.text


FIVE = struct.pack("<I", 5) + b"hello"
LENGTHS = {
    "fewer bytes than announced": (FIVE[:-2], 9, BAD_REQUEST, "expecting 2 additional bytes"),
    "more bytes than announced": (FIVE + b"xx", 9, BAD_REQUEST, "unexpected additional input data"),
    "a text longer than the data": (struct.pack("<I", 500) + b"hello", 9, BAD_REQUEST, "expecting string of length 500 but only 5"),
    "a text of 4 GiB": (struct.pack("<I", 2**32 - 1) + b"hello", 9, BAD_REQUEST, "but only 5 bytes available"),
    "a text shorter than the data": (struct.pack("<I", 2) + b"hello", 9, BAD_REQUEST, "incomplete string length indicator"),
    "a negative size": (FIVE, -1, SERVER_ERROR, "Unable to parse 'binary_data_size'"),
    "a terabyte": (FIVE, 2**40, BAD_REQUEST, "additional bytes"),
}


@pytest.mark.parametrize(("data", "size", "status", "reason"), LENGTHS.values(), ids=LENGTHS)
def test_binary_data_of_another_length_is_refused(http: httpx.Client, data: bytes, size: int, status: int, reason: str) -> None:
    described = {"name": "content", "shape": [1, 1], "datatype": "BYTES", "parameters": {"binary_data_size": size}}
    answer = post(http, *binary(described, data))
    assert (answer.status_code, reason in answer.json()["error"]) == (status, True), answer.text


@pytest.mark.parametrize("body", [b"{", b"null", b"[]", b'{"inputs": 5}', b"\xff" * 20, b"[" * 50_000])
def test_a_body_that_is_no_json_of_a_request_is_answered_500_with_the_reason(http: httpx.Client, body: bytes) -> None:
    answer = post(http, body, len(body))
    assert answer.status_code == SERVER_ERROR
    assert "parse" in answer.json()["error"]


@pytest.mark.parametrize("length", [-1, 3, 10**9])
def test_a_length_of_the_json_that_the_body_does_not_have_is_refused(http: httpx.Client, length: int) -> None:
    answer = post(http, b"{}", length)
    assert (answer.status_code, "should be in range" in answer.json()["error"]) == (BAD_REQUEST, True)


def test_a_body_of_100_mib_is_answered(http: httpx.Client) -> None:
    """At the server itself; the gateway refuses it long before."""
    answer = post(http, b"x = 1\n" * (LARGE_MIB * MIB // 6), 0)
    assert answer.status_code == httpx.codes.OK


FUZZ = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
NAMES = st.sampled_from(["content", "inputs", "name", "shape", "datatype", "data", "outputs", "parameters", "BYTES", "label"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64) | st.floats() | st.text(max_size=20) | NAMES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES | st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@FUZZ
@given(body=st.binary(max_size=2000), length=st.integers(0, 2000))
def test_any_bytes_over_http_are_answered(http: httpx.Client, body: bytes, length: int) -> None:
    assert post(http, body, length).status_code in {httpx.codes.OK, BAD_REQUEST, SERVER_ERROR}


@FUZZ
@given(inputs=VALUES, outputs=VALUES)
def test_any_json_over_http_is_answered(http: httpx.Client, inputs: Any, outputs: Any) -> None:
    body = json.dumps({"inputs": inputs, "outputs": outputs}).encode()
    assert post(http, body, len(body)).status_code in {httpx.codes.OK, BAD_REQUEST, SERVER_ERROR}


def over_grpc(server: TritonProcess, message: bytes) -> grpc.StatusCode:
    """Status of a ModelInfer with these bytes as its message."""
    with grpc.insecure_channel(server.grpc) as channel:
        call = channel.unary_unary(f"/{GRPC_SERVICE}/ModelInfer", request_serializer=bytes, response_deserializer=bytes)
        try:
            call(message, timeout=30)
        except grpc.RpcError as error:
            code: grpc.StatusCode = error.code()
            return code
    return grpc.StatusCode.OK


@FUZZ
@given(message=st.binary(max_size=500))
def test_any_bytes_over_grpc_are_answered(magika: TritonProcess, message: bytes) -> None:
    """All but a handful are no message at all; Triton then says INTERNAL, or INVALID_ARGUMENT for one that asks nothing."""
    assert over_grpc(magika, message) in {grpc.StatusCode.INTERNAL, grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND}


@FUZZ
@given(
    shape=st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(0, 5), max_size=4),
    datatype=st.sampled_from(["BYTES", "FP32", "INT64", "", "x"]),
    contents=st.lists(st.binary(max_size=100), max_size=3),
)
def test_any_tensor_over_grpc_is_answered(magika: TritonProcess, shape: list[int], datatype: str, contents: list[bytes]) -> None:
    request = service_pb2.ModelInferRequest(model_name="magika", raw_input_contents=contents)
    request.inputs.add(name="content", datatype=datatype, shape=shape)
    status = over_grpc(magika, request.SerializeToString())
    assert status in {grpc.StatusCode.OK, grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.INTERNAL}
