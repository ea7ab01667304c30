"""Inference requests in the forms Triton takes, and what its answers say.

Formats: the KServe v2 protocol with Triton's binary tensor and raw binary extensions (triton-inference-server/server docs/protocol).
"""

import json
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tritonclient.grpc.service_pb2 import ModelInferRequest, ModelInferResponse

from loadtests.samples import DETAIL_MAX, Answer, ErrorKind
from serving.contract import JSON_LENGTH_HEADER

LENGTH = struct.Struct("<I")  # every element of a BYTES tensor is preceded by its length


@dataclass(frozen=True)
class Signature:
    """A model that takes one BYTES tensor and names a class in another; `shape` includes the batch dimension where the model has one."""

    model: str
    input: str
    output: str
    shape: tuple[int, ...] = (1, 1)


@dataclass(frozen=True)
class Document:
    """A real input and the class it must get; `label` None accepts any class but not an empty one."""

    content: bytes
    label: str | None = None

    @classmethod
    def read(cls, path: Path, label: str | None = None) -> "Document":
        return cls(path.read_bytes(), label)


@dataclass(frozen=True)
class HttpRequest:
    """One POST."""

    path: str
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True)
class Prediction:
    """What the model said, and which version said it."""

    version: str
    label: str

    def objection(self, document: Document) -> str:
        """Why this is no right answer for the document; empty if it is one."""
        if not self.label:
            return "the answer is empty"
        if document.label is not None and self.label != document.label:
            return f"answered {self.label!r} instead of {document.label!r}"
        return ""


def infer_path(model: str, version: int | None = None) -> str:
    """Path of an inference; without a version the server chooses, which is what a weighted route is about."""
    return f"/v2/models/{model}/infer" if version is None else f"/v2/models/{model}/versions/{version}/infer"


def http_binary(signature: Signature, document: Document, version: int | None = None) -> HttpRequest:
    """JSON header followed by the tensor's bytes; works for any content."""
    tensor = LENGTH.pack(len(document.content)) + document.content
    described = {"name": signature.input, "shape": signature.shape, "datatype": "BYTES", "parameters": {"binary_data_size": len(tensor)}}
    header = json.dumps({"inputs": [described], "outputs": [{"name": signature.output}]}).encode()
    headers = {"Content-Type": "application/octet-stream", JSON_LENGTH_HEADER: str(len(header))}
    return HttpRequest(infer_path(signature.model, version), headers, header + tensor)


def http_json(signature: Signature, document: Document, version: int | None = None) -> HttpRequest:
    """Pure JSON, which can carry UTF-8 text only; raises UnicodeDecodeError for anything else."""
    described = {"name": signature.input, "shape": signature.shape, "datatype": "BYTES", "data": [document.content.decode()]}
    body = json.dumps({"inputs": [described], "outputs": [{"name": signature.output}]}).encode()
    return HttpRequest(infer_path(signature.model, version), {"Content-Type": "application/json"}, body)


def http_raw(signature: Signature, document: Document, version: int | None = None) -> HttpRequest:
    """The file itself as the body: what `curl --data-binary @file` sends."""
    headers = {"Content-Type": "application/octet-stream", JSON_LENGTH_HEADER: "0"}
    return HttpRequest(infer_path(signature.model, version), headers, document.content)


def grpc_infer(signature: Signature, document: Document, version: int | None = None) -> bytes:
    """A serialised ModelInferRequest: made once, sent many times."""
    request = ModelInferRequest(model_name=signature.model, model_version="" if version is None else str(version))
    request.inputs.add(name=signature.input, datatype="BYTES", shape=signature.shape)
    request.outputs.add(name=signature.output)
    request.raw_input_contents.append(LENGTH.pack(len(document.content)) + document.content)
    return bytes(request.SerializeToString())


def read_http(signature: Signature, json_length: int | None, body: bytes) -> Prediction:
    """Read an answer; `json_length` is its JSON_LENGTH_HEADER, if any. Raises ValueError or KeyError for anything but a whole answer."""
    header: dict[str, Any] = json.loads(body if json_length is None else body[:json_length])
    rest = b"" if json_length is None else body[json_length:]
    for output in header["outputs"]:
        size = output.get("parameters", {}).get("binary_data_size", 0)
        if output["name"] == signature.output:
            data = output.get("data")
            return Prediction(header["model_version"], str(data[0]) if data else first_element(rest[:size]))
        rest = rest[size:]
    raise KeyError(signature.output)


def read_grpc(signature: Signature, response: ModelInferResponse) -> Prediction:
    """Read an answer. Raises ValueError or KeyError for anything but a whole answer."""
    for index, output in enumerate(response.outputs):
        if output.name == signature.output:
            if response.raw_output_contents:
                return Prediction(response.model_version, first_element(response.raw_output_contents[index]))
            contents = output.contents.bytes_contents
            return Prediction(response.model_version, contents[0].decode() if contents else "")
    raise KeyError(signature.output)


def first_element(tensor: bytes) -> str:
    """The first string of a BYTES tensor, empty if it has none."""
    if len(tensor) < LENGTH.size:
        return ""
    (length,) = LENGTH.unpack_from(tensor)
    return tensor[LENGTH.size : LENGTH.size + length].decode()


def judge(status: int, document: Document, read: Callable[[], Prediction]) -> Answer:
    """Turn a successful status into an Answer: an error still, if the answer cannot be read or says the wrong thing."""
    try:
        prediction = read()
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        return Answer(status, error=ErrorKind.ANSWER, detail=f"unreadable answer: {error!r}"[:DETAIL_MAX])
    objection = prediction.objection(document)
    return Answer(status, prediction.version, ErrorKind.ANSWER if objection else None, objection)
