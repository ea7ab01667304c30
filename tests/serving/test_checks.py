"""The check of a model of numbers, of flags, of texts, of several of them: staged as for the image, asked of the real Triton as in it."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

from serving.image import selfcheck
from serving.model_check import CheckSpec
from serving.model_manifest import ModelManifest
from serving.repository.stage import stage_repository
from tests.serving.repository import network
from tools.triton_process import TritonProcess

pytestmark = pytest.mark.serving

# Of every datatype that ONNX has in this backend: a value, and one beside it.
VALUES: dict[str, tuple[int, Any, Any]] = {
    "BOOL": (TensorProto.BOOL, [True, False, True], [True, True, True]),
    "UINT8": (TensorProto.UINT8, [0, 7, 255], [0, 7, 254]),
    "UINT16": (TensorProto.UINT16, [0, 7, 65535], [0, 7, 65534]),
    "UINT32": (TensorProto.UINT32, [0, 7, 2**32 - 1], [0, 7, 2**32 - 2]),
    "UINT64": (TensorProto.UINT64, [0, 7, 2**64 - 1], [0, 7, 2**64 - 2]),
    "INT8": (TensorProto.INT8, [-128, 7, 127], [-127, 7, 127]),
    "INT16": (TensorProto.INT16, [-(2**15), 7, 1], [-(2**15), 7, 2]),
    "INT32": (TensorProto.INT32, [-(2**31), 7, 1], [-(2**31), 7, 2]),
    "INT64": (TensorProto.INT64, [-(2**63), 7, 1], [-(2**63), 7, 2]),
    "FP16": (TensorProto.FLOAT16, [-1.5, 7, 0.1], [-1.5, 7, 0.2]),
    "FP32": (TensorProto.FLOAT, [-1.5, 7, 0.1], [-1.5, 7, 0.1001]),
    "FP64": (TensorProto.DOUBLE, [-1.5, 7, 0.1], [-1.5, 7, 0.1001]),
    "BYTES": (TensorProto.STRING, ["", "żółw", "a"], ["", "żółw", "b"]),
}
KINDS = {name: kind for name, (kind, _, _) in VALUES.items()}
# Every input comes back under the name of its datatype.
ECHO = network(
    [(f"in-{name}", kind, ("n", 3)) for name, kind in KINDS.items()],
    [(name, kind, ("n", 3)) for name, kind in KINDS.items()],
    *(helper.make_node("Identity", [f"in-{name}"], [name]) for name in KINDS),
)
TENTHS = helper.make_tensor("tenth", TensorProto.FLOAT, [1], [0.1])
SCALE = network(
    [("x", TensorProto.FLOAT, ("n", 4)), ("y", TensorProto.FLOAT, ("n", 4))],
    [("sum", TensorProto.FLOAT, ("n", 4))],
    helper.make_node("Mul", ["x", "tenth"], ["scaled"]),
    helper.make_node("Add", ["scaled", "y"], ["sum"]),
    tenth=TENTHS,
)


def published(folder: Path, name: str, content: bytes, check: dict[str, Any]) -> ModelManifest:
    """The network as a model below `folder`, with the signature that it has."""
    graph = onnx.load_from_string(content).graph
    names = {kind: datatype for datatype, kind in KINDS.items()}
    sides = {
        side: [
            {"name": tensor.name, "datatype": names[tensor.type.tensor_type.elem_type], "dims": [-1, tensor.type.tensor_type.shape.dim[1].dim_value]}
            for tensor in tensors
        ]
        for side, tensors in (("inputs", graph.input), ("outputs", graph.output))
    }
    (folder / name).mkdir(parents=True)
    (folder / name / "model.onnx").write_bytes(content)
    file = {
        "name": "model.onnx",
        "source": {"kind": "file", "path": "model.onnx"},
        "sizeBytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    values = {
        "name": name,
        "description": "A test.",
        "licence": "Apache-2.0",
        "format": "onnx",
        "signature": sides,
        "check": check,
        "loadBudgetSeconds": 30,
        "sharedMemoryMib": 16,
        "versions": [{"version": 1, "description": "First.", "memoryMib": 64, "files": [file]}],
    }
    return ModelManifest.model_validate_json(json.dumps(values))


def echo_check(datatype: str, expected: object) -> dict[str, Any]:
    return {"inputs": {f"in-{name}": [value] for name, (_, value, _) in VALUES.items()}, "output": datatype, "expected": [expected]}


@pytest.fixture(scope="module")
def staged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[TritonProcess, Path]]:
    """A server of what is staged for the image, and the checks; of `echo` one for every datatype, with the right answer and with a wrong one."""
    folder = tmp_path_factory.mktemp("checks")
    sources = folder / "sources"
    scale = {"inputs": {"x": [[1, 2, 3, 4]], "y": [[10, 20, 30, 40]]}, "output": "sum", "expected": [[10.1, 20.2, 30.3, 40.4]], "tolerance": 1e-5}
    echo = published(sources, "echo", ECHO, echo_check("FP32", VALUES["FP32"][1]))
    models = {
        "right": [published(sources, "scale", SCALE, scale), echo],
        **{name: [echo.model_copy(update={"check": _check(echo_check(name, value))})] for name, (_, value, _) in VALUES.items()},
        **{f"{name}-wrong": [echo.model_copy(update={"check": _check(echo_check(name, other))})] for name, (_, _, other) in VALUES.items()},
    }
    with pytest.MonkeyPatch.context() as patch:
        for module in ("artefact", "repository.sources", "repository.stage", "model_manifest"):
            patch.setattr(f"serving.{module}.MODELS_DIR", sources)
        for name, manifests in models.items():
            stage_repository(manifests, lambda wheel: Path(wheel.distribution), folder / name)
    with TritonProcess(repository=folder / "right" / "models", log=folder / "triton.log") as triton:
        triton.wait_ready()
        yield triton, folder


def _check(values: dict[str, Any]) -> CheckSpec:
    return CheckSpec.model_validate_json(json.dumps(values))


def ask(staged: tuple[TritonProcess, Path], name: str) -> None:
    triton, folder = staged
    check = json.loads((folder / name / "check.json").read_text())
    selfcheck.ask(triton.http_port, check, folder / name)


def test_numbers_of_two_inputs_are_asked_and_compared_within_the_tolerance(staged: tuple[TritonProcess, Path]) -> None:
    ask(staged, "right/checks/scale-1")


@pytest.mark.parametrize("datatype", sorted(VALUES))
def test_values_of_every_datatype_reach_the_model_and_its_answer_is_compared(staged: tuple[TritonProcess, Path], datatype: str) -> None:
    ask(staged, f"{datatype}/checks/echo-1")
    with pytest.raises(SystemExit, match=f"echo version 1: {datatype} is .*; the first that differs is element"):
        ask(staged, f"{datatype}-wrong/checks/echo-1")
