"""Model repositories of tiny networks, and plain requests to the server over them."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx
import onnx
from google.protobuf import text_format
from onnx import TensorProto, helper
from tritonclient.grpc import model_config_pb2 as pb

from components.inference.pod_manifest import ADMIN_HEADER
from serving.model_config import ServingSpec, model_manifest, part_serving, render_config, server_models
from tools.triton_process import TritonProcess, serving_rootfs

# Name, onnx type, shape; a name in the shape stands for a variable axis.
Tensor = tuple[str, int, Sequence[str | int]]
TRITON_TYPES: dict[int, str] = {
    TensorProto.FLOAT: "TYPE_FP32",
    TensorProto.INT32: "TYPE_INT32",
    TensorProto.INT64: "TYPE_INT64",
    TensorProto.STRING: "TYPE_STRING",
    TensorProto.BFLOAT16: "TYPE_BF16",
}


def network(inputs: Sequence[Tensor], outputs: Sequence[Tensor], *nodes: onnx.NodeProto, **constants: onnx.TensorProto) -> bytes:
    """An ONNX file of these nodes."""
    taken, given = ([helper.make_tensor_value_info(name, kind, list(shape)) for name, kind, shape in side] for side in (inputs, outputs))
    graph = helper.make_graph(list(nodes), "graph", taken, given, initializer=list(constants.values()))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return model.SerializeToString()


def config(name: str, inputs: Sequence[Tensor], outputs: Sequence[Tensor], *, batch: int = 8, **more: Any) -> str:
    """The config.pbtxt to it; `more` are fields of Triton's ModelConfig."""

    def dims(shape: Sequence[str | int]) -> list[int]:
        return [size if isinstance(size, int) else -1 for size in (shape[1:] if batch else shape)]

    message = pb.ModelConfig(
        name=name,
        backend="onnxruntime",
        max_batch_size=batch,
        input=[pb.ModelInput(name=tensor, data_type=TRITON_TYPES[kind], dims=dims(shape)) for tensor, kind, shape in inputs],
        output=[pb.ModelOutput(name=tensor, data_type=TRITON_TYPES[kind], dims=dims(shape)) for tensor, kind, shape in outputs],
        instance_group=[pb.ModelInstanceGroup(count=1, kind="KIND_CPU")],
        **more,
    )
    return text_format.MessageToString(message)


def write_model(repository: Path, name: str, pbtxt: str, files: Mapping[str, bytes | str]) -> None:
    """A model with one version, 1."""
    version = repository / name / "1"
    version.mkdir(parents=True)
    (repository / name / "config.pbtxt").write_text(pbtxt)
    for file, content in files.items():
        (version / file).write_bytes(content if isinstance(content, bytes) else content.encode())


def tensor(name: str, datatype: str, shape: Sequence[int], data: Sequence[Any]) -> dict[str, Any]:
    return {"name": name, "datatype": datatype, "shape": list(shape), "data": list(data)}


def infer(triton: TritonProcess, model: str, *inputs: dict[str, Any], **parameters: Any) -> httpx.Response:
    """Ask over JSON; `parameters` are the request's."""
    return httpx.post(f"{triton.http}/v2/models/{model}/infer", json={"inputs": list(inputs), "parameters": parameters}, timeout=30)


def outputs(response: httpx.Response) -> dict[str, Any]:
    """Data of each output; AssertionError with the server's words for an error."""
    assert response.status_code == httpx.codes.OK, response.text
    return {output["name"]: output["data"] for output in response.json()["outputs"]}


def key_of(triton: TritonProcess) -> str:
    """The value that opens the part of the API that changes a server: only who sees the server's process sees it."""
    arguments = Path(f"/proc/{triton.pid}/cmdline").read_text().split("\0")
    [found] = [argument.rpartition("=")[2] for argument in arguments if argument.startswith("--http-restricted-api=")]
    return found


def states(triton: TritonProcess) -> dict[str, tuple[str, str]]:
    """State and reason of every model."""
    index = httpx.post(f"{triton.http}/v2/repository/index", headers={ADMIN_HEADER: key_of(triton)}).json()
    return {entry["name"]: (entry.get("state", ""), entry.get("reason", "")) for entry in index}


def deploy(folder: Path, model: str, version: int, serving: ServingSpec, *, arguments: Sequence[str] = (), **more: Any) -> TritonProcess:
    """A server as a Deployment of this version has it: the image's version directories, the stack's configs, exactly the models it needs."""
    manifest = model_manifest(model)
    repository, image = folder / "models", serving_rootfs().path / "models"
    parts = server_models(manifest, version, model_manifest)
    for part, number in parts:
        shutil.copytree(image / part.name / str(number), repository / part.name / str(number))
        pbtxt = render_config(part, number, part_serving(manifest, part, serving), "cpu")
        (repository / part.name / "config.pbtxt").write_text(pbtxt)
    loaded = ["--model-control-mode=explicit", *(f"--load-model={part.name}" for part, _ in parts)]
    return TritonProcess(repository=repository, arguments=[*loaded, *arguments], log=folder / "triton.log", **more)
