"""Our request bytes against those of Triton's own client."""

import json
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc as triton_grpc
import tritonclient.http as triton_http
from tritonclient.grpc.service_pb2 import ModelInferRequest, ModelInferResponse

from loadtests.payloads import LENGTH, Document, Signature, first_element, grpc_infer, http_binary, http_json, http_raw, judge, read_grpc, read_http
from loadtests.samples import ErrorKind

SIGNATURE = Signature("magika", "content", "label")
PNG = Document(b"\x89PNG\r\n\x1a\n\x00\xff", "png")


def triton_input(module: Any) -> Any:
    tensor = module.InferInput("content", [1, 1], "BYTES")
    tensor.set_data_from_numpy(np.array([[PNG.content]], dtype=np.object_))
    return tensor


def test_the_binary_form_says_what_tritons_client_says() -> None:
    theirs, length = triton_http.InferenceServerClient.generate_request_body(
        [triton_input(triton_http)], outputs=[triton_http.InferRequestedOutput("label")]
    )
    ours = http_binary(SIGNATURE, PNG)
    assert ours.path == "/v2/models/magika/infer"
    header = int(ours.headers["Inference-Header-Content-Length"])
    assert ours.body[header:] == theirs[length:]
    assert json.loads(ours.body[:header])["inputs"] == json.loads(theirs[:length])["inputs"]


def test_the_grpc_form_says_what_tritons_client_says() -> None:
    ours = ModelInferRequest.FromString(grpc_infer(SIGNATURE, PNG, version=2))
    theirs = triton_input(triton_grpc)
    assert ours.model_version == "2"
    assert ours.inputs[0] == theirs._get_tensor()
    assert ours.raw_input_contents[0] == theirs._get_content()


def test_json_carries_text_only_and_raw_carries_the_file_itself() -> None:
    assert json.loads(http_json(SIGNATURE, Document(b"import os")).body)["inputs"][0]["data"] == ["import os"]
    with pytest.raises(UnicodeDecodeError):
        http_json(SIGNATURE, PNG)
    raw = http_raw(SIGNATURE, PNG, version=1)
    assert (raw.path, raw.body, raw.headers["Inference-Header-Content-Length"]) == ("/v2/models/magika/versions/1/infer", PNG.content, "0")


def test_http_answers_are_read_in_both_forms_behind_other_outputs() -> None:
    outputs = [
        {"name": "score", "datatype": "FP32", "shape": [1, 1], "parameters": {"binary_data_size": 4}},
        {"name": "label", "datatype": "BYTES", "shape": [1, 1], "parameters": {"binary_data_size": 7}},
    ]
    header = json.dumps({"model_version": "2", "outputs": outputs}).encode()
    body = header + b"\0\0\x80?" + LENGTH.pack(3) + b"png"
    assert (read_http(SIGNATURE, len(header), body).version, read_http(SIGNATURE, len(header), body).label) == ("2", "png")
    plain = json.dumps({"model_version": "1", "outputs": [{"name": "label", "data": ["python"]}]}).encode()
    assert read_http(SIGNATURE, None, plain).label == "python"


@pytest.mark.parametrize("body", [b"", b"<html>", b"{}", b"[]", b'{"outputs": []}', b'{"outputs": [{"name": "label", "data": ["png"]}]}'])
def test_an_answer_that_cannot_be_read_is_a_failure_not_a_crash(body: bytes) -> None:
    answer = judge(200, PNG, lambda: read_http(SIGNATURE, None, body))
    assert answer.error is ErrorKind.ANSWER
    assert "unreadable" in answer.detail


def test_an_empty_tensor_is_a_failure() -> None:
    """A python backend with numpy 2 hands out empty tensors with status 200."""
    response = ModelInferResponse(model_version="1", raw_output_contents=[b""])
    response.outputs.add(name="label", datatype="BYTES", shape=[1, 1])
    assert judge(0, Document(b"x"), lambda: read_grpc(SIGNATURE, response)).detail == "the answer is empty"
    assert first_element(b"\x00\x00") == ""
